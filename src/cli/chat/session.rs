//! The session of the chat: its events, and the calls of the chat to it.

use std::path::PathBuf;

use crate::api::{
    AnswerPermission, AnswerPermissionParams, CancelTurn, ListTurns, MessageParams, PageParams, RemoveFromQueue,
    RemoveQueuedParams, SendMessage, SessionParams, SetConfigOption, SetMode, SetModeParams, SetOptionParams,
};
use crate::client::{SessionClient, SessionEvents};
use crate::content::{Part, ReviewAnswer};
use crate::error::Result;
use crate::event::Delivery;
use crate::id::{MessageId, PermissionId, Seq, SessionId};
use crate::session::permissions::broker::Responder;

/// Maximum number of pages of turns that are read.
const PAGES_MAX: usize = 1000;
/// Number of turns on a page.
const PAGE: usize = 200;

/// A followed session.
pub(crate) struct ChatSession {
    pub client: SessionClient,
    pub id: SessionId,
    pub events: SessionEvents,
}

impl ChatSession {
    pub(crate) async fn follow(client: SessionClient, id: SessionId, after: Seq) -> Result<ChatSession> {
        let events = client.follow(&id, after, Some(Responder::Person)).await?;
        Ok(ChatSession { client, id, events })
    }

    pub(crate) fn params(&self) -> SessionParams {
        SessionParams { session_id: self.id.clone() }
    }

    /// Sends a message. In an idle session it starts a turn.
    pub(crate) async fn message(&self, parts: Vec<Part>, delivery: Delivery) -> Result<()> {
        let params = MessageParams { delivery, ..MessageParams::new(&self.id, parts) };
        self.client.call::<SendMessage>(params).await.map(drop)
    }

    /// Adds a message to the conversation without starting a turn.
    pub(crate) async fn note(&self, text: &str) -> Result<()> {
        let params = MessageParams { auto_run: false, ..MessageParams::new(&self.id, vec![Part::text(text)]) };
        self.client.call::<SendMessage>(params).await.map(drop)
    }

    /// Cancels the running turn.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.client.call::<CancelTurn>(self.params()).await
    }

    pub(crate) async fn remove_queued(&self, id: &MessageId) -> Result<()> {
        let params = RemoveQueuedParams { session_id: self.id.clone(), message_id: id.clone() };
        self.client.call::<RemoveFromQueue>(params).await.map(drop)
    }

    /// Answers a permission request. `review` has decisions about parts of a review of changes.
    pub(crate) async fn answer(
        &self,
        id: &PermissionId,
        option: &str,
        reason: Option<&str>,
        review: Option<&ReviewAnswer>,
    ) -> Result<()> {
        let mut params = AnswerPermissionParams::new(id.clone(), Some(option.into()), None, reason.map(String::from));
        params.hunks = review.map(|review| review.hunks.clone()).unwrap_or_default();
        self.client.call::<AnswerPermission>(params).await.map(drop)
    }

    pub(crate) async fn set_mode(&self, mode: &str) -> Result<()> {
        self.client.call::<SetMode>(SetModeParams { session_id: self.id.clone(), mode_id: mode.into() }).await.map(drop)
    }

    /// Sets an option, for example the model.
    pub(crate) async fn set_option(&self, option: &str, value: &str) -> Result<()> {
        self.client.call::<SetConfigOption>(SetOptionParams::new(&self.id, option, value)).await.map(drop)
    }
}

/// Returns the directory of the drafts of a session.
pub(crate) fn draft_directory(client: &SessionClient, session: &SessionId) -> PathBuf {
    let name = client.server().map(|server| server.file_name(session));
    client.app().places.data.join("drafts").join(name.as_deref().unwrap_or(session.as_str()))
}

/// Returns the seq before the first event of the last turns of a session, and the number of turns
/// before them.
pub(crate) async fn before_last_turns(client: &SessionClient, id: &SessionId, turns_max: usize) -> Result<(Seq, usize)> {
    let mut params = PageParams { session_id: id.clone(), cursor: None, limit: Some(PAGE) };
    let mut firsts = Vec::new();
    for _ in 0..PAGES_MAX {
        let page = client.call::<ListTurns>(params.clone()).await?;
        firsts.extend(page.turns.iter().map(|turn| turn.first_seq));
        if page.next_cursor.is_none() {
            break;
        }
        params.cursor = page.next_cursor;
    }
    let hidden = firsts.len().saturating_sub(turns_max);
    Ok((firsts.get(hidden).map_or(0, |first| first.saturating_sub(1)), hidden))
}
