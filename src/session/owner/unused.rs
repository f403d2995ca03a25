//! Checks that no process uses a store that this process does not serve.

use std::path::Path;
use std::sync::Arc;

use super::claims::Claims;
use crate::error::{Error, Kind, Result};
use crate::local_socket::Peers;
use crate::store::Store;

/// Fails if a live process owns a session of the store whose processes use the data directory
/// `data`, or if a node has a lease in the store.
pub(crate) async fn check_unowned(data: &Path, store: &Store) -> Result<()> {
    let used = |by: String| {
        let message = format!("{}: {by}", store.place());
        Err(Error::new(Kind::InvalidRequest, message).hint("end that process, then repeat the command"))
    };
    if let Some(node) = store.nodes().await?.first() {
        let pid = node.process.split(' ').next().unwrap_or_default();
        return used(format!("node {} (process {pid}) uses it", node.name));
    }
    let peers = Arc::new(Peers::new(data, None, None));
    for (id, owner) in Claims::new(data, peers.clone(), store.clone(), None).locked().await? {
        // Processes with another store can use the same directory.
        if peers.is_alive(&owner) && store.session(&id).await?.is_some() {
            return used(format!("session {id} is owned by process {}", owner.pid));
        }
    }
    Ok(())
}
