//! The session of the chat: its events, and the calls of the chat to it.

use serde_json::{Value, json};

use super::client::{ChatClient, ChatEvents};
use crate::content::ReviewAnswer;
use crate::error::Result;
use crate::id::{MessageId, PermissionId, Seq, SessionId};

/// A followed session.
pub(crate) struct ChatSession {
    pub client: ChatClient,
    pub id: SessionId,
    pub events: ChatEvents,
}

impl ChatSession {
    pub(crate) async fn follow(client: ChatClient, id: SessionId, after: Seq) -> Result<ChatSession> {
        let events = client.follow(&id, after).await?;
        Ok(ChatSession { client, id, events })
    }

    /// Calls a method about the session.
    pub(crate) async fn call(&self, name: &str, mut params: Value) -> Result<Value> {
        params["sessionId"] = self.id.as_str().into();
        self.client.call(name, params).await
    }

    /// Sends a message. In an idle session it starts a turn; in a busy one it joins the running
    /// turn (`steer`) or waits for its end (`queue`).
    pub(crate) async fn message(&self, parts: Vec<Value>, delivery: &str) -> Result<()> {
        self.call("_nuncio/session/message", json!({ "parts": parts, "delivery": delivery })).await.map(drop)
    }

    /// Adds a message to the conversation without starting a turn.
    pub(crate) async fn note(&self, text: &str) -> Result<()> {
        let params = json!({ "parts": [{ "type": "text", "text": text }], "autoRun": false });
        self.call("_nuncio/session/message", params).await.map(drop)
    }

    /// Cancels the running turn.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.call("session/cancel", json!({})).await.map(drop)
    }

    pub(crate) async fn remove_queued(&self, id: &MessageId) -> Result<()> {
        self.call("_nuncio/session/queue/remove", json!({ "messageId": id })).await.map(drop)
    }

    /// Answers a permission request. `review` has decisions about parts of a review of changes.
    pub(crate) async fn answer(
        &self,
        id: &PermissionId,
        option: &str,
        reason: Option<&str>,
        review: Option<&ReviewAnswer>,
    ) -> Result<()> {
        let mut params = json!({ "permissionId": id, "optionId": option, "reason": reason });
        if let Some(review) = review {
            params["hunks"] = json!(review.hunks);
        }
        self.client.call("_nuncio/permission/answer", params).await.map(drop)
    }

    pub(crate) async fn set_mode(&self, mode: &str) -> Result<()> {
        self.call("session/set_mode", json!({ "modeId": mode })).await.map(drop)
    }

    /// Sets an option, for example the model.
    pub(crate) async fn set_option(&self, option: &str, value: &str) -> Result<()> {
        self.call("session/set_config_option", json!({ "configId": option, "value": value })).await.map(drop)
    }
}
