//! The method `session/list`.

use std::collections::HashMap;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::convert::{acp_id, into_meta};
use crate::api::dispatch::directories::absolute;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::params::decode_meta;
use crate::api::dispatch::route::Route;
use crate::api::dispatch::schemas::inlined;
use crate::api::views::view::Activity;
use crate::error::{Error, Result};
use crate::event::timestamp;
use crate::id::SessionId;
use crate::limits;
use crate::protocol::acp;
use crate::store::{SessionFilter, SessionRow};

/// `_meta.nuncio` of `session/list`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ListSessionsMeta {
    /// Also list the sessions of subagents.
    children: bool,
    /// Also list sessions without a message.
    empty: bool,
}

pub(crate) struct ListSessions;

impl Method for ListSessions {
    type Params = acp::ListSessionsRequest;
    type Result = acp::ListSessionsResponse;
    const NAME: &'static str = "session/list";
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the sessions that have a message, most recently updated first. `cwd` selects the sessions of one directory, \
         `archived` (include, only) adds or selects archived sessions, `cursor` returns the next page. \
         `_meta.nuncio`: children, true to also list the sessions of subagents; empty, true to also list sessions without a message. \
         `_meta.nuncio` of each session: status, waiting, agent, lastTurn, pendingToolCalls, origin (missing if a person began the session), \
         cost (US dollars), parentSessionId.";

    fn from_rest(_: &CallContext, params: &mut Map<String, Value>) {
        into_meta(params, &["children", "empty"]);
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
        let ListSessionsMeta { children, empty } = decode_meta(params.meta.as_ref())?;
        let archived = archived(params.archived)?;
        let after = match params.cursor.as_deref() {
            None => None,
            Some(cursor) => Some(parse_cursor(cursor).ok_or_else(|| Error::invalid_params("cursor: invalid"))?),
        };
        let cwd = params.cwd.as_deref().map(|cwd| absolute(&cx, cwd));
        let filter = SessionFilter { cwd: cwd.as_deref(), children, empty, archived };
        let (rows, next) = accessible(&cx, filter, after).await?;
        let sessions = cx.app.sessions().await?;
        let mut owners = sessions.owners();
        let mut infos = Vec::with_capacity(rows.len());
        for row in rows {
            let activity = Activity::listed(sessions, &mut owners, &row).await?;
            let listed = ListedSession { activity, parent_session_id: row.parent };
            let info = acp::SessionInfo::new(acp_id(&row.id), row.cwd)
                .additional_directories(row.additional_directories)
                .title(row.title)
                .updated_at(timestamp(row.updated_ms))
                .archived(row.archived);
            infos.push(info.meta(Map::from_iter([("nuncio".to_string(), json!(listed))])));
        }
        let response = acp::ListSessionsResponse::new(infos);
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

/// Returns the archive state of the sessions to list; `None` lists both.
fn archived(filter: Option<acp::SessionArchiveFilter>) -> Result<Option<bool>> {
    match filter.unwrap_or_default() {
        acp::SessionArchiveFilter::Exclude => Ok(Some(false)),
        acp::SessionArchiveFilter::Only => Ok(Some(true)),
        acp::SessionArchiveFilter::Include => Ok(None),
        _ => Err(Error::invalid_params("archived: must be exclude, include or only")),
    }
}

/// Returns the next sessions that the client has access to, and where the next page starts. Reads a
/// bounded number of pages from the store, so the result can be short or empty even if more
/// sessions follow.
async fn accessible(
    cx: &CallContext,
    filter: SessionFilter<'_>,
    mut after: Option<PageEnd>,
) -> Result<(Vec<SessionRow>, Option<PageEnd>)> {
    let (mut rows, mut access) = (Vec::new(), HashMap::new());
    for _ in 0..limits::SESSIONS_PAGES_MAX {
        let page = cx.app.sessions().await?.list(filter, after).await?;
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
