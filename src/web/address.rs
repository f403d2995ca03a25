//! Addresses of pages, and which of them are on the public web. Pure.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// An absolute address of http or https, with a host and without a user, as the network will know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    /// The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Address, String> {
        let url =
            Url::parse(text.trim()).map_err(|error| format!("{text} is no address: {error}; give it as https://host/path"))?;
        Address::check(url)
    }

    /// Where a redirection of this page leads; it may be relative.
    pub fn join(&self, location: &str) -> Result<Address, String> {
        let url = self.0.join(location).map_err(|error| format!("{self} redirects to {location}, which is no address: {error}"))?;
        Address::check(url)
    }

    fn check(mut url: Url) -> Result<Address, String> {
        // The dot of a name's end says nothing, and no rule has it.
        if let Some(host) = url.host_str().and_then(|host| host.strip_suffix('.')).map(str::to_owned) {
            url.set_host(Some(&host)).map_err(|error| format!("{url} is no address: {error}"))?;
        }
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(format!("{url} is no address of http or https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the address has a user or password in it; give it without".into());
        }
        Ok(Address(url))
    }

    pub(super) fn url(&self) -> Url {
        self.0.clone()
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// A name, or an IP address without brackets.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    /// The host where it is an IP address: no name is looked up for it.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host().parse().ok()
    }

    /// Whether `host` or `host:port` of a list names it.
    pub fn is_among(&self, hosts: &[String]) -> bool {
        let port = self.0.port_or_known_default().unwrap_or_default();
        let written = self.0.host_str().unwrap_or_default();
        let names = [self.host().to_owned(), written.to_owned(), format!("{written}:{port}")];
        hosts.iter().any(|host| names.iter().any(|name| name.eq_ignore_ascii_case(host)))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether an address belongs to the public internet, by IANA's registries of special-purpose addresses: not to this machine, a private or
/// link-local network (where clouds tell their secrets), a provider's (100.64/10), documentation, multicast, or a tunnel to one of those.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127 | 224.., ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
    )
}

/// Only global unicast (2000::/3), and of that no Teredo and its like (2001::/23), documentation (2001:db8::/32, 3fff::/20) or 6to4 (2002::/16).
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let special = matches!((first, second), (0x2001, ..0x0200 | 0x0db8) | (0x2002, _) | (0x3fff, ..0x1000));
    first & 0xe000 == 0x2000 && !special
}
