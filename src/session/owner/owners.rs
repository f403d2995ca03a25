//! Finds the sessions that have a live owner, in this process or another one.

use super::lock;
use crate::error::Result;
use crate::id::SessionId;
use crate::local_socket::PeerAddress;
use crate::session::sessions::Sessions;
use crate::store::SessionRow;

/// Maximum number of sessions of other processes in the status of agents.
const STATUS_EXTERNAL_MAX: usize = 1000;
/// Maximum number of stored sessions that are searched for permission requests of other processes.
const WAITING_SESSIONS_MAX: usize = 1000;

/// Checks owners of sessions. Each process is checked once.
pub(crate) struct Owners<'a> {
    sessions: &'a Sessions,
    checked: Vec<(PeerAddress, bool)>,
}

impl Owners<'_> {
    /// Returns whether a live process owns the session.
    pub(crate) fn owns(&mut self, id: &SessionId) -> bool {
        let Some(owner) = lock::owner(&self.sessions.locks, id) else { return false };
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
        Owners { sessions: self, checked: Vec::new() }
    }

    /// Returns whether this process holds or is taking the lock of the session.
    fn owns(&self, id: &SessionId) -> bool {
        self.opened(id).is_some_and(|session| session.ownership.try_lock().map_or(true, |lock| lock.is_some()))
    }

    /// Returns the rows of the sessions that other live processes own and that have an open
    /// permission request.
    pub(crate) fn waiting_elsewhere(&self) -> Result<Vec<SessionRow>> {
        let mut owners = self.owners();
        let mut rows = self.store.waiting_sessions(WAITING_SESSIONS_MAX)?;
        let owned_here = |id: &SessionId| self.opened(id).is_some_and(|session| session.is_owned());
        rows.retain(|row| !owned_here(&row.id) && owners.owns(&row.id));
        Ok(rows)
    }

    /// Returns the rows of the sessions that other live processes own.
    pub(crate) fn owned_elsewhere(&self) -> Result<Vec<SessionRow>> {
        let mut owners = self.owners();
        let mut rows = Vec::new();
        // The directory does not exist before the first session.
        for entry in std::fs::read_dir(&self.locks).into_iter().flatten().flatten() {
            let Ok(id) = entry.file_name().into_string().map(SessionId::from) else { continue };
            if self.opened(&id).is_some_and(|session| session.is_owned()) || !owners.owns(&id) {
                continue;
            }
            rows.extend(self.store.session(&id)?.filter(|row| row.head > 0));
            if rows.len() == STATUS_EXTERNAL_MAX {
                break;
            }
        }
        Ok(rows)
    }
}
