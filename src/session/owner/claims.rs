//! The claims of processes on sessions. A process owns a session while it holds the lock on the
//! session's file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lock::{self, SessionLock};
use crate::error::Result;
use crate::id::SessionId;
use crate::local_socket::{PeerAddress, Peers};
use crate::task;

/// Claims sessions for this process, and finds the processes that have claimed them.
pub(crate) struct Claims {
    /// The directory of the lock files.
    dir: PathBuf,
    peers: Arc<Peers>,
}

impl Claims {
    /// Creates the claims of a data directory.
    pub(in crate::session) fn new(data: &Path, peers: Arc<Peers>) -> Claims {
        Claims { dir: data.join("locks"), peers }
    }

    /// Claims a session for this process. If another process has claimed it, returns a
    /// `session_busy` error that names that process.
    pub(in crate::session) async fn take(&self, id: &SessionId) -> Result<SessionLock> {
        SessionLock::take(&self.dir, id, &self.peers.address())
    }

    /// Returns the address of the process that has claimed the session, or that had until it died.
    /// `None` if no process has claimed it.
    pub(in crate::session) async fn owner(&self, id: &SessionId) -> Option<PeerAddress> {
        lock::owner(&self.dir, id)
    }

    /// Returns the address of the other live process that has claimed the session.
    pub(in crate::session) async fn other_owner(&self, id: &SessionId) -> Option<PeerAddress> {
        self.owner(id).await.filter(|owner| !self.peers.is_own(owner) && self.peers.is_alive(owner))
    }

    /// Returns the claimed sessions, with the addresses that [`Claims::owner`] returns.
    pub(in crate::session) async fn all(&self) -> Result<Vec<(SessionId, PeerAddress)>> {
        let dir = self.dir.clone();
        let read = move || {
            // The directory does not exist before the first session.
            let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
            let ids = entries.filter_map(|entry| entry.file_name().into_string().ok().map(SessionId::from));
            ids.filter_map(|id| lock::owner(&dir, &id).map(|owner| (id, owner))).collect()
        };
        task::blocking("reading the owners of sessions", read).await
    }
}
