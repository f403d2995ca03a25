//! The sessions that a client attends: the client answers the permission requests of these sessions
//! and provides its files and terminals to them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::barrier::AcpConnection;
use super::client_fs::AcpClient;
use crate::api::Client;
use crate::id::SessionId;
use crate::session::Session;
use crate::session::attached_clients::AttachedClient;
use crate::session::permissions::broker::ResponderGuard;

/// The attended sessions. Call [`Presence::end`] when the client disconnects.
#[derive(Clone)]
pub(crate) struct Presence {
    client: Arc<Client>,
    connection: AcpConnection,
    sessions: Arc<Mutex<HashMap<SessionId, AttendedSession>>>,
}

struct AttendedSession {
    attendance: ResponderGuard,
    _client: AttachedClient,
}

impl Presence {
    /// Creates a presence that attends no session yet.
    pub(crate) fn new(client: Arc<Client>, connection: AcpConnection) -> Presence {
        Presence { client, connection, sessions: Arc::default() }
    }

    /// Attends an open session. Returns false if the client attends it already.
    pub(crate) fn attend(&self, session: &Session) -> bool {
        let mut sessions = self.sessions.lock();
        if sessions.get(&session.log.id).is_some_and(|present| present.attendance.is_for(&session.broker)) {
            return false;
        }
        let access = Arc::new(AcpClient::new(self.client.clone(), self.connection.clone(), session.log.clone()));
        let present = AttendedSession {
            attendance: session.broker.register_responder(self.client.responder()),
            _client: session.clients.attach(access),
        };
        sessions.insert(session.log.id.clone(), present);
        true
    }

    /// Stops attending a session, unless the client attends `open`, the currently open instance of
    /// the session.
    pub(crate) fn leave(&self, id: &SessionId, open: Option<&Session>) {
        let mut sessions = self.sessions.lock();
        let stays = |present: &AttendedSession| open.is_some_and(|open| present.attendance.is_for(&open.broker));
        if sessions.get(id).is_some_and(|present| !stays(present)) {
            sessions.remove(id);
        }
    }

    /// Stops attending all sessions, because the process ends with its client.
    pub(crate) fn end(&self) {
        for (_, present) in self.sessions.lock().drain() {
            present.attendance.end();
        }
    }
}
