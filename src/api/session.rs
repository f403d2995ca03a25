//! Methods that create, load, resume, list, close and delete sessions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::budget;
use super::convert::{acp_id, into_meta, session_id};
use super::directories::{absolute, directories, directory};
use super::mcp_servers::mcp_servers;
use super::method::{FollowChange, Method, Reply, Scope};
use super::options::{config_options, modes};
use super::route::Route;
use super::schemas::{inlined, optional};

use super::view::Activity;
use super::{CallContext, ClientRole};
use crate::config::NATIVE;
use crate::content::BudgetLimits;
use crate::error::{Error, Result};
use crate::event::{Body, SessionChange, timestamp};
use crate::id::SessionId;
use crate::limits;
use crate::options::{Mode, OptionValue, Thinking};
use crate::protocol::acp;
use crate::session::{Session, Sessions};
use crate::store::SessionRow;

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

    fn read(meta: Option<&acp::Meta>) -> Result<NewSessionMeta> {
        let Some(ours) = meta.and_then(|meta| meta.get("nuncio")) else { return Ok(NewSessionMeta::default()) };
        serde_path_to_error::deserialize(ours.clone())
            .map_err(|error| Error::invalid_params(format!("_meta.nuncio.{}: {}", error.path(), error.inner())))
    }

    /// `_meta.systemPrompt` as in claude-agent-acp: a text that replaces the system prompt, or
    /// `{"append": text}`, which adds to it. Returns the replacement and the addition. Other shapes
    /// are ignored.
    fn client_prompt(meta: Option<&acp::Meta>) -> (Option<String>, Option<String>) {
        let given = meta.and_then(|meta| meta.get("systemPrompt"));
        let text = |value: Option<&Value>| value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(String::from);
        (text(given), text(given.and_then(|given| given.get("append"))))
    }
}

/// `_meta.nuncio` of `session/list`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ListSessionsMeta {
    /// List the sessions of subagents, too.
    children: bool,
}

impl ListSessionsMeta {
    fn read(meta: Option<&acp::Meta>) -> Result<ListSessionsMeta> {
        let Some(ours) = meta.and_then(|meta| meta.get("nuncio")) else { return Ok(ListSessionsMeta::default()) };
        serde_path_to_error::deserialize(ours.clone())
            .map_err(|error| Error::invalid_params(format!("_meta.nuncio.{}: {}", error.path(), error.inner())))
    }
}

/// Adds an empty `mcpServers`, which clients may omit but ACP's type requires.
fn default_mcp_servers(params: &mut Map<String, Value>) {
    params.entry("mcpServers").or_insert_with(|| Value::Array(Vec::new()));
}

/// The method `session/new`.
pub(crate) struct NewSession;

