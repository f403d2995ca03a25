//! Addresses of nuncio processes, as session lock files contain them.

use std::fmt;

use crate::store::NodeRow;

/// Version of the messages between processes.
pub(crate) const PROTOCOL_VERSION: u32 = 3;

/// Returns the version with which processes of two versions talk. Each version understands the one
/// before it, so that the nodes of a cluster can be updated one after the other.
pub(crate) fn common_version(one: u32, other: u32) -> Option<u32> {
    (one.abs_diff(other) <= 1).then(|| one.min(other))
}

/// The address of a nuncio process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerAddress {
    pub pid: u32,
    /// File name of the process's socket. `None` if the process does not accept calls, or if it has
    /// a version of nuncio without sockets.
    pub socket: Option<String>,
    /// The version of the messages that the process understands ([`PROTOCOL_VERSION`]).
    pub version: u32,
    /// The node, if the process has another data directory, whose socket cannot be reached.
    pub remote: Option<NodeRow>,
}

impl PeerAddress {
    /// Parses the content of a lock file, or the address of a node on its machine: `PID SOCKET
    /// VERSION`, or only `PID`.
    pub(crate) fn parse(text: &str) -> Option<PeerAddress> {
        let mut words = text.split_whitespace();
        let pid = words.next()?.parse().ok()?;
        let socket = words.next().map(String::from);
        let version = words.next().and_then(|version| version.parse().ok());
        Some(PeerAddress { pid, socket: socket.filter(|_| version.is_some()), version: version.unwrap_or(0), remote: None })
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(socket) => write!(f, "{} {socket} {}", self.pid, self.version),
            None => write!(f, "{}", self.pid),
        }
    }
}
