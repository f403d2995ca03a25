//! The nodes of a cluster: processes of several machines that share a store. Connections between
//! them are encrypted, and both sides prove that they know the secret of the cluster.

mod greeting;
#[cfg(feature = "postgres")]
mod node_connection;

use std::path::Path;

use ring::digest::{SHA256, digest};
use ring::hmac;

use crate::config::ClusterSettings;
use crate::error::{Error, Result};
use crate::hex::hex;
use crate::store::NodeAddress;
use crate::workspace::read_private;
pub(crate) use greeting::answer_greeting;
#[cfg(feature = "postgres")]
pub(crate) use node_connection::connect;

/// The protocol for TLS connections of nodes (ALPN).
pub(crate) const PROTOCOL: &[u8] = b"nuncio-peer";
/// Minimum length of a secret, in bytes.
const SECRET_BYTES_MIN: usize = 32;
/// Maximum number of secrets: the current one, and the next or the previous one.
const SECRETS_MAX: usize = 2;

/// The place of this process in its cluster.
pub(crate) struct Cluster {
    /// Names this node in messages.
    name: String,
    /// This node proves the first secret and accepts all.
    secrets: Vec<hmac::Key>,
    /// `None` if this process accepts no connections of other nodes.
    address: Option<NodeAddress>,
    /// The version of the messages with which this node talks, if it is not the newest one.
    version: Option<u32>,
}

impl Cluster {
    /// Reads the secrets that the settings name; relative paths are in `dir`. `server` is the HTTP
    /// server of this process: its port and its certificate. Returns `None` without a secret file.
    pub(crate) fn load(settings: &ClusterSettings, dir: &Path, server: Option<(u16, &[u8])>) -> Result<Option<Cluster>> {
        let Some(file) = &settings.secret_file else { return Ok(None) };
        let file = dir.join(file);
        let wrong =
            |reason: &dyn std::fmt::Display| Error::invalid_params(format!("cluster.secret_file: {}: {reason}", file.display()));
        let text = read_private(&file).map_err(|error| wrong(&error))?;
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() || lines.len() > SECRETS_MAX || lines.iter().any(|line| line.len() < SECRET_BYTES_MIN) {
            let hint = "one line, or two while the secret is being changed: openssl rand -hex 32";
            return Err(wrong(&"it must have one or two secrets of at least 32 characters").hint(hint));
        }
        let secrets = lines.iter().map(|line| hmac::Key::new(hmac::HMAC_SHA256, line.as_bytes())).collect();
        let address = settings.address.as_deref().zip(server).map(|(address, (port, certificate))| {
            Ok(NodeAddress { host: host(address, port)?, certificate: fingerprint(certificate) })
        });
        let (address, name) = (address.transpose()?, settings.name.clone().unwrap_or_else(machine_name));
        Ok(Some(Cluster { name, secrets, address, version: None }))
    }

    /// Makes this node talk with an older version of the messages, as a node does that is not
    /// updated yet.
    pub(crate) fn with_version(self, version: Option<u32>) -> Cluster {
        Cluster { version, ..self }
    }

    /// Returns the version of the messages with which this node talks, if it is not the newest one.
    pub(crate) fn version(&self) -> Option<u32> {
        self.version
    }

    /// Returns the name of this node.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Derives keys for a purpose from the secrets. The other nodes have the same ones.
    pub(crate) fn keys(&self, purpose: &str) -> impl Iterator<Item = hmac::Key> {
        let derived = move |secret| hmac::sign(secret, purpose.as_bytes());
        self.secrets.iter().map(derived).map(|key| hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()))
    }

    /// Returns the address at which this process accepts connections of other nodes.
    pub(crate) fn address(&self) -> Option<&NodeAddress> {
        self.address.as_ref()
    }
}

pub(crate) fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    name.map_or_else(|| "unnamed".to_owned(), |name| name.trim().to_owned())
}

/// Returns `HOST:PORT` of the URL `https://HOST:PORT` or `https://HOST`.
fn host(url: &str, port: u16) -> Result<String> {
    let host = url.strip_prefix("https://").map(|host| host.trim_end_matches('/'));
    let host = host.filter(|host| !host.is_empty() && !host.contains(['/', '?', '#', '@']));
    let host =
        host.ok_or_else(|| Error::invalid_params(format!("cluster.address: {url}")).hint("the form is https://HOST:PORT"))?;
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(if has_port { host.to_owned() } else { format!("{host}:{port}") })
}

/// Returns the host of `cluster.address`.
pub(crate) fn host_name(url: &str) -> Option<String> {
    Some(host(url, 443).ok()?.rsplit_once(':')?.0.to_owned())
}

/// Returns the digest of a certificate, in hexadecimal.
pub(crate) fn fingerprint(certificate: &[u8]) -> String {
    hex(digest(&SHA256, certificate).as_ref())
}