impl Method for NewSession {
    type Params = acp::NewSessionRequest;
    type Result = acp::NewSessionResponse;
    const NAME: &'static str = "session/new";
    const EXAMPLE: &'static str = r#"{"cwd": "/home/me/project", "title": "Overview", "mode": "ask"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions").status(201)];
    const DOC: &'static str = "Creates a session in a directory (ACP session setup). `_meta.nuncio`: model, mode, thinking, systemPrompt, title, agent, budget. \
         `_meta.systemPrompt`: a text that replaces the system prompt, or `{append}`, which adds to it.";

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

/// Origins of sessions that no person began. See [`SessionChange::origin`].
const DELEGATION: &str = "delegation";
/// Also the name of the metadata value that the workspaces of one comparison share.
pub(super) const COMPARISON: &str = "comparison";

/// Creates a session. `origin` is absent if a person begins it.
pub(super) async fn create_session(
    cx: CallContext,
    params: acp::NewSessionRequest,
    origin: Option<&str>,
) -> Result<Reply<acp::NewSessionResponse>> {
    cx.client.authorized()?;
    let meta = NewSessionMeta::read(params.meta.as_ref())?;
    let servers = mcp_servers(&cx, params.mcp_servers)?;
    let cwd = directory(&cx, "cwd", &params.cwd)?;
    let mode = meta.mode.unwrap_or(cx.app.mode);
    let additional = directories(&cx, &params.additional_directories)?;
    let wrong = |error: Error| Error { message: format!("_meta.nuncio.model: {}", error.message), ..error };
    if let Some(model) = &meta.model {
        cx.app.services.check_model(model, &cwd).map_err(wrong)?;
    }
    let (system_prompt, system_prompt_append) = NewSessionMeta::client_prompt(params.meta.as_ref());
    let change = SessionChange {
        title: meta.title,
        model: meta.model,
        thinking: meta.thinking.map(OptionValue::Known),
        system_prompt: meta.system_prompt.or(system_prompt),
        system_prompt_append,
        additional_directories: (!additional.is_empty()).then_some(additional),
        budget: meta.budget.map(|budget| budget::read("_meta.nuncio.budget", budget)).transpose()?,
        origin: origin.map(String::from),
        agent: meta.agent.or_else(|| cx.app.services.overrides.agents.first().cloned()).filter(|name| name != NATIVE),
        ..SessionChange::default()
    };
    let session = cx.app.sessions().await?.create(cwd, mode, change).await?;
    session.set_mcp_servers(servers);
    let id = session.log.id.clone();
    let response = acp::NewSessionResponse::new(acp_id(&id))
        .modes(session.log.state(modes))
        .config_options(config_options(&cx.app, &session).await);
    cx.app.services.refresh_lists_later(&cx.app.services.user.settings);
    Ok(Reply::new(response).follow(FollowChange::After(id, 0)))
}

/// Returns the session to open. If the call contains directories, they replace the directories of
/// the session.
async fn reopen(
    cx: &CallContext,
    id: &acp::SessionId,
    cwd: &Path,
    additional: &[PathBuf],
    servers: Vec<acp::McpServer>,
) -> Result<Session> {
    cx.client.authorized()?;
    let servers = mcp_servers(cx, servers)?;
    let session = cx.owned(&session_id(id))?;
    if session.is_owned() {
        session.set_mcp_servers(servers);
    }
    if cwd.as_os_str().is_empty() && additional.is_empty() {
        return Ok(session);
    }
    let cwd = directory(cx, "cwd", cwd)?;
    let additional = directories(cx, additional)?;
    if !session.is_owned() {
        // The owner cannot be reached: the session keeps its directories.
        return Ok(session);
    }
    let same = session.log.state(|state| state.cwd == cwd && state.additional_directories == additional);
    if !same {
        let change = SessionChange { cwd: Some(cwd), additional_directories: Some(additional), ..SessionChange::default() };
        session.append(Body::SessionUpdated { change }).await?;
    }
    Ok(session)
}

/// The method `session/load`.
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
        let session = reopen(&cx, &params.session_id, &params.cwd, &params.additional_directories, params.mcp_servers).await?;
        let response =
            acp::LoadSessionResponse::new().modes(session.log.state(modes)).config_options(config_options(&cx.app, &session).await);
        Ok(Reply::new(response).follow(FollowChange::Replayed(session.log.id.clone())))
    }
}

/// The method `session/resume`.
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
        let session = reopen(&cx, &params.session_id, &params.cwd, &params.additional_directories, params.mcp_servers).await?;
        let response = acp::ResumeSessionResponse::new()
            .modes(session.log.state(modes))
            .config_options(config_options(&cx.app, &session).await);
        let follow = FollowChange::After(session.log.id.clone(), session.log.head());
        Ok(Reply::new(response).follow(follow))
    }
}

/// The method `session/list`.
pub(crate) struct ListSessions;

impl Method for ListSessions {
    type Params = acp::ListSessionsRequest;
    type Result = acp::ListSessionsResponse;
    const NAME: &'static str = "session/list";
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists sessions, most recently updated first. `cwd` selects the sessions of one directory, `cursor` the next page. \
         `_meta.nuncio`: children, true to list the sessions of subagents, too. \
         `_meta.nuncio` of each session: status, waiting, lastTurn, pendingToolCalls, origin (missing if a person began the session), cost (US dollars), \
         parentSessionId.";

    fn from_rest(_: &CallContext, params: &mut Map<String, Value>) {
        into_meta(params, &["children"]);
    }

