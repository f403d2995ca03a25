//! A session of the embedding program.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::agent_state::AgentState;
use crate::api::{DeleteSession, SessionParams, SetMode, SetModeParams};
use crate::client::SessionEvents;
use crate::error::Result;
use crate::event::Event;
use crate::id::SessionId;
use crate::options::Mode;

/// A session: a conversation in a directory. Its events are in the agent's store, so that it can be
/// continued with [`Agent::resume`](super::Agent::resume). Clones are the same session.
#[derive(Clone)]
pub struct Session {
    pub(super) shared: Arc<AgentState>,
    pub(super) id: SessionId,
    /// The task that passes permission requests to the callback.
    pub(super) _questions: Option<Arc<AbortOnDropHandle<()>>>,
}

impl Session {
    /// Returns the id, with which the session can be resumed.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the events of the session after position `after`, without an end: 0 starts with the
    /// first event.
    pub async fn events(&self, after: u64) -> Result<Events> {
        let events = self.shared.client.follow(&self.id, after, None).await?;
        Ok(Events { events, ready: Vec::new().into_iter(), _session: self.clone() })
    }

    /// Sets the permission mode, from the next tool call on.
    pub async fn set_mode(&self, mode: Mode) -> Result<()> {
        let params = SetModeParams { session_id: self.id.clone(), mode_id: mode.id().into() };
        self.shared.client.call::<SetMode>(params).await.map(drop)
    }

    /// Cancels the running turn and deletes the session with its events and files.
    pub async fn delete(self) -> Result<()> {
        let params = SessionParams { session_id: self.id.clone() };
        self.shared.client.call::<DeleteSession>(params).await.map(drop)
    }
}

/// The events of a session, in the order of its log.
pub struct Events {
    events: SessionEvents,
    ready: std::vec::IntoIter<Arc<Event>>,
    _session: Session,
}

impl Events {
    /// Waits for the next event. Cancel safe. Fails if the session was deleted.
    pub async fn next(&mut self) -> Result<Arc<Event>> {
        loop {
            match self.ready.next() {
                Some(event) => return Ok(event),
                None => self.ready = self.events.next().await?.into_iter(),
            }
        }
    }
}
