//! Methods that change a session between turns: its title, system prompt and tools, and the
//! messages that the model sees.

use globset::Glob;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::method::{Method, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::content::{Part, Role, plain_text};
use crate::error::{Error, Result};
use crate::event::{Body, ReplacedMessage, SessionChange};
use crate::id::{Seq, SessionId};

/// Changes of a session. An absent field does not change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ConfigureParams {
    session_id: SessionId,
    title: Option<String>,
    /// Replaces the system prompt. `null` removes the session's own one.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>")]
    system_prompt: Option<Option<String>>,
    /// Names or globs of the tools that the model gets. `null` stands for all tools.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<Vec<String>>")]
    tools: Option<Option<Vec<String>>>,
}

/// Deserializes a field that is present, so that `null` differs from an absent field.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The event of a change.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeResult {
    /// Seq of the event.
    seq: Seq,
}

pub(crate) struct ConfigureSession;

impl Method for ConfigureSession {
    type Params = ConfigureParams;
    type Result = ChangeResult;
    const NAME: &'static str = "_nuncio/session/configure";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "tools": ["read", "git_*"]}"#;
    const ROUTES: &'static [Route] = &[Route::patch("/v1/sessions/{sessionId}")];
    const SCOPE: Scope = Scope::Owner;
    const DOC: &'static str = "Changes the title, the system prompt or the tools of an idle session. Calls of other tools fail.";

    async fn call(cx: CallContext, params: ConfigureParams) -> Result<Reply<ChangeResult>> {
        cx.client.authorized()?;
        let ConfigureParams { session_id, title, system_prompt, tools } = params;
        for pattern in tools.iter().flatten().flatten() {
            Glob::new(pattern).map_err(|error| Error::invalid_params(format!("tools: {error}")))?;
        }
        let change = SessionChange {
            title,
            // An empty prompt stands for none.
            system_prompt: system_prompt.map(Option::unwrap_or_default),
            tools: tools.map(|tools| tools.unwrap_or_else(|| vec!["*".into()])),
            ..SessionChange::default()
        };
        if change == SessionChange::default() {
            return Err(Error::invalid_params("title, systemPrompt or tools is required"));
        }
        let seq = cx.owned(&session_id).await?.change_between_turns(Body::SessionUpdated { change }).await?;
        Ok(Reply::new(ChangeResult { seq }))
    }
}

/// The messages that replace those of a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReplaceParams {
    session_id: SessionId,
    /// In order; the first one is a message to the model. Empty: the model sees no earlier message.
    messages: Vec<ReplacedMessage>,
}

pub(crate) struct ReplaceMessages;

impl Method for ReplaceMessages {
    type Params = ReplaceParams;
    type Result = ChangeResult;
    const NAME: &'static str = "_nuncio/session/replace_messages";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "messages": [{"role": "user", "parts": [{"type": "text", "text": "We work on the parser."}]}]}"#;
    const ROUTES: &'static [Route] = &[Route::put("/v1/sessions/{sessionId}/messages")];
    const SCOPE: Scope = Scope::Owner;
    const DOC: &'static str = "Replaces the messages that the model of an idle session sees. The roles are user, system and assistant; an assistant's \
         message has only text. The log keeps all earlier messages.";

    async fn call(cx: CallContext, params: ReplaceParams) -> Result<Reply<ChangeResult>> {
        cx.client.authorized()?;
        for (index, message) in params.messages.iter().enumerate() {
            check(index, message).map_err(|problem| Error::invalid_params(format!("messages[{index}]: {problem}")))?;
        }
        let body = Body::MessagesReplaced { messages: params.messages };
        let seq = cx.owned(&params.session_id).await?.change_between_turns(body).await?;
        Ok(Reply::new(ChangeResult { seq }))
    }
}

/// Checks a message, so that every provider accepts the conversation.
fn check(index: usize, message: &ReplacedMessage) -> Result<(), &'static str> {
    let only_text = message.parts.iter().all(|part| matches!(part, Part::Text { .. }));
    let plain = message.parts.iter().all(|part| matches!(part, Part::Text { .. } | Part::Image { .. } | Part::Resource { .. }));
    match message.role {
        _ if message.parts.is_empty() => Err("parts is empty"),
        Role::User | Role::System if !plain => Err("a message can have only text, images and resources with text"),
        Role::User | Role::System => Ok(()),
        Role::Assistant if index == 0 => Err("the first message must have the role user or system"),
        Role::Assistant if !only_text => Err("an assistant's message can have only text"),
        Role::Assistant if plain_text(&message.parts).trim().is_empty() => Err("an assistant's message must have text"),
        Role::Assistant => Ok(()),
        Role::Thought | Role::Custom => Err("the role must be user, system or assistant"),
    }
}
