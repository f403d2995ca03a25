//! URLs of web pages, and the distinction between public and special-purpose IP addresses. This
//! module performs no I/O.

use std::cell::RefCell;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// An absolute http or https URL with a host and without credentials, in normalized form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    /// Parses a URL. The error is a message for the caller of a tool.
    pub(crate) fn parse(text: &str) -> Result<Address, String> {
        let url = Url::parse(text.trim()).map_err(|error| format!("invalid URL {text}: {error}; use https://host/path"))?;
        Address::check(url)
    }

    /// Returns the target of a redirection of this page; `location` may be relative.
    pub(crate) fn join(&self, location: &str) -> Result<Address, String> {
        let url = self.0.join(location).map_err(|error| format!("{self} redirects to the invalid URL {location}: {error}"))?;
        Address::check(url)
    }

    fn check(mut url: Url) -> Result<Address, String> {
        // Remove the dot at the end of a host name: it has no meaning here, and the patterns in
        // permission rules do not contain it.
        if let Some(host) = url.host_str().and_then(|host| host.strip_suffix('.')).map(str::to_owned) {
            url.set_host(Some(&host)).map_err(|error| format!("invalid URL {url}: {error}"))?;
        }
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(format!("{url} is not an http or https URL"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the URL contains a user name or a password; remove it".into());
        }
        Ok(Address(url))
    }

    /// Returns the URL for a request.
    pub(super) fn url(&self) -> Url {
        self.0.clone()
    }

    /// Returns the URL as text, in normalized form.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the host name, or the IP address without brackets.
    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    /// Returns `host:port`, the form of an entry for [`is_among`](Address::is_among).
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.0.host_str().unwrap_or_default(), self.0.port_or_known_default().unwrap_or_default())
    }

    /// Returns the host as an IP address, if it is one. Connecting to such a host needs no name
    /// resolution.
    pub(super) fn ip(&self) -> Option<IpAddr> {
        self.host().parse().ok()
    }

    /// Returns whether an entry of `hosts` (`host` or `host:port`) matches this URL.
    pub(super) fn is_among(&self, hosts: &[String]) -> bool {
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

/// Returns whether an IP address belongs to the public internet. According to IANA's
/// special-purpose address registries, the following do not: loopback, private and link-local
/// networks (which include the metadata services of cloud providers), shared address space
/// (100.64.0.0/10), documentation, multicast, and tunnels to any of them.
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

/// Returns true for global unicast (2000::/3) except protocol assignments such as Teredo
/// (2001::/23), documentation (2001:db8::/32, 3fff::/20) and 6to4 (2002::/16).
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let special = matches!((first, second), (0x2001, ..0x0200 | 0x0db8) | (0x2002, _) | (0x3fff, ..0x1000));
    first & 0xe000 == 0x2000 && !special
}

thread_local! {
    /// The last URL that was checked, because that of a model is checked for each request.
    static CHECKED: RefCell<(String, bool)> = RefCell::default();
}

/// Returns whether the URL's host is this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    CHECKED.with_borrow_mut(|(checked, result)| {
        if checked != url {
            (*checked, *result) = (url.to_owned(), has_loopback_host(url));
        }
        *result
    })
}

fn has_loopback_host(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || address.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}
