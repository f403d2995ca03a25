//! The queued messages of a session: list, edit and remove.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::api::views::attachment::with_attachments;
use crate::api::views::view::SessionParams;
use crate::content::Part;
use crate::error::{Error, Result};
use crate::event::{Delivery, QueuedMessage};
use crate::id::{MessageId, Seq, SessionId};
use crate::session::message::QueueChange;

/// A queued message.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueuedMessage")]
pub(crate) struct QueuedMessageView {
    #[serde(flatten)]
    message: QueuedMessage,
    /// Seq of the message's `message.queued`.
    seq: Seq,
}

/// The queued messages of a session, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Queue {
    messages: Vec<QueuedMessageView>,
}

pub(crate) struct ListQueue;

impl Method for ListQueue {
    type Params = SessionParams;
    type Result = Queue;
    const NAME: &'static str = "_nuncio/session/queue";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/queue")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the messages that wait for their delivery, oldest first. Prompts of an editor that wait for the end of the running \
         turn are not listed: the editor can cancel them.";

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<Queue>> {
        let session = cx.open_read_only(&params.session_id).await?;
        let messages = session.log.state(|state| {
            state.queue.iter().map(|waiting| QueuedMessageView { message: waiting.queued(), seq: waiting.seq }).collect()
        });
        Ok(Reply::new(Queue { messages }))
    }
}

/// Changes of a queued message. An absent field does not change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EditQueuedParams {
    session_id: SessionId,
    message_id: MessageId,
    #[schemars(length(min = 1))]
    parts: Option<Vec<Part>>,
    delivery: Option<Delivery>,
}

/// The change was recorded before the message was delivered.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct QueueChangeResult {}

pub(crate) struct EditQueue;

impl Method for EditQueue {
    type Params = EditQueuedParams;
    type Result = QueueChangeResult;
    const NAME: &'static str = "_nuncio/session/queue/edit";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "messageId": "msg_01", "parts": [{"type": "text", "text": "And the docs, please."}], "delivery": "steer"}"#;
    const ROUTES: &'static [Route] = &[Route::put("/v1/sessions/{sessionId}/queue/{messageId}")];
    const SCOPE: Scope = Scope::Owner;
    const DOC: &'static str = "Changes the content or the delivery of a queued message, which keeps its place. A message that was delivered or removed \
         is not_found.";

    async fn call(cx: CallContext, params: EditQueuedParams) -> Result<Reply<QueueChangeResult>> {
        cx.client.authorized()?;
        let EditQueuedParams { session_id: id, message_id, parts, delivery } = params;
        if parts.is_none() && delivery.is_none() {
            return Err(Error::invalid_params("parts: give parts, delivery or both"));
        }
        if parts.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::invalid_params("parts: is empty"));
        }
        let parts = match parts {
            Some(parts) => Some(with_attachments(&cx, &id, parts).await?),
            None => None,
        };
        change(cx, &id, message_id, QueueChange::Edit { parts, delivery }).await
    }
}

/// Selects a queued message.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RemoveQueuedParams {
    pub session_id: SessionId,
    pub message_id: MessageId,
}

pub(crate) struct RemoveFromQueue;

impl Method for RemoveFromQueue {
    type Params = RemoveQueuedParams;
    type Result = QueueChangeResult;
    const NAME: &'static str = "_nuncio/session/queue/remove";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "messageId": "msg_01"}"#;
    const ROUTES: &'static [Route] = &[Route::delete("/v1/sessions/{sessionId}/queue/{messageId}")];
    const SCOPE: Scope = Scope::Owner;
    const DOC: &'static str =
        "Removes a queued message, which is then not delivered. A message that was delivered or removed is not_found.";

    async fn call(cx: CallContext, params: RemoveQueuedParams) -> Result<Reply<QueueChangeResult>> {
        cx.client.authorized()?;
        change(cx, &params.session_id, params.message_id, QueueChange::Remove).await
    }
}

async fn change(cx: CallContext, session: &SessionId, message: MessageId, change: QueueChange) -> Result<Reply<QueueChangeResult>> {
    let session = cx.owned(session).await?;
    let seq = session.change_queued(message, change, cx.client.actor()).await?;
    Ok(Reply::new(QueueChangeResult {}).after(session.log.id.clone(), seq))
}
