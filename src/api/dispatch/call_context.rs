//! The context of a call: the application, the calling client, and the state of its request.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::call_order::CallPlace;
use super::client::Client;
use crate::api::dispatch::app::App;
use crate::error::{Error, Result};
use crate::id::{MessageId, Seq, SessionId, TurnId};
use crate::session::{OwnedSession, RemoteCall, Session, Sessions, closed_before_call};

/// The context of a call: the application, the calling client, and the state of its request.
#[derive(Clone)]
pub struct CallContext {
    pub app: Arc<App>,
    pub client: Arc<Client>,
    /// Cancelled when the client cancels the request or its connection is closed.
    pub cancel: CancellationToken,
    /// Cancelled by the transport of a local client once the response is in the output buffer.
    pub answered: CancellationToken,
    /// Receives the started turn, for a transport that streams the turn's events while the prompt
    /// call is still running.
    pub turn_started: Option<Arc<Mutex<Option<oneshot::Sender<TurnStart>>>>>,
    /// The id of the message that the call adds to a session. If the owner of the session dies
    /// during the call, the id tells whether the message was recorded.
    pub message_id: MessageId,
    /// True if another process forwarded the call to this process, which must not forward it again.
    pub forwarded: bool,
    /// The last event of the session before the first attempt of a call that is repeated, because
    /// the process that ran it has died.
    pub repeated_after: Option<Seq>,
    /// The only generation of the session in which a forwarded call may add its message.
    pub generation: Option<i64>,
    /// The place of the call in the order of the calls to its session. `None` for a method without
    /// a session, or that runs in any process.
    pub place: Option<Arc<CallPlace>>,
}

/// A turn that has just started. The seqs of the turn's events are greater than `after`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnStart {
    pub session: SessionId,
    pub turn: TurnId,
    pub after: Seq,
}

impl CallContext {
    /// Creates a context without a receiver of the started turn.
    pub(crate) fn new(app: Arc<App>, client: Arc<Client>, cancel: CancellationToken) -> CallContext {
        CallContext {
            app,
            client,
            cancel,
            answered: CancellationToken::new(),
            turn_started: None,
            message_id: MessageId::new(),
            forwarded: false,
            repeated_after: None,
            generation: None,
            place: None,
        }
    }

    /// Lets the next call to the session start, before this one has ended.
    pub(in crate::api) fn decided(&self) {
        self.place.iter().for_each(|place| place.set_decided());
    }

    /// Checks that session `id` exists and that the caller has access to it. Returns the sessions
    /// of the application.
    pub(in crate::api) async fn authorize(&self, id: &SessionId) -> Result<&Arc<Sessions>> {
        let sessions = self.app.sessions().await?;
        self.client.require_session(id, &sessions.cwd(id).await?)?;
        Ok(sessions)
    }

    /// Returns the session for a method that runs in the process that owns the session
    /// ([`crate::api::Scope::Owner`]), after checking that the caller has access to it. Fails if
    /// the session was closed or released during the call.
    pub(in crate::api) async fn owned(&self, id: &SessionId) -> Result<OwnedSession> {
        self.owned_or_read(id).await?.owned()
    }

    /// Returns the session as [`CallContext::owned`] does, for a method that also runs in a process
    /// that only reads the session ([`crate::api::Scope::OwnerOrReader`]).
    pub(in crate::api) async fn owned_or_read(&self, id: &SessionId) -> Result<Session> {
        if let Some(session) = self.opened(id) {
            self.check_access(&session)?;
            let call = RemoteCall { id: self.message_id.clone(), repeated_after: self.repeated_after, generation: self.generation };
            let is_remote = self.forwarded || self.repeated_after.is_some();
            return Ok(session.for_call(Some(call).filter(|_| is_remote)));
        }
        let sessions = self.app.sessions_now().ok_or_else(|| Error::internal("the store is not open"))?;
        self.client.require_session(id, &sessions.cwd(id).await?)?;
        Err(closed_before_call(id))
    }

    /// Opens session `id` read-only. Fails if the session was deleted, also if it is still open
    /// here for the clients that read its last events.
    pub(in crate::api) async fn open_read_only(&self, id: &SessionId) -> Result<Session> {
        let session = self.authorize(id).await?.open_read_only(id).await?;
        let (deleted, cwd) = session.log.state(|state| (state.deleted, state.cwd.clone()));
        if deleted {
            return Err(Error::not_found(format!("session {id} not found")));
        }
        // The row of the session may name another directory than its log.
        self.client.require_session(id, &cwd).map(|()| session)
    }

    /// Checks that the caller has access to an open session: to all of its directories.
    pub(in crate::api) fn check_access(&self, session: &Session) -> Result<()> {
        let (cwd, more) = session.log.state(|state| (state.cwd.clone(), state.additional_directories().to_vec()));
        std::iter::once(&cwd).chain(&more).try_for_each(|directory| self.client.require_session(&session.log.id, directory))
    }

    /// Returns session `id` if it is open in this process.
    pub(in crate::api) fn opened(&self, id: &SessionId) -> Option<Session> {
        self.app.sessions_now().and_then(|sessions| sessions.opened(id))
    }

    /// Sends the started turn to the transport, if the transport waits for the turn.
    pub(in crate::api) fn report_started(&self, started: TurnStart) {
        let waiting = self.turn_started.as_ref().and_then(|waiting| waiting.lock().take());
        if let Some(waiting) = waiting {
            let _ = waiting.send(started);
        }
    }
}
