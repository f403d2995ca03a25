//! The other processes that use an open session.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::limits;
use crate::local_socket::{PeerConnection, Peers};

/// The registration of this process, whose clients can answer permission requests, with the owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::session) enum Registration {
    #[default]
    Unknown,
    /// The request was sent, and the owner has not answered.
    Requested,
    Registered,
}

/// The other processes that use an open session: its owner, if this process only reads the session,
/// and the processes whose clients can answer its permission requests.
pub(crate) struct OtherProcesses {
    peers: Arc<Peers>,
    /// Notified when another process has taken the session, so that this process reads its events.
    pub(in crate::session) external: Arc<Notify>,
    /// The connection to the process that owned the session last.
    owner: Mutex<Option<Arc<PeerConnection>>>,
    /// Registration with the owner, another process.
    pub(in crate::session) registration: watch::Sender<Registration>,
    /// Until this time, permission requests wait for clients of other processes that can answer.
    pub(in crate::session) responders_wait_until: Mutex<Option<Instant>>,
}

impl OtherProcesses {
    pub(in crate::session) fn new(peers: Arc<Peers>, external: Arc<Notify>) -> OtherProcesses {
        let (owner, registration, responders_wait_until) = Default::default();
        OtherProcesses { peers, external, owner, registration, responders_wait_until }
    }

    /// Returns the connection to the owner, if one is open.
    pub(crate) fn owner_connection(&self) -> Option<Arc<PeerConnection>> {
        self.owner.lock().clone().filter(|connection| !connection.is_closed())
    }

    /// Sets the connection to the owner; `None` if the process at the other end is not the owner.
    pub(crate) fn set_owner_connection(&self, connection: Option<Arc<PeerConnection>>) {
        *self.owner.lock() = connection;
    }

    /// Records that this process has taken the session.
    pub(in crate::session) fn taken_here(&self) {
        self.set_owner_connection(None);
        let due = self.peers.has_others().then(|| Instant::now() + limits::RESPONDER_WAIT);
        *self.responders_wait_until.lock() = due;
    }
}
