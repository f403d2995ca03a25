//! Methods that create, load, resume, close and delete sessions.

use std::path::PathBuf;

use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::convert::{acp_id, into_meta, session_id};
use crate::api::dispatch::directories::{directories, directory};
use crate::api::dispatch::method::{FollowChange, Method, Reply, Scope};
use crate::api::dispatch::params::decode_meta;
use crate::api::dispatch::route::Route;
use crate::api::dispatch::schemas::{inlined, optional};
use crate::api::views::budget;
use crate::api::views::mcp_servers::mcp_servers;
use crate::api::views::options::{config_options, modes};
use crate::api::views::system_prompt::SystemPromptChange;
use crate::config::NATIVE;
use crate::content::BudgetLimits;
use crate::error::{Error, Result};
use crate::event::{Body, DELEGATION, SessionChange};
use crate::id::SessionId;
use crate::options::{Mode, OptionValue, Thinking};
use crate::protocol::acp;
use crate::session::{Session, Sessions};

/// `_meta.nuncio` of `session/new`: settings that have no field in ACP.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct NewSessionMeta {
    model: Option<String>,
    #[schemars(with = "Option<String>", extend("default" = null))]
    mode: Option<Mode>,
    #[schemars(with = "Option<String>", extend("default" = null))]
    thinking: Option<Thinking>,
    system_prompt: Option<String>,
    title: Option<String>,
    /// Name of a hosted agent; without it, nuncio's own agent works in the session.
    agent: Option<String>,
    /// Limits of the session and of its turns.
    #[schemars(with = "Option<BudgetLimits>")]
    budget: Option<Value>,
}

impl NewSessionMeta {
    const FIELDS: &[&str] = &["model", "mode", "thinking", "systemPrompt", "title", "agent", "budget"];
}

/// Adds an empty `mcpServers`, which clients may omit but ACP's type requires.
fn default_mcp_servers(params: &mut Map<String, Value>) {
    params.entry("mcpServers").or_insert_with(|| Value::Array(Vec::new()));
}

pub(crate) struct NewSession;

impl Method for NewSession {
    type Params = acp::NewSessionRequest;
    type Result = acp::NewSessionResponse;
    const NAME: &'static str = "session/new";
    const EXAMPLE: &'static str = r#"{"cwd": "/home/me/project", "title": "Overview", "mode": "ask"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions").status(201)];
    const DOC: &'static str = "Creates a session in a directory (ACP session setup). `_meta.nuncio`: model, mode, thinking, systemPrompt, title, agent, budget. \
         `systemPrompt`: a prompt that replaces nuncio's own or is added to it; also as `_meta.systemPrompt`, a text or `{append}`.";

    fn complete(params: &mut Map<String, Value>) {
        default_mcp_servers(params);
    }

    fn rest_schema(params: &mut Schema, _: &mut Schema) {
        optional(params, "cwd");
        let plain = inlined::<NewSessionMeta>();
        if let (Some(Value::Object(all)), Some(Value::Object(plain))) = (params.get_mut("properties"), plain.get("properties")) {
            all.extend(plain.clone());
        }
    }

    fn from_rest(cx: &CallContext, params: &mut Map<String, Value>) {
        into_meta(params, NewSessionMeta::FIELDS);
        params.entry("cwd").or_insert_with(|| cx.app.cwd.to_string_lossy().into());
    }

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        // A prompt of a model, and a tool call that started this process, delegate work.
        let delegated = cx.client.is_model || cx.app.services.depth() > 0;
        create_session(cx, params, delegated.then_some(DELEGATION)).await
    }
}

/// The origin of sessions of a comparison. Also the name of the metadata value that their
/// workspaces share.
pub(in crate::api) const COMPARISON: &str = "comparison";

/// Creates a session. `origin` is absent if a person begins it.
pub(in crate::api) async fn create_session(
    cx: CallContext,
    params: acp::NewSessionRequest,
    origin: Option<&str>,
) -> Result<Reply<acp::NewSessionResponse>> {
    cx.client.authorized()?;
    let meta = decode_meta::<NewSessionMeta>(params.meta.as_ref())?;
    let servers = mcp_servers(&cx, params.mcp_servers)?;
    let cwd = directory(&cx, "cwd", &params.cwd)?;
    let mode = meta.mode.unwrap_or(cx.app.mode);
    let additional = directories(&cx, &params.additional_directories)?;
    let wrong = |error: Error| Error { message: format!("_meta.nuncio.model: {}", error.message), ..error };
    let agent = meta.agent.or_else(|| cx.app.services.overrides.agents.first().cloned()).filter(|name| name != NATIVE);
    // The model of a hosted agent is known to the agent only.
    if let Some(model) = meta.model.as_ref().filter(|_| agent.is_none()) {
        cx.app.services.check_model(model, &cwd).map_err(wrong)?;
    }
    let prompt = SystemPromptChange::read(params.system_prompt, params.meta.as_ref())?;
    let change = SessionChange {
        title: meta.title,
        model: meta.model,
        thinking: meta.thinking.map(OptionValue::Known),
        system_prompt: meta.system_prompt.or_else(|| prompt.replace.clone()),
        system_prompt_append: prompt.append.clone(),
        additional_directories: (!additional.is_empty()).then_some(additional),
        budget: meta.budget.map(|budget| budget::read("_meta.nuncio.budget", budget)).transpose()?,
        origin: origin.map(String::from),
        agent,
        ..SessionChange::default()
    };
    let session = cx.app.sessions().await?.create(cwd, mode, change).await?;
    session.set_mcp_servers(servers);
    let id = session.log.id.clone();
    let response = acp::NewSessionResponse::new(acp_id(&id))
        .modes(session.log.state(modes))
        .config_options(config_options(&cx.app, &cx.client, &session).await);
    cx.app.services.refresh_lists_later(&cx.app.services.user.settings);
    Ok(Reply::new(response).follow(FollowChange::After(id, 0)))
}

