//! The session of the chat: its events, and the calls of the chat to it.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::api;
use crate::error::{Error, Result};
use crate::id::{MessageId, PermissionId, Seq, SessionId};
use crate::local::{LocalClient, LocalEvents};

/// A followed session.
pub(crate) struct ChatSession {
    client: LocalClient,
    pub id: SessionId,
    pub events: LocalEvents,
}

impl ChatSession {
    /// Follows a session after the seq `after`.
    pub(crate) async fn follow(client: LocalClient, id: SessionId, after: Seq) -> Result<ChatSession> {
        let events = client.follow(&id, after, true).await?;
        Ok(ChatSession { client, id, events })
    }

    /// Calls a method about the session.
    async fn call(&self, name: &str, mut params: Value) -> Result<Value> {
        let row = api::method(name).ok_or_else(|| Error::internal(format!("{name} is not in the method table")))?;
        params["sessionId"] = self.id.as_str().into();
        self.client.call_row(row, params, CancellationToken::new()).await
    }

    /// Sends a message. In an idle session it starts a turn; in a busy one it joins the running
    /// turn (`steer`) or waits for its end (`queue`).
    pub(crate) async fn message(&self, text: &str, delivery: &str) -> Result<()> {
        let params = json!({ "parts": [{ "type": "text", "text": text }], "delivery": delivery });
        self.call("_nuncio/session/message", params).await.map(drop)
    }

    /// Cancels the running turn.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.call("session/cancel", json!({})).await.map(drop)
    }

    /// Removes a message that waits.
    pub(crate) async fn remove_queued(&self, id: &MessageId) -> Result<()> {
        self.call("_nuncio/session/queue/remove", json!({ "messageId": id })).await.map(drop)
    }

    /// Answers a permission request.
    pub(crate) async fn answer(&self, id: &PermissionId, option: &str, reason: Option<&str>) -> Result<()> {
        let row = api::method("_nuncio/permission/answer").ok_or_else(|| Error::internal("no method answers requests"))?;
        let params = json!({ "permissionId": id, "optionId": option, "reason": reason });
        self.client.call_row(row, params, CancellationToken::new()).await.map(drop)
    }

    /// Sets the mode.
    pub(crate) async fn set_mode(&self, mode: &str) -> Result<()> {
        self.call("session/set_mode", json!({ "modeId": mode })).await.map(drop)
    }

    /// Sets an option, for example the model.
    pub(crate) async fn set_option(&self, option: &str, value: &str) -> Result<()> {
        self.call("session/set_config_option", json!({ "configId": option, "value": value })).await.map(drop)
    }

    /// Returns the model, the mode and the hosted agent of the session.
    pub(crate) fn settings(&self) -> Option<(Option<String>, String, Option<String>)> {
        let session = self.client.app().sessions_now()?.opened(&self.id)?;
        Some(session.log.state(|state| (state.model.clone(), state.mode.to_string(), state.agent.clone())))
    }
}
