//! Sessions: made, loaded, resumed, listed, closed, deleted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::method::{Follow, Method, Reply, Route};
use super::openapi::{inlined, optional};
use super::options::{config_options, modes};
use super::rest::into_meta;
use super::view::Activity;
use super::{Cx, Role};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, SessionChange, Severity};
use crate::id::SessionId;
use crate::limits;
use crate::model::Thinking;
use crate::permission::rules::Mode;
use crate::protocol::acp;
use crate::session::{Session, Sessions};
use crate::store::SessionRow;

/// `_meta.nuncio` of `session/new`: what ACP has no field for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct NewSessionMeta {
    model: Option<String>,
    mode: Option<String>,
    thinking: Option<String>,
    system_prompt: Option<String>,
    title: Option<String>,
}

impl NewSessionMeta {
    const FIELDS: &[&str] = &["model", "mode", "thinking", "systemPrompt", "title"];

    fn read(meta: Option<&acp::Meta>) -> Result<NewSessionMeta> {
        let Some(ours) = meta.and_then(|meta| meta.get("nuncio")) else { return Ok(NewSessionMeta::default()) };
        serde_path_to_error::deserialize(ours.clone())
            .map_err(|error| Error::invalid_params(format!("_meta.nuncio.{}: {}", error.path(), error.inner())))
    }

    /// `_meta.systemPrompt` as claude-agent-acp reads it: a text instead of the system prompt, or
    /// `{"append": text}` to add to it. Other shapes are somebody else's and are ignored.
    fn client_prompt(meta: Option<&acp::Meta>) -> (Option<String>, Option<String>) {
        let given = meta.and_then(|meta| meta.get("systemPrompt"));
        let text = |value: Option<&Value>| value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(String::from);
        (text(given), text(given.and_then(|given| given.get("append"))))
    }
}

/// `mcpServers` may be missing; ACP's type wants it there.
fn default_mcp_servers(params: &mut Map<String, Value>) {
    params.entry("mcpServers").or_insert_with(|| Value::Array(Vec::new()));
}

/// An existing directory where the client may work. A relative path of a local client counts from
/// the directory of this process; others give absolute paths.
pub fn directory(cx: &Cx, field: &str, path: &Path) -> Result<PathBuf> {
    let path = absolute(cx, path);
    if !path.is_absolute() {
        return Err(Error::invalid_params(format!("{field}: {} is not an absolute path", path.display())));
    }
    cx.client.must_enter(&path)?;
    if !path.is_dir() {
        return Err(Error::invalid_params(format!("{field}: {} is not a directory", path.display())));
    }
    Ok(path)
}

/// Resolves a relative path of a local client.
fn absolute(cx: &Cx, path: &Path) -> PathBuf {
    if path.is_absolute() || !cx.client.local {
        return path.into();
    }
    let joined = cx.nuncio.cwd.join(path);
    std::fs::canonicalize(&joined).unwrap_or(joined)
}

pub fn directories(cx: &Cx, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    paths.iter().enumerate().map(|(index, path)| directory(cx, &format!("additionalDirectories[{index}]"), path)).collect()
}

pub async fn note_mcp_servers(session: &Session, servers: &[acp::McpServer]) -> Result<()> {
    if servers.is_empty() {
        return Ok(());
    }
    let notice = Body::notice(
        Severity::Warning,
        "MCP servers are not used yet",
        format!("{} given with the session will not be started", servers.len()),
    );
    session.log.emit(None, notice).await;
    Ok(())
}

pub struct NewSession;

impl Method for NewSession {
    type Params = acp::NewSessionRequest;
    type Result = acp::NewSessionResponse;
    const NAME: &'static str = "session/new";
    const EXAMPLE: &'static str = r#"{"cwd": "/home/me/project", "title": "A first look", "mode": "ask"}"#;
    const ROUTE: Option<Route> = Some(Route::post("/v1/sessions").status(201));
    const DOC: &'static str = "Makes a session in a directory (ACP session setup). `_meta.nuncio`: model, mode, thinking, systemPrompt, title. \
         `_meta.systemPrompt`: a text instead of the system prompt, or `{append}` to add to it.";

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

    fn from_rest(cx: &Cx, params: &mut Map<String, Value>) {
        into_meta(params, NewSessionMeta::FIELDS);
        params.entry("cwd").or_insert_with(|| cx.nuncio.cwd.to_string_lossy().into());
    }

