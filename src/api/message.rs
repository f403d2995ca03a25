//! Messages from outside of a prompt: to a session that may be busy, and a turn's prompt once more.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Cx;
use super::attachment::with_attachments;
use super::method::{Method, Reply, Route};
use crate::content::{Part, Role};
use crate::error::{Error, Result};
use crate::event::{Body, Delivery};
use crate::id::{MessageId, Seq, SessionId, TurnId};
use crate::limits;
use crate::session::Session;
use crate::session::queue::{self, Queued};

/// Who speaks, of those who may from outside.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Speaker {
    #[default]
    User,
    System,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageParams {
    session_id: SessionId,
    #[serde(default)]
    role: Speaker,
    #[schemars(length(min = 1))]
    parts: Vec<Part>,
    /// Starts a turn with it, now or when the running one has ended; without, it is only added. True when it is missing.
    #[serde(default = "yes")]
    auto_run: bool,
    /// How it reaches a session that is busy.
    #[serde(default)]
    delivery: Delivery,
}

fn yes() -> bool {
    true
}

/// `turnId`: the turn that it started, or that it steers; missing while it waits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    message_id: MessageId,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<TurnId>,
}

pub struct Message;

impl Method for Message {
    type Params = MessageParams;
    type Result = Sent;
    const NAME: &'static str = "_nuncio/session/message";
    const EXAMPLE: &'static str =
        r#"{"sessionId": "sess_01", "parts": [{"type": "text", "text": "And the tests, please."}], "delivery": "steer"}"#;
    const ROUTE: Option<Route> = Some(Route::post("/v1/sessions/{sessionId}/messages").status(202));
    const DOC: &'static str = "Adds a message and answers as soon as it is in the log. Idle: it starts a turn. Busy: it waits for the end of the \
         running turn (queue), or goes into it at its next step (steer). What waits when a turn is cancelled, fails or is interrupted, or when nuncio ends, \
         goes first into the next one.";

    async fn call(cx: Cx, params: MessageParams) -> Result<Reply<Sent>> {
        cx.client.authorized()?;
        let MessageParams { session_id: id, role, parts, auto_run, delivery } = params;
        if parts.is_empty() {
            return Err(Error::invalid_params("parts: is empty"));
        }
        let role = match role {
            Speaker::User => Role::User,
            Speaker::System => Role::System,
        };
        let parts = with_attachments(&cx, &id, parts)?;
        let message_id = MessageId::new();
        let message = queue::Message { id: message_id.clone(), role, parts };
        let queued = Queued { message, delivery, auto_run, by: Some(cx.client.id.clone()), seq: 0 };
        let place = |session: &Arc<Session>| {
            cx.sees(session)?;
            let after = session.log.head();
            let placed = session.place(&queued)?;
            cx.client.show(session, after);
            Ok::<_, Error>((session.clone(), placed))
        };
        // As with a prompt, no `.await` before it has its place where the session is open.
        let (session, placed) = match cx.opened(&id) {
            Some(session) => place(&session)?,
            None => cx.entered(&id).await?.with(&id, place).await??,
        };
        let turn_id = session.arrived(placed, &queued).await?;
        Ok(Reply::new(Sent { message_id, turn_id }))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryParams {
    session_id: SessionId,
    turn_id: TurnId,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retried {
    /// The new turn.
    turn_id: TurnId,
}

pub struct Retry;

impl Method for Retry {
    type Params = RetryParams;
    type Result = Retried;
    const NAME: &'static str = "_nuncio/session/retry";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "turnId": "turn_01"}"#;
    const ROUTE: Option<Route> = Some(Route::post("/v1/sessions/{sessionId}/turns/{turnId}/retry").status(202));
    const DOC: &'static str = "Starts a new turn with the prompt of an earlier one, in the context which that one had: the model no longer sees that turn \
         and what followed it.";

    async fn call(cx: Cx, params: RetryParams) -> Result<Reply<Retried>> {
        cx.client.authorized()?;
        let session = cx.session(&params.session_id).await?;
        let first = session.log.state(|state| state.turns.get(&params.turn_id).map(|turn| turn.first_seq));
        let first = first.ok_or_else(|| Error::not_found(format!("no turn {}", params.turn_id)))?;
        let reading = session.clone();
        let retried = params.turn_id.clone();
        let read = tokio::task::spawn_blocking(move || prompt_of(&reading, &retried, first)).await;
        let prompt = read.map_err(|_| Error::internal("reading a turn panicked"))??;
        let after = session.log.head();
        let mut turn = session.retry_turn(prompt, &cx.client.id, params.turn_id)?;
        cx.client.show(&session, after);
        turn.opened().await?;
        Ok(Reply::new(Retried { turn_id: turn.id }))
    }
}

/// The messages with which a turn began, as one.
fn prompt_of(session: &Session, turn: &TurnId, first: Seq) -> Result<Vec<Part>> {
    let mut prompt = Vec::new();
    for event in session.log.page(first - 1, limits::PAGE_EVENTS, false)? {
        match &event.body {
            _ if event.turn_id.as_ref() != Some(turn) => {}
            Body::MessageCompleted { role: Role::User | Role::System, parts, .. } => prompt.extend(parts.iter().cloned()),
            Body::TurnStarted { .. } | Body::SessionUpdated { .. } => {}
            _ => break,
        }
    }
    if prompt.is_empty() {
        return Err(Error::not_found(format!("turn {turn} has no prompt")));
    }
    Ok(prompt)
}
