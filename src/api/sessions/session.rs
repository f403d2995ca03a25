//! Methods that create, load, resume, close and delete sessions.

use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::directories::{directories, directory};
use crate::api::dispatch::method::{FollowChange, MetaFields, Method, NoResult, Reply, Scope};
use crate::api::dispatch::params::deserialize;
use crate::api::dispatch::route::Route;
use crate::api::dispatch::system_prompt::SystemPromptChange;
use crate::api::views::budget;
use crate::api::views::mcp_servers::mcp_servers;
use crate::api::views::options::SessionOptions;
use crate::api::views::view::SessionParams;
use crate::config::NATIVE;
use crate::content::BudgetLimits;
use crate::error::{Error, Result};
use crate::event::{BACKGROUND, Body, DELEGATION, SessionChange};
use crate::id::SessionId;
use crate::options::{Mode, OptionValue, Thinking};
use crate::protocol::acp;
use crate::session::{Session, Sessions};

/// Where a session works, as a client gives it.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionPlace {
    /// The directory. When it is missing, a new session works in the server's directory, the copy
    /// of a session in that of the session, and a stored session keeps its own.
    pub cwd: Option<PathBuf>,
    /// Further directories of the workspace; a copy has none when it is missing.
    pub additional_directories: Option<Vec<PathBuf>>,
    /// The MCP servers that nuncio connects to the session.
    pub mcp_servers: Option<Vec<acp::McpServer>>,
    /// A text that replaces nuncio's own system prompt, `{"append": TEXT}`, or ACP's object.
    #[serde(default)]
    #[schemars(schema_with = "system_prompt_schema")]
    pub system_prompt: Option<Value>,
}

/// Reads a place from the fields of params. serde loses the paths of the fields of a flattened
/// struct, which errors name.
pub(super) fn read_place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SessionPlace, D::Error> {
    let fields = Map::deserialize(deserializer)?;
    deserialize("", Value::Object(fields)).map_err(|error| D::Error::custom(error.message))
}

fn system_prompt_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "object", "null"], "additionalProperties": true })
}

/// A new session.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewSessionParams {
    #[serde(flatten, deserialize_with = "read_place")]
    pub place: SessionPlace,
    pub model: Option<String>,
    #[schemars(with = "Option<String>", extend("default" = null))]
    pub mode: Option<Mode>,
    #[schemars(with = "Option<String>", extend("default" = null))]
    pub thinking: Option<Thinking>,
    pub title: Option<String>,
    /// Name of a hosted agent; without it, nuncio's own agent works in the session.
    pub agent: Option<String>,
    /// Limits of the session and of its turns.
    #[schemars(with = "Option<BudgetLimits>")]
    pub budget: Option<Value>,
}

impl NewSessionParams {
    /// Creates the params of a session in a directory.
    pub(crate) fn in_directory(cwd: PathBuf) -> NewSessionParams {
        let place = SessionPlace { cwd: Some(cwd), ..SessionPlace::default() };
        NewSessionParams { place, ..NewSessionParams::default() }
    }
}

/// A session that a call created.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreatedSession {
    pub session_id: SessionId,
    #[serde(flatten)]
    pub options: SessionOptions,
}

pub(crate) struct NewSession;

impl Method for NewSession {
    type Params = NewSessionParams;
    type Result = CreatedSession;
    const NAME: &'static str = "session/new";
    const EXAMPLE: &'static str = r#"{"cwd": "/home/me/project", "title": "Overview", "mode": "ask"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions").status(201)];
    const DOC: &'static str = "Creates a session in a directory (ACP session setup). `_meta.nuncio`: model, mode, thinking, systemPrompt, title, agent, budget. \
         `systemPrompt`: a prompt that replaces nuncio's own or is added to it; also as `_meta.systemPrompt`, a text or `{append}`.";
    const META: MetaFields = MetaFields {
        params: &["model", "mode", "thinking", "systemPrompt", "title", "agent", "budget"],
        refuses_others: true,
        ..MetaFields::NONE
    };

    async fn call(cx: CallContext, params: NewSessionParams) -> Result<Reply<CreatedSession>> {
        // A prompt of a model, and a tool call that started this process, delegate work.
        let delegated = cx.client.is_model || cx.app.services.depth() > 0;
        let background = cx.app.services.overrides.background.then_some(BACKGROUND);
        create_session(cx, params, delegated.then_some(DELEGATION).or(background)).await
    }
}

/// The origin of sessions of a comparison. Also the name of the metadata value that their
/// workspaces share.
pub(in crate::api) const COMPARISON: &str = "comparison";

/// Creates a session. `origin` is absent if a person begins it.
pub(in crate::api) async fn create_session(
    cx: CallContext,
    params: NewSessionParams,
    origin: Option<&str>,
) -> Result<Reply<CreatedSession>> {
    cx.client.authorized()?;
    let NewSessionParams { place, model, mode, thinking, title, agent, budget } = params;
    let servers = mcp_servers(&cx, place.mcp_servers)?;
    let cwd = directory(&cx, "cwd", place.cwd.as_deref().unwrap_or(&cx.app.cwd))?;
    let additional = directories(&cx, place.additional_directories)?;
    let wrong = |error: Error| Error { message: format!("model: {}", error.message), ..error };
    let agent = agent.or_else(|| cx.app.services.overrides.agents.first().cloned()).filter(|name| name != NATIVE);
    // The model of a hosted agent is known to the agent only.
    if let Some(model) = model.as_ref().filter(|_| agent.is_none()) {
        cx.app.services.check_model(model, &cwd).map_err(wrong)?;
    }
    let prompt = SystemPromptChange::read(place.system_prompt)?;
    let change = SessionChange {
        title,
        model,
        thinking: thinking.map(OptionValue::Known),
        system_prompt: prompt.replace,
        system_prompt_append: prompt.append,
        additional_directories: (!additional.is_empty()).then_some(additional),
        budget: budget::read(budget)?,
        origin: origin.map(String::from),
        agent,
        ..SessionChange::default()
    };
    let session = cx.app.sessions().await?.create(cwd, mode.unwrap_or(cx.app.mode), change).await?;
    session.set_mcp_servers(servers);
    let session_id = session.log.id.clone();
    let created = CreatedSession { options: SessionOptions::of(&session, &cx).await, session_id: session_id.clone() };
    cx.app.services.refresh_lists_later(&cx.app.services.user.settings);
    Ok(Reply::new(created).follow(FollowChange::After(session_id, 0)))
}

