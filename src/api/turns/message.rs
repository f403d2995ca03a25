//! Messages to a session that may be busy, and retries of a turn's prompt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::method::{Method, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::api::views::attachment::with_attachments;
use crate::content::{Part, Role};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Delivery, MessageExtra};
use crate::id::{MessageId, Seq, SessionId, TurnId};
use crate::limits;
use crate::session::Session;
use crate::session::message::{IncomingMessage, WaitingMessage};

/// Maximum length of the type of a custom message, in characters.
const CUSTOM_TYPE_CHARS_MAX: usize = 100;

/// Role of a message that a client sends.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Speaker")]
pub(crate) enum SenderRole {
    #[default]
    User,
    /// A message between clients, which no model receives. It starts no turn.
    Custom,
    #[schemars(skip)]
    System,
    #[schemars(skip)]
    Tool,
}

/// A message and how it is delivered.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MessageParams {
    pub session_id: SessionId,
    #[serde(default)]
    pub role: SenderRole,
    /// The type of a message of role `custom`, which requires it.
    pub custom_type: Option<String>,
    /// Data of a message of role `custom`.
    pub details: Option<Value>,
    #[schemars(length(min = 1))]
    pub parts: Vec<Part>,
    /// If true, the message starts a turn, now or after the running turn. If false, it is only
    /// added to the conversation. True when it is missing.
    #[serde(default = "yes")]
    pub auto_run: bool,
    /// How the message reaches a busy session.
    #[serde(default)]
    pub delivery: Delivery,
}

impl MessageParams {
    /// Creates a message of the user that starts a turn.
    pub(crate) fn new(session: &SessionId, parts: Vec<Part>) -> MessageParams {
        let (session_id, role, delivery) = (session.clone(), SenderRole::User, Delivery::default());
        MessageParams { session_id, role, custom_type: None, details: None, parts, auto_run: true, delivery }
    }
}

fn yes() -> bool {
    true
}

/// An accepted message. `turnId` is the turn that it started or that it steers; missing while the
/// message waits.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SentMessage {
    message_id: MessageId,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<TurnId>,
}

pub(crate) struct SendMessage;

impl Method for SendMessage {
    type Params = MessageParams;
    type Result = SentMessage;
    const NAME: &'static str = "_nuncio/session/message";
    const EXAMPLE: &'static str =
        r#"{"sessionId": "sess_01", "parts": [{"type": "text", "text": "And the tests, please."}], "delivery": "steer"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/messages").status(202)];
    const SCOPE: Scope = Scope::Owner;
    const ADDS_MESSAGE: bool = true;
    const DOC: &'static str = "Adds a message and answers as soon as it is in the log. In an idle session it starts a turn. In a busy session it \
         waits for the end of the running turn (queue), or joins that turn at its next step (steer). Messages that still wait when a turn is cancelled, fails \
         or is interrupted, or when nuncio ends, are delivered first in the next turn. A message of role custom is only stored and shown to clients.";

    async fn call(cx: CallContext, params: MessageParams) -> Result<Reply<SentMessage>> {
        cx.client.authorized()?;
        let MessageParams { session_id: id, role, custom_type, details, parts, auto_run, delivery } = params;
        if parts.is_empty() {
            return Err(Error::invalid_params("parts: is empty"));
        }
        check_custom(role, custom_type.as_deref(), details.is_some())?;
        let auto_run = auto_run && !matches!(role, SenderRole::Custom);
        let role = match role {
            SenderRole::User => Role::User,
            SenderRole::Custom => Role::Custom,
            SenderRole::System => {
                return Err(Error::invalid_params("role: a message is not part of the system prompt")
                    .hint("use systemPrompt of the session"));
            }
            SenderRole::Tool => {
                return Err(Error::invalid_params("role: a message is not the result of a call")
                    .hint("replace the conversation: PUT /v1/sessions/{sessionId}/messages"));
            }
        };
        let parts = with_attachments(&cx, &id, parts).await?;
        let message_id = cx.message_id.clone();
        let message = IncomingMessage {
            id: message_id.clone(),
            role,
            parts,
            extra: MessageExtra { custom_type, details, ..MessageExtra::default() },
            by_model: false,
            is_forwarded: cx.forwarded,
        };
        let queued = WaitingMessage { message, delivery, auto_run, by: Some(cx.client.actor()), seq: 0 };
        let session = cx.owned(&id).await?;
        let after = session.log.head();
        let placement = session.place(&queued)?;
        cx.decided();
        cx.client.show(&session, after);
        let turn_id = placement.arrived(&session).await?;
        Ok(Reply::new(SentMessage { message_id, turn_id }))
    }
}

