//! The claims of processes on sessions. A process owns a session while it holds the lock on the
//! session's file. In a store with nodes, it owns the session while the session's row names it and
//! its lease is valid.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lease::Lease;
use super::lock::{self, SessionLock};
use crate::error::Result;
use crate::id::SessionId;
use crate::local_socket::{PeerAddress, Peers};
use crate::store::{NodeRow, Store, TakeOutcome};
use crate::task;

/// Claims sessions for this process, and finds the processes that have claimed them.
pub(crate) struct Claims {
    /// The directory of the lock files.
    dir: PathBuf,
    peers: Arc<Peers>,
    store: Store,
    /// The lease of this process, in a store with nodes.
    lease: Option<Arc<Lease>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum ClaimPurpose {
    /// To use the session: this process is its owner.
    Own,
    /// To end the turn of a dead owner. Until the claim ends, no process can take the session, and
    /// lists show it without an owner, as before and after.
    EndTurn,
}

/// The claim of this process on a session. Dropping it ends the claim.
pub(in crate::session) enum SessionClaim {
    Lock { _lock: SessionLock },
    Row(RowClaim),
}

pub(in crate::session) struct RowClaim {
    lease: Arc<Lease>,
    purpose: ClaimPurpose,
    /// The key of the session and the generation, once it is claimed.
    taken: Option<(i64, i64)>,
}

impl SessionClaim {
    /// Ends the claim. Then another process can take the session.
    pub(in crate::session) async fn end(mut self) {
        if let SessionClaim::Row(claim) = &mut self
            && let Some((key, generation)) = claim.taken
            && claim.lease.release(&[(key, generation)]).await
        {
            claim.taken = None;
        }
    }

    /// Records that the session's row names this process, in this generation.
    pub(in crate::session) fn taken(&mut self, key: i64, generation: i64) {
        if let SessionClaim::Row(claim) = self {
            claim.taken = Some((key, generation));
        }
    }
}

impl Drop for RowClaim {
    fn drop(&mut self) {
        if let Some((key, generation)) = self.taken {
            self.lease.released(key, generation);
        }
    }
}

impl Claims {
    /// Creates the claims of a data directory, or with a lease those of a store with nodes.
    pub(in crate::session) fn new(data: &Path, peers: Arc<Peers>, store: Store, lease: Option<Arc<Lease>>) -> Claims {
        Claims { dir: data.join("locks"), peers, store, lease }
    }

    /// Prepares a claim: locks the session's file, or ensures that the lease is valid. If another
    /// process holds the lock, returns a `session_busy` error that names that process.
    pub(in crate::session) async fn prepare(&self, id: &SessionId, purpose: ClaimPurpose) -> Result<SessionClaim> {
        match &self.lease {
            None => {
                let own = (purpose == ClaimPurpose::Own).then(|| self.peers.address());
                Ok(SessionClaim::Lock { _lock: SessionLock::take(&self.dir, id, own.as_ref())? })
            }
            Some(lease) => {
                lease.ensure().await?;
                Ok(SessionClaim::Row(RowClaim { lease: lease.clone(), purpose, taken: None }))
            }
        }
    }

    /// Claims the session with this key in a new generation. If another process has claimed it,
    /// returns a `session_busy` error that names that process.
    pub(in crate::session) async fn take(&self, claim: &mut SessionClaim, id: &SessionId, key: i64) -> Result<i64> {
        if let Some(lease) = &self.lease {
            lease.ensure().await?;
        }
        let ends_turn = matches!(claim, SessionClaim::Row(RowClaim { purpose: ClaimPurpose::EndTurn, .. }));
        loop {
            let node = match self.store.take_session(key, ends_turn).await? {
                TakeOutcome::Taken(generation) => {
                    claim.taken(key, generation);
                    return Ok(generation);
                }
                TakeOutcome::Held(node) => node,
            };
            let owner = self.address(&node);
            if owner.as_ref().is_none_or(|owner| self.peers.is_alive(owner)) {
                return Err(lock::busy(id, owner.as_ref()));
            }
            // A process on this machine: its lease ends when it dies, not later.
            self.store.remove_node(node.incarnation).await?;
        }
    }

    /// Returns the address of a node. `None` if another version wrote it in another form.
    pub(in crate::session) fn address(&self, node: &NodeRow) -> Option<PeerAddress> {
        self.lease.as_ref()?.address(node)
    }

    /// Returns the address of the process that has claimed the session, or that had until it died.
    /// `None` if no process has claimed it.
    pub(in crate::session) async fn owner(&self, id: &SessionId) -> Result<Option<PeerAddress>> {
        if self.lease.is_none() {
            return Ok(lock::owner(&self.dir, id));
        }
        Ok(self.store.session_owner(id).await?.and_then(|node| self.address(&node)))
    }

    /// Returns the address of the other live process that has claimed the session.
    pub(in crate::session) async fn other_owner(&self, id: &SessionId) -> Result<Option<PeerAddress>> {
        Ok(self.owner(id).await?.filter(|owner| !self.peers.is_own(owner) && self.peers.is_alive(owner)))
    }

    /// Returns the sessions whose files are locked, with the addresses that [`Claims::owner`]
    /// returns.
    pub(in crate::session) async fn locked(&self) -> Result<Vec<(SessionId, PeerAddress)>> {
        let dir = self.dir.clone();
        let read = move || {
            // The directory does not exist before the first session.
            let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
            let ids = entries.filter_map(|entry| entry.file_name().into_string().ok().map(SessionId::from));
            ids.filter_map(|id| lock::owner(&dir, &id).map(|owner| (id, owner))).collect()
        };
        task::blocking("reading the owners of sessions", read).await
    }

    /// Returns the lease of this process, in a store with nodes.
    pub(in crate::session) fn lease(&self) -> Option<&Arc<Lease>> {
        self.lease.as_ref()
    }
}