/// The params that `session/load` and `session/resume` share.
struct ReopenParams {
    id: acp::SessionId,
    cwd: PathBuf,
    additional_directories: Vec<PathBuf>,
    servers: Vec<acp::McpServer>,
    system_prompt: Option<acp::SystemPrompt>,
    meta: Option<acp::Meta>,
}

/// Returns the session to open. If the call contains directories or a system prompt, they replace
/// those of the session.
async fn reopen(cx: &CallContext, params: ReopenParams) -> Result<Session> {
    cx.client.authorized()?;
    let ReopenParams { id, cwd, additional_directories, servers, system_prompt, meta } = params;
    let servers = mcp_servers(cx, servers)?;
    let prompt = SystemPromptChange::read(system_prompt, meta.as_ref())?;
    let session = cx.owned_or_read(&session_id(&id)).await?;
    let has_directories = !cwd.as_os_str().is_empty() || !additional_directories.is_empty();
    let cwd = has_directories.then(|| directory(cx, "cwd", &cwd)).transpose()?;
    let additional = directories(cx, &additional_directories)?;
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
    type Params = acp::LoadSessionRequest;
    type Result = acp::LoadSessionResponse;
    const NAME: &'static str = "session/load";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "cwd": "/home/me/project"}"#;
    const SCOPE: Scope = Scope::OwnerOrReader;
    const DOC: &'static str = "Opens a session and replays its history before the response (ACP session setup).";

    fn complete(params: &mut Map<String, Value>) {
        default_mcp_servers(params);
    }

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        let acp::LoadSessionRequest {
            session_id: id, cwd, additional_directories, mcp_servers: servers, system_prompt, meta, ..
        } = params;
        let session = reopen(&cx, ReopenParams { id, cwd, additional_directories, servers, system_prompt, meta }).await?;
        cx.decided();
        let response = acp::LoadSessionResponse::new()
            .modes(session.log.state(modes))
            .config_options(config_options(&cx.app, &cx.client, &session).await);
        Ok(Reply::new(response).follow(FollowChange::Replayed(session.log.id.clone())))
    }
}

pub(crate) struct ResumeSession;

impl Method for ResumeSession {
    type Params = acp::ResumeSessionRequest;
    type Result = acp::ResumeSessionResponse;
    const NAME: &'static str = "session/resume";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/resume")];
    const SCOPE: Scope = Scope::OwnerOrReader;
    const DOC: &'static str = "Opens a session without replaying its history (ACP session setup).";

    fn rest_schema(params: &mut Schema, _: &mut Schema) {
        optional(params, "cwd");
    }

    /// Sets a missing `cwd` to the empty string: the session keeps its directory.
    fn from_rest(_: &CallContext, params: &mut Map<String, Value>) {
        params.entry("cwd").or_insert_with(|| "".into());
    }

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        let acp::ResumeSessionRequest {
            session_id: id,
            cwd,
            additional_directories,
            mcp_servers: servers,
            system_prompt,
            meta,
            ..
        } = params;
        let session = reopen(&cx, ReopenParams { id, cwd, additional_directories, servers, system_prompt, meta }).await?;
        cx.decided();
        let response = acp::ResumeSessionResponse::new()
            .modes(session.log.state(modes))
            .config_options(config_options(&cx.app, &cx.client, &session).await);
        let follow = FollowChange::After(session.log.id.clone(), session.log.head());
        Ok(Reply::new(response).follow(follow))
    }
}

pub(crate) struct CloseSession;

impl Method for CloseSession {
    type Params = acp::CloseSessionRequest;
    type Result = acp::CloseSessionResponse;
    const NAME: &'static str = "session/close";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/close")];
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str = "Cancels the work of a session and closes it. The session stays on disk.";

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        let id = session_id(&params.session_id);
        let sessions = cx.app.sessions().await?;
        cx.client.require_session(&id, &sessions.cwd(&id).await?)?;
        let closed = sessions.close(&id).await.map(|()| acp::CloseSessionResponse::new());
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
    type Params = acp::DeleteSessionRequest;
    type Result = acp::DeleteSessionResponse;
    const NAME: &'static str = "session/delete";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::delete("/v1/sessions/{sessionId}")];
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str = "Deletes a session with its events and files. Deleting an unknown session succeeds.";

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        let id = session_id(&params.session_id);
        let sessions = cx.app.sessions().await?;
        if let Ok(cwd) = sessions.cwd(&id).await {
            cx.client.require_session(&id, &cwd)?;
        }
        let deleted = sessions.delete(&id).await.map(|()| acp::DeleteSessionResponse::new());
        Ok(ended(sessions, id, deleted))
    }
}
