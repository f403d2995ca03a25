//! Checks that no process uses a store that this process does not serve.

use std::path::Path;

use super::lock;
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::local_socket::Peers;
use crate::store::Store;
use crate::task;

/// Fails if a live process owns a session of the store whose processes use the data directory
/// `data`.
pub(crate) async fn check_unowned(data: &Path, store: &Store) -> Result<()> {
    let (dir, peers) = (data.join("locks"), Peers::new(data, None));
    let read = move || {
        // The directory does not exist before the first session.
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().into_string().ok().map(SessionId::from));
        let owned = ids.filter_map(|id| lock::owner(&dir, &id).map(|owner| (id, owner)));
        owned.filter(|(_, owner)| peers.is_alive(owner)).collect::<Vec<_>>()
    };
    for (id, owner) in task::blocking("reading the owners of sessions", read).await? {
        // Processes with another store can use the same directory.
        if store.session(&id).await?.is_some() {
            let message = format!("{}: session {id} is owned by process {}", store.place(), owner.pid);
            return Err(Error::new(Kind::InvalidRequest, message).hint("end that process, then repeat the command"));
        }
    }
    Ok(())
}