/// A session to open, and what replaces its directories, MCP servers and system prompt.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenSessionParams {
    pub session_id: SessionId,
    #[serde(flatten, deserialize_with = "read_place")]
    pub place: SessionPlace,
}

impl OpenSessionParams {
    /// Opens a session as it is.
    pub(crate) fn new(session_id: SessionId) -> OpenSessionParams {
        OpenSessionParams { session_id, place: SessionPlace::default() }
    }
}

/// Opens a session for [`LoadSession`] and [`ResumeSession`].
async fn open(cx: &CallContext, params: OpenSessionParams) -> Result<Session> {
    cx.client.authorized()?;
    let OpenSessionParams { session_id, place } = params;
    let servers = mcp_servers(cx, place.mcp_servers)?;
    let prompt = SystemPromptChange::read(place.system_prompt)?;
    let session = cx.owned_or_read(&session_id).await?;
    let given = place.cwd.filter(|cwd| !cwd.as_os_str().is_empty());
    let cwd = match (given, place.additional_directories.as_ref().is_some_and(|all| !all.is_empty())) {
        (None, false) => None,
        (given, _) => Some(directory(cx, "cwd", &given.unwrap_or_default())?),
    };
    let additional = directories(cx, place.additional_directories)?;
    // If the owner cannot be reached, the session keeps its directories and its system prompt.
    let Ok(owned) = session.owned() else { return Ok(session) };
    owned.set_mcp_servers(servers);
    let change = session.log.state(|state| {
        let cwd = cwd.filter(|cwd| state.cwd != *cwd || state.additional_directories() != additional);
        SessionChange { additional_directories: cwd.is_some().then_some(additional), cwd, ..prompt.difference(state) }
    });
    if change != SessionChange::default() {
        owned.change(Body::SessionUpdated { change }).await?;
    }
    Ok(session)
}

pub(crate) struct LoadSession;

impl Method for LoadSession {
    type Params = OpenSessionParams;
    type Result = SessionOptions;
    const NAME: &'static str = "session/load";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "cwd": "/home/me/project"}"#;
    const SCOPE: Scope = Scope::OwnerOrReader;
    const DOC: &'static str = "Opens a session and replays its history before the response (ACP session setup).";

    async fn call(cx: CallContext, params: OpenSessionParams) -> Result<Reply<SessionOptions>> {
        let session = open(&cx, params).await?;
        cx.decided();
        let follow = FollowChange::Replayed(session.log.id.clone());
        Ok(Reply::new(SessionOptions::of(&session, &cx).await).follow(follow))
    }
}

pub(crate) struct ResumeSession;

impl Method for ResumeSession {
    type Params = OpenSessionParams;
    type Result = SessionOptions;
    const NAME: &'static str = "session/resume";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/resume")];
    const SCOPE: Scope = Scope::OwnerOrReader;
    const DOC: &'static str = "Opens a session without replaying its history (ACP session setup).";

    async fn call(cx: CallContext, params: OpenSessionParams) -> Result<Reply<SessionOptions>> {
        let session = open(&cx, params).await?;
        cx.decided();
        let options = SessionOptions::of(&session, &cx).await;
        let follow = FollowChange::After(session.log.id.clone(), session.log.head());
        Ok(Reply::new(options).follow(follow))
    }
}

pub(crate) struct CloseSession;

impl Method for CloseSession {
    type Params = SessionParams;
    type Result = NoResult;
    const NAME: &'static str = "session/close";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/close")];
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str = "Cancels the work of a session and closes it. The session stays on disk.";

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<NoResult>> {
        let id = params.session_id;
        let sessions = cx.app.sessions().await?;
        cx.client.require_session(&id, &sessions.cwd(&id).await?)?;
        let closed = sessions.close(&id).await.map(|()| NoResult {});
        Ok(ended(sessions, id, closed))
    }
}

/// Creates the reply to a close or delete call. The caller stops following the session if it is no
/// longer open, even if closing it failed.
pub(in crate::api) fn ended<T>(sessions: &Sessions, id: SessionId, result: Result<T>) -> Reply<T> {
    let reply = Reply::from_result(result);
    if sessions.opened(&id).is_none() { reply.follow(FollowChange::No(id)) } else { reply }
}

pub(crate) struct DeleteSession;

impl Method for DeleteSession {
    type Params = SessionParams;
    type Result = NoResult;
    const NAME: &'static str = "session/delete";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::delete("/v1/sessions/{sessionId}")];
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str = "Deletes a session with its events and files. Deleting an unknown session succeeds.";

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<NoResult>> {
        let id = params.session_id;
        let sessions = cx.app.sessions().await?;
        if let Ok(cwd) = sessions.cwd(&id).await {
            cx.client.require_session(&id, &cwd)?;
        }
        let deleted = sessions.delete(&id).await.map(|()| NoResult {});
        Ok(ended(sessions, id, deleted))
    }
}