    async fn call(cx: Cx, params: Self::Params) -> Result<Reply<Self::Result>> {
        cx.client.authorized()?;
        let meta = NewSessionMeta::read(params.meta.as_ref())?;
        let cwd = directory(&cx, "cwd", &params.cwd)?;
        let mode = meta.mode.unwrap_or_else(|| cx.nuncio.mode.clone());
        Mode::parse(&mode).ok_or_else(|| Error::invalid_params(format!("_meta.nuncio.mode: there is no mode {mode}")))?;
        let additional = directories(&cx, &params.additional_directories)?;
        let wrong = |field: &str, error: Error| Error { message: format!("_meta.nuncio.{field}: {}", error.message), ..error };
        if let Some(model) = &meta.model {
            cx.nuncio.agents.check_model(model, &cwd).map_err(|error| wrong("model", error))?;
        }
        if let Some(level) = meta.thinking.as_ref().filter(|level| Thinking::parse(level).is_none()) {
            return Err(wrong("thinking", Error::invalid_params(format!("there is no level {level}"))));
        }
        let (system_prompt, system_prompt_append) = NewSessionMeta::client_prompt(params.meta.as_ref());
        let change = SessionChange {
            title: meta.title,
            model: meta.model,
            thinking: meta.thinking,
            system_prompt: meta.system_prompt.or(system_prompt),
            system_prompt_append,
            additional_directories: (!additional.is_empty()).then_some(additional),
            cwd: None,
        };
        let session = cx.nuncio.sessions().await?.create(cwd, mode, change).await?;
        note_mcp_servers(&session, &params.mcp_servers).await?;
        let id = session.log.id.clone();
        let response = acp::NewSessionResponse::new(acp_id(&id))
            .modes(session.log.state(modes))
            .config_options(config_options(&cx.nuncio, &session).await);
        Ok(Reply::new(response).follow(Follow::After(id, 0)))
    }
}

/// The session that a call names; a caller's directories take the place of those it had.
async fn reopen(
    cx: &Cx,
    id: &acp::SessionId,
    cwd: &Path,
    additional: &[PathBuf],
    servers: &[acp::McpServer],
) -> Result<Arc<Session>> {
    cx.client.authorized()?;
    if cwd.as_os_str().is_empty() && additional.is_empty() {
        return cx.session(&session_id(id)).await;
    }
    let cwd = directory(cx, "cwd", cwd)?;
    let additional = directories(cx, additional)?;
    let session = cx.session(&session_id(id)).await?;
    let same = session.log.state(|state| state.cwd == cwd && state.additional_directories == additional);
    if !same {
        let change = SessionChange { cwd: Some(cwd), additional_directories: Some(additional), ..SessionChange::default() };
        match session.append(Body::SessionUpdated { change }).await {
            // Another process works in it: it is only looked at here.
            Err(error) if error.kind == Kind::SessionBusy => {}
            updated => drop(updated?),
        }
    }
    if session.is_owned() {
        note_mcp_servers(&session, servers).await?;
    }
    Ok(session)
}

pub struct LoadSession;

impl Method for LoadSession {
    type Params = acp::LoadSessionRequest;
    type Result = acp::LoadSessionResponse;
    const NAME: &'static str = "session/load";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "cwd": "/home/me/project"}"#;
    const DOC: &'static str = "Opens a session and shows all of it again before the answer (ACP session setup).";

    fn complete(params: &mut Map<String, Value>) {
        default_mcp_servers(params);
    }

    async fn call(cx: Cx, params: Self::Params) -> Result<Reply<Self::Result>> {
        let session = reopen(&cx, &params.session_id, &params.cwd, &params.additional_directories, &params.mcp_servers).await?;
        let response = acp::LoadSessionResponse::new()
            .modes(session.log.state(modes))
            .config_options(config_options(&cx.nuncio, &session).await);
        Ok(Reply::new(response).follow(Follow::Replayed(session.log.id.clone())))
    }
}

pub struct ResumeSession;

impl Method for ResumeSession {
    type Params = acp::ResumeSessionRequest;
    type Result = acp::ResumeSessionResponse;
    const NAME: &'static str = "session/resume";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTE: Option<Route> = Some(Route::post("/v1/sessions/{sessionId}/resume"));
    const DOC: &'static str = "Opens a session without showing what was said (ACP session setup).";

    fn rest_schema(params: &mut Schema, _: &mut Schema) {
        optional(params, "cwd");
    }

    /// Without a directory it stays where it is.
    fn from_rest(_: &Cx, params: &mut Map<String, Value>) {
        params.entry("cwd").or_insert_with(|| "".into());
    }

    async fn call(cx: Cx, params: Self::Params) -> Result<Reply<Self::Result>> {
        let session = reopen(&cx, &params.session_id, &params.cwd, &params.additional_directories, &params.mcp_servers).await?;
        let response = acp::ResumeSessionResponse::new()
            .modes(session.log.state(modes))
            .config_options(config_options(&cx.nuncio, &session).await);
        let follow = Follow::After(session.log.id.clone(), session.log.head());
        Ok(Reply::new(response).follow(follow))
    }
}

pub struct ListSessions;

impl Method for ListSessions {
    type Params = acp::ListSessionsRequest;
    type Result = acp::ListSessionsResponse;
    const NAME: &'static str = "session/list";
    const ROUTE: Option<Route> = Some(Route::get("/v1/sessions"));
    const ROLE: Role = Role::Observer;
    const DOC: &'static str = "Lists sessions, most recently updated first; `cwd` keeps those of one directory, `cursor` continues. \
         `_meta.nuncio` of each: status, waiting.";

