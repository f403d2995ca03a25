//! Finds the sessions that have a live owner, in this process or another one.

use crate::error::Result;
use crate::id::SessionId;
use crate::local_socket::PeerAddress;
use crate::session::sessions::Sessions;
use crate::store::{NodeRow, SessionRow};

/// Maximum number of sessions of other processes in the status of agents.
const STATUS_EXTERNAL_MAX: usize = 1000;
/// Maximum number of stored sessions that are searched for permission requests of other processes.
const WAITING_SESSIONS_MAX: usize = 1000;

/// Checks owners of sessions. Each process is checked once.
pub(crate) struct Owners<'a> {
    sessions: &'a Sessions,
    checked: Vec<(PeerAddress, bool)>,
    /// The nodes with a lease, once they are read.
    nodes: Option<Vec<NodeRow>>,
}

/// A process that owns a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveOwner {
    /// Its process id; `None` for a process on another node.
    pub pid: Option<u32>,
}

impl LiveOwner {
    pub(crate) fn this_process() -> LiveOwner {
        LiveOwner { pid: Some(std::process::id()) }
    }
}

impl Owners<'_> {
    /// Returns whether a live process owns the session with this row.
    pub(crate) async fn owns(&mut self, row: &SessionRow) -> Result<bool> {
        self.owner(row).await.map(|owner| owner.is_some())
    }

    /// Returns the live process that owns the session with this row.
    pub(crate) async fn owner(&mut self, row: &SessionRow) -> Result<Option<LiveOwner>> {
        let sessions = self.sessions;
        let owner = if sessions.store.has_nodes() {
            let Some(incarnation) = row.owner else { return Ok(None) };
            if incarnation == sessions.store.incarnation() {
                return Ok(sessions.owns(&row.id).then(LiveOwner::this_process));
            }
            let nodes = match &self.nodes {
                Some(nodes) => nodes,
                None => self.nodes.insert(sessions.store.nodes().await?),
            };
            nodes.iter().find(|node| node.incarnation == incarnation).and_then(|node| sessions.claims.address(node))
        } else {
            sessions.claims.owner(&row.id).await?
        };
        Ok(owner.and_then(|owner| {
            let live = LiveOwner { pid: Some(owner.pid).filter(|_| owner.remote.is_none()) };
            self.is_owner(&row.id, owner).then_some(live)
        }))
    }

    /// Returns whether the process with this address is alive and owns the session that it has
    /// claimed.
    fn is_owner(&mut self, id: &SessionId, owner: PeerAddress) -> bool {
        if self.sessions.peers.is_own(&owner) {
            // An earlier process with the same id may have left the lock file.
            return self.sessions.owns(id);
        }
        if let Some((_, alive)) = self.checked.iter().find(|(checked, _)| *checked == owner) {
            return *alive;
        }
        let alive = self.sessions.peers.is_alive(&owner);
        self.checked.push((owner, alive));
        alive
    }
}

impl Sessions {
    /// Checks owners of sessions for one call.
    pub(crate) fn owners(&self) -> Owners<'_> {
        Owners { sessions: self, checked: Vec::new(), nodes: None }
    }

    /// Returns whether this process has claimed the session or is claiming it.
    fn owns(&self, id: &SessionId) -> bool {
        self.opened(id).is_some_and(|session| session.ownership.try_lock().map_or(true, |lock| lock.is_some()))
    }

    /// Returns the rows of the sessions that other live processes own and that have an open
    /// permission request.
    pub(crate) async fn waiting_elsewhere(&self) -> Result<Vec<SessionRow>> {
        let mut owners = self.owners();
        let mut elsewhere = Vec::new();
        for row in self.store.waiting_sessions(WAITING_SESSIONS_MAX).await? {
            if self.owned(&row.id).is_none() && owners.owns(&row).await? {
                elsewhere.push(row);
            }
        }
        Ok(elsewhere)
    }

    /// Returns the addresses of the nodes with other data directories.
    pub(crate) async fn other_nodes(&self) -> Result<Vec<PeerAddress>> {
        let nodes = self.store.nodes().await?;
        Ok(nodes.iter().filter_map(|node| self.claims.address(node)).filter(|node| node.remote.is_some()).collect())
    }

    /// Returns the addresses of the other live processes that own sessions, or that can own them as
    /// nodes.
    pub(crate) async fn other_processes(&self) -> Result<Vec<PeerAddress>> {
        let owners: Vec<PeerAddress> = match self.store.has_nodes() {
            true => self.store.nodes().await?.iter().filter_map(|node| self.claims.address(node)).collect(),
            false => self.claims.locked().await?.into_iter().map(|(_, owner)| owner).collect(),
        };
        let mut others: Vec<PeerAddress> = Vec::new();
        for owner in owners {
            if !others.contains(&owner) && !self.peers.is_own(&owner) && self.peers.is_alive(&owner) {
                others.push(owner);
            }
        }
        Ok(others)
    }

    /// Returns the rows of the sessions that other live processes own.
    pub(crate) async fn owned_elsewhere(&self) -> Result<Vec<SessionRow>> {
        let mut owners = self.owners();
        let mut rows = Vec::new();
        if self.store.has_nodes() {
            for row in self.store.claimed_sessions(STATUS_EXTERNAL_MAX).await? {
                if self.owned(&row.id).is_none() && owners.owns(&row).await? {
                    rows.push(row);
                }
            }
            return Ok(rows);
        }
        for (id, owner) in self.claims.locked().await? {
            if self.owned(&id).is_some() || !owners.is_owner(&id, owner) {
                continue;
            }
            rows.extend(self.store.session(&id).await?.filter(|row| row.head > 0));
            if rows.len() == STATUS_EXTERNAL_MAX {
                break;
            }
        }
        Ok(rows)
    }
}
