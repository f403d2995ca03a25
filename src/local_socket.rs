//! Connections between the nuncio processes that share a store: local sockets for those with the
//! same data directory, TLS for the nodes of a cluster. The process that owns a session serves the
//! calls of the other processes.
//!
//! Messages are JSON-RPC, one per line. The first request of a connection is [`HELLO`].

mod address;
mod connection;
mod files;
mod paths;
mod peers;

pub(crate) use address::{PROTOCOL_VERSION, PeerAddress, common_version};
pub(crate) use connection::{Hello, PEER, PeerConnection, PeerFailure};
pub(crate) use files::is_own_user;
pub(crate) use peers::Peers;
pub use peers::{PeerListener, ServePeers};

/// The method of the first request: introduces the calling process. See [`Hello`].
pub(crate) const HELLO: &str = "hello";