    fn rest_schema(_: &mut Schema, result: &mut Schema) {
        let plain = inlined::<Activity>();
        if let Some(items) = result.pointer_mut("/properties/sessions/items") {
            *items = json!({ "allOf": [items.take(), { "type": "object", "properties": plain.get("properties") }] });
        }
    }

    async fn call(cx: Cx, params: Self::Params) -> Result<Reply<Self::Result>> {
        let after = match params.cursor.as_deref() {
            None => None,
            Some(cursor) => Some(parse_cursor(cursor).ok_or_else(|| Error::invalid_params("cursor: not one of ours"))?),
        };
        let cwd = params.cwd.as_deref().map(|cwd| absolute(&cx, cwd));
        let (rows, next) = visible(&cx, cwd.as_deref(), after).await?;
        let sessions = rows.into_iter().map(|row| {
            let activity = cx.opened(&row.id).map_or(Activity::NONE, |session| Activity::of(&session));
            acp::SessionInfo::new(acp_id(&row.id), row.cwd)
                .additional_directories(row.additional_directories)
                .title(row.title)
                .updated_at(timestamp(row.updated_ms))
                .meta(Map::from_iter([("nuncio".to_string(), serde_json::json!(activity))]))
        });
        let response = acp::ListSessionsResponse::new(sessions.collect());
        Ok(Reply::new(response.next_cursor(next.map(|(updated_ms, key)| format!("{updated_ms}.{key}")))))
    }
}

/// The next sessions that are the client's business. Where they are few among many, the rest comes with the next page.
async fn visible(cx: &Cx, cwd: Option<&Path>, mut after: Option<Place>) -> Result<(Vec<SessionRow>, Option<Place>)> {
    let (mut rows, mut entered) = (Vec::new(), HashMap::new());
    for _ in 0..limits::SESSIONS_PAGES_MAX {
        let page = cx.nuncio.sessions().await?.list(cwd, after)?;
        let mut may = |row: &SessionRow| *entered.entry(row.cwd.clone()).or_insert_with(|| cx.client.may_enter(&row.cwd));
        rows.extend(page.sessions.into_iter().filter(|row| may(row)));
        after = page.next;
        if after.is_none() || rows.len() >= limits::SESSIONS_PAGE {
            break;
        }
    }
    Ok((rows, after))
}

/// Where a page of sessions ends: when the last one was updated, and its row.
type Place = (u64, i64);

fn parse_cursor(cursor: &str) -> Option<(u64, i64)> {
    let (updated_ms, key) = cursor.split_once('.')?;
    Some((updated_ms.parse().ok()?, key.parse().ok()?))
}

pub struct CloseSession;

impl Method for CloseSession {
    type Params = acp::CloseSessionRequest;
    type Result = acp::CloseSessionResponse;
    const NAME: &'static str = "session/close";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTE: Option<Route> = Some(Route::post("/v1/sessions/{sessionId}/close"));
    const DOC: &'static str = "Ends what runs in a session and gives it up; it stays on the disk.";

    async fn call(cx: Cx, params: Self::Params) -> Result<Reply<Self::Result>> {
        let id = session_id(&params.session_id);
        let sessions = cx.nuncio.sessions().await?;
        cx.client.must_see(&id, &sessions.cwd(&id)?)?;
        let closed = sessions.close(&id).await.map(|()| acp::CloseSessionResponse::new());
        Ok(gone(sessions, id, closed))
    }
}

/// A session that is not open any more is not followed any more, also when its end was not a clean one.
fn gone<T>(sessions: &Sessions, id: SessionId, result: Result<T>) -> Reply<T> {
    let reply = Reply::of(result);
    if sessions.opened(&id).is_none() { reply.follow(Follow::No(id)) } else { reply }
}

pub struct DeleteSession;

impl Method for DeleteSession {
    type Params = acp::DeleteSessionRequest;
    type Result = acp::DeleteSessionResponse;
    const NAME: &'static str = "session/delete";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTE: Option<Route> = Some(Route::delete("/v1/sessions/{sessionId}"));
    const DOC: &'static str = "Removes a session with its events and files; an unknown one succeeds silently.";

    async fn call(cx: Cx, params: Self::Params) -> Result<Reply<Self::Result>> {
        let id = session_id(&params.session_id);
        let sessions = cx.nuncio.sessions().await?;
        if let Ok(cwd) = sessions.cwd(&id) {
            cx.client.must_see(&id, &cwd)?;
        }
        let deleted = sessions.delete(&id).await.map(|()| acp::DeleteSessionResponse::new());
        Ok(gone(sessions, id, deleted))
    }
}

pub fn session_id(id: &acp::SessionId) -> SessionId {
    SessionId::from(&*id.0)
}

pub fn acp_id(id: &SessionId) -> acp::SessionId {
    acp::SessionId::new(id.as_str())
}

/// RFC 3339 in UTC, to the millisecond.
pub fn timestamp(at_ms: u64) -> String {
    let days = (at_ms / 86_400_000) as i64;
    // Civil date from days since 1970-01-01 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (seconds, ms) = ((at_ms / 1000) % 86_400, at_ms % 1000);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{ms:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