    fn rest_schema(params: &mut Schema, result: &mut Schema) {
        let ours = inlined::<ListSessionsMeta>();
        if let (Some(Value::Object(all)), Some(Value::Object(ours))) = (params.get_mut("properties"), ours.get("properties")) {
            all.extend(ours.clone());
        }
        let plain = inlined::<ListedSession>();
        if let Some(items) = result.pointer_mut("/properties/sessions/items") {
            *items = json!({ "allOf": [items.take(), { "type": "object", "properties": plain.get("properties") }] });
        }
    }

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        let children = ListSessionsMeta::read(params.meta.as_ref())?.children;
        let after = match params.cursor.as_deref() {
            None => None,
            Some(cursor) => Some(parse_cursor(cursor).ok_or_else(|| Error::invalid_params("cursor: invalid"))?),
        };
        let cwd = params.cwd.as_deref().map(|cwd| absolute(&cx, cwd));
        let (rows, next) = accessible(&cx, cwd.as_deref(), children, after).await?;
        let sessions = cx.app.sessions().await?;
        let mut owners = sessions.owners();
        let infos = rows.into_iter().map(|row| {
            let activity = ListedSession { activity: Activity::listed(sessions, &mut owners, &row), parent_session_id: row.parent };
            acp::SessionInfo::new(acp_id(&row.id), row.cwd)
                .additional_directories(row.additional_directories)
                .title(row.title)
                .updated_at(timestamp(row.updated_ms))
                .meta(Map::from_iter([("nuncio".to_string(), serde_json::json!(activity))]))
        });
        let response = acp::ListSessionsResponse::new(infos.collect());
        Ok(Reply::new(response.next_cursor(next.map(|(updated_ms, key)| format!("{updated_ms}.{key}")))))
    }
}

/// `_meta.nuncio` of a listed session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListedSession {
    #[serde(flatten)]
    activity: Activity,
    /// The session whose subagent works in this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session_id: Option<SessionId>,
}

/// Returns the next sessions that the client has access to, and where the next page starts. Reads a
/// bounded number of pages from the store, so the result can be short or empty even if more
/// sessions follow.
async fn accessible(
    cx: &CallContext,
    cwd: Option<&Path>,
    children: bool,
    mut after: Option<PageEnd>,
) -> Result<(Vec<SessionRow>, Option<PageEnd>)> {
    let (mut rows, mut access) = (Vec::new(), HashMap::new());
    for _ in 0..limits::SESSIONS_PAGES_MAX {
        let page = cx.app.sessions().await?.list(cwd, children, after)?;
        let mut may = |row: &SessionRow| *access.entry(row.cwd.clone()).or_insert_with(|| cx.client.has_access_to(&row.cwd));
        rows.extend(page.sessions.into_iter().filter(|row| may(row)));
        after = page.next;
        if after.is_none() || rows.len() >= limits::SESSIONS_PAGE {
            break;
        }
    }
    Ok((rows, after))
}

/// The end of a page of sessions: update time and row id of its last session.
type PageEnd = (u64, i64);

fn parse_cursor(cursor: &str) -> Option<PageEnd> {
    let (updated_ms, key) = cursor.split_once('.')?;
    Some((updated_ms.parse().ok()?, key.parse().ok()?))
}

/// The method `session/close`.
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
        cx.client.require_session(&id, &sessions.cwd(&id)?)?;
        let closed = sessions.close(&id).await.map(|()| acp::CloseSessionResponse::new());
        Ok(ended(sessions, id, closed))
    }
}

/// Creates the reply to a close or delete call. The caller stops following the session if it is no
/// longer open, even if closing it failed.
fn ended<T>(sessions: &Sessions, id: SessionId, result: Result<T>) -> Reply<T> {
    let reply = Reply::of(result);
    if sessions.opened(&id).is_none() { reply.follow(FollowChange::No(id)) } else { reply }
}

/// The method `session/delete`.
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
        if let Ok(cwd) = sessions.cwd(&id) {
            cx.client.require_session(&id, &cwd)?;
        }
        let deleted = sessions.delete(&id).await.map(|()| acp::DeleteSessionResponse::new());
        Ok(ended(sessions, id, deleted))
    }
}
