//! The sessions that a connection attends: where its client can be asked, and lends its hands.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Caller;
use super::hands::Hands;
use crate::id::SessionId;
use crate::session::Session;
use crate::session::broker::Attendance;
use crate::session::hands::Lent;

/// Who empties it says that the client is gone.
#[derive(Clone)]
pub struct Presence {
    caller: Caller,
    sessions: Arc<Mutex<HashMap<SessionId, Present>>>,
}

struct Present {
    attendance: Attendance,
    _lent: Lent,
}

impl Presence {
    pub fn new(caller: Caller) -> Presence {
        Presence { caller, sessions: Arc::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Present>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client is there for this opening of a session. False: it was already.
    pub fn attend(&self, session: &Arc<Session>) -> bool {
        let mut sessions = self.sessions();
        if sessions.get(&session.log.id).is_some_and(|present| present.attendance.is_for(&session.broker)) {
            return false;
        }
        let hands = Arc::new(Hands::new(self.caller.clone(), session.log.clone()));
        let present = Present { attendance: session.broker.attend(), _lent: session.lending.lend(hands) };
        sessions.insert(session.log.id.clone(), present);
        true
    }

    /// It is not there any more for a session, except for the opening `open`.
    pub fn leave(&self, id: &SessionId, open: Option<&Arc<Session>>) {
        let mut sessions = self.sessions();
        let stays = |present: &Present| open.is_some_and(|open| present.attendance.is_for(&open.broker));
        if sessions.get(id).is_some_and(|present| !stays(present)) {
            sessions.remove(id);
        }
    }

    pub fn clear(&self) {
        self.sessions().clear();
    }
}