/// Starts a turn with a prompt, like [`SendMessage`].
pub(in crate::api) async fn send_prompt(cx: CallContext, session: &SessionId, parts: Vec<Part>) -> Result<Option<TurnId>> {
    SendMessage::call(cx, MessageParams::new(session, parts)).await?.result.map(|sent| sent.turn_id)
}

/// Fails unless a type is given exactly for a custom message.
fn check_custom(role: SenderRole, custom_type: Option<&str>, details: bool) -> Result<()> {
    let valid = |name: &str| !name.is_empty() && name.chars().count() <= CUSTOM_TYPE_CHARS_MAX;
    match (role, custom_type) {
        (SenderRole::Custom, Some(name)) if valid(name) => Ok(()),
        (SenderRole::Custom, _) => Err(Error::invalid_params("customType: required for the role custom, at most 100 characters")),
        (_, None) if !details => Ok(()),
        (_, _) => Err(Error::invalid_params("customType and details: only for the role custom")),
    }
}

/// Selects the turn whose prompt starts the new turn.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RetryParams {
    session_id: SessionId,
    turn_id: TurnId,
}

/// The turn that the retry started.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryResult {
    /// Id of the new turn.
    turn_id: TurnId,
}

pub(crate) struct RetryTurn;

impl Method for RetryTurn {
    type Params = RetryParams;
    type Result = RetryResult;
    const NAME: &'static str = "_nuncio/session/retry";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "turnId": "turn_01"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/turns/{turnId}/retry").status(202)];
    const SCOPE: Scope = Scope::Owner;
    const ADDS_MESSAGE: bool = true;
    const DOC: &'static str = "Starts a new turn with the prompt of an earlier turn, in the context of that turn: the model no longer sees the \
         earlier turn and the turns after it. Queued messages run after the new turn.";

    async fn call(cx: CallContext, params: RetryParams) -> Result<Reply<RetryResult>> {
        cx.client.authorized()?;
        let session = cx.owned(&params.session_id).await?;
        if let Some(agent) = session.log.state(|state| state.settings.agent.clone()) {
            let message = format!("turns of the agent {agent} cannot be retried: their conversation is in the agent");
            return Err(Error::new(Kind::Unsupported, message).hint("send the prompt again as a new message"));
        }
        let first = session.log.state(|state| state.turns.get(&params.turn_id).map(|turn| turn.first_seq));
        let first = first.ok_or_else(|| Error::not_found(format!("no turn {}", params.turn_id)))?;
        if !session.log.state(|state| state.history.has_start_of(&params.turn_id)) {
            let message = format!("turn {} cannot be retried: the conversation before it was summarized", params.turn_id);
            return Err(Error::invalid_params(message).hint("send the prompt again as a new message"));
        }
        let (role, prompt) = prompt_of(&session, &params.turn_id, first).await?;
        let after = session.log.head();
        let message = IncomingMessage { role, ..IncomingMessage::user(cx.message_id.clone(), prompt) };
        let mut turn = session.retry_turn(message, cx.client.actor(), params.turn_id)?;
        cx.decided();
        cx.client.show(&session, after);
        turn.opened().await?;
        Ok(Reply::new(RetryResult { turn_id: turn.id }))
    }
}

/// Returns the parts of all messages that started a turn, and their role: `System` if a message is
/// not of the user. Rejected messages count only if the turn has no others.
async fn prompt_of(session: &Session, turn: &TurnId, first: Seq) -> Result<(Role, Vec<Part>)> {
    let (mut accepted, mut rejected) = (Vec::new(), Vec::new());
    let mut common = Role::User;
    for event in session.log.page(first - 1, limits::PAGE_EVENTS, false).await? {
        match &event.body {
            _ if event.turn_id.as_ref() != Some(turn) => {}
            Body::MessageCompleted { role: role @ (Role::User | Role::System), parts, discarded, .. } => {
                common = if *role == Role::System { Role::System } else { common };
                if *discarded { &mut rejected } else { &mut accepted }.extend(parts.iter().cloned());
            }
            // Later messages of the user steered the turn.
            Body::StepStarted { .. } => break,
            _ => {}
        }
    }
    let prompt = if accepted.is_empty() { rejected } else { accepted };
    if prompt.is_empty() {
        return Err(Error::not_found(format!("turn {turn} has no prompt")));
    }
    Ok((common, prompt))
}
