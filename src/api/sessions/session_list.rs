//! The method `session/list`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::directories::absolute;
use crate::api::dispatch::method::{MetaFields, Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::views::view::Activity;
use crate::error::{Error, Result};
use crate::event::timestamp;
use crate::id::SessionId;
use crate::limits;
use crate::protocol::acp;
use crate::session::text_search::{Occurrence, TextSearch};
use crate::store::{SessionFilter, SessionRow};

/// Selects sessions.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListSessionsParams {
    /// Only the sessions of this directory.
    pub cwd: Option<PathBuf>,
    /// `nextCursor` of the previous page.
    pub cursor: Option<String>,
    /// Lists archived sessions, too, or only those; when it is missing, none is listed.
    pub archived: Option<acp::SessionArchiveFilter>,
    /// Also list the sessions of subagents.
    #[serde(default)]
    pub children: bool,
    /// Also list sessions without a message.
    #[serde(default)]
    pub empty: bool,
    /// Only sessions with each word of this text in one of their messages, or in their title and
    /// directory, without regard to case. At most 200 bytes. A page can be empty although another
    /// one follows.
    #[schemars(length(min = 1, max = 200))]
    pub text: Option<String>,
}

/// A session of the list.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedSession {
    pub session_id: SessionId,
    pub cwd: PathBuf,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional_directories: Vec<PathBuf>,
    pub title: Option<String>,
    /// RFC 3339.
    pub updated_at: String,
    pub archived: bool,
    /// With `text`: the part of the first message with all of its words; missing if the
    /// title and the directory have them.
    pub excerpt: Option<String>,
    #[serde(flatten)]
    pub activity: Activity,
    /// The session whose subagent works in this one.
    pub parent_session_id: Option<SessionId>,
}

/// A page of sessions, most recently updated first. `nextCursor` is missing on the last page.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionsPage {
    pub sessions: Vec<ListedSession>,
    pub next_cursor: Option<String>,
}

pub(crate) struct ListSessions;

impl Method for ListSessions {
    type Params = ListSessionsParams;
    type Result = SessionsPage;
    const NAME: &'static str = "session/list";
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the sessions that have a message, most recently updated first. `cwd` selects the sessions of one directory, \
         `archived` (include, only) adds or selects archived sessions, `cursor` returns the next page. \
         `_meta.nuncio`: children, true to also list the sessions of subagents; empty, true to also list sessions without a message; \
         text, only sessions with each word of it in one message, or in title and directory, without regard to case. \
         `_meta.nuncio` of each session: excerpt (with `text`: of the message that has the words), status, waiting, ownerPid, agent, lastTurn, turns, modelUsed, pendingToolCalls, origin (missing if a person began the session, but for `background`), \
         cost (US dollars), parentSessionId.";
    const META: MetaFields = MetaFields {
        params: &["children", "empty", "text"],
        result: &[
            "excerpt",
            "status",
            "waiting",
            "ownerPid",
            "lastTurn",
            "turns",
            "modelUsed",
            "pendingToolCalls",
            "origin",
            "agent",
            "cost",
            "parentSessionId",
        ],
        refuses_others: true,
    };

    async fn call(cx: CallContext, params: ListSessionsParams) -> Result<Reply<SessionsPage>> {
        let archived = archived(params.archived)?;
        let after = match params.cursor.as_deref() {
            None => None,
            Some(cursor) => Some(parse_cursor(cursor).ok_or_else(|| Error::invalid_params("cursor: invalid"))?),
        };
        let cwd = params.cwd.as_deref().map(|cwd| absolute(&cx, cwd));
        let filter = SessionFilter { cwd: cwd.as_deref(), children: params.children, empty: params.empty, archived };
        let search = params.text.as_deref().map(TextSearch::new).transpose()?;
        let (rows, next) = accessible(&cx, filter, search.as_ref(), after).await?;
        let sessions = cx.app.sessions().await?;
        let mut owners = sessions.owners();
        let mut listed = Vec::with_capacity(rows.len());
        for (row, excerpt) in rows {
            listed.push(ListedSession {
                activity: Activity::listed(sessions, &mut owners, &row).await?,
                session_id: row.id,
                cwd: row.cwd,
                additional_directories: row.additional_directories,
                title: row.title,
                updated_at: timestamp(row.updated_ms),
                archived: row.archived,
                excerpt,
                parent_session_id: row.parent,
            });
        }
        let next_cursor = next.map(|(updated_ms, key)| format!("{updated_ms}.{key}"));
        Ok(Reply::new(SessionsPage { sessions: listed, next_cursor }))
    }
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

/// Returns the next sessions that the client has access to and that have the searched text, each
/// with the excerpt of a message, and where the next page starts. Reads a bounded number of pages
/// from the store, and texts for a bounded time, so the result can be short or empty even if more
/// sessions follow.
async fn accessible(
    cx: &CallContext,
    filter: SessionFilter<'_>,
    search: Option<&TextSearch>,
    mut after: Option<PageEnd>,
) -> Result<(Vec<(SessionRow, Option<String>)>, Option<PageEnd>)> {
    let sessions = cx.app.sessions().await?;
    let (mut rows, mut access, until) = (Vec::new(), HashMap::new(), Instant::now() + limits::SESSIONS_SEARCH);
    for _ in 0..limits::SESSIONS_PAGES_MAX {
        let page = sessions.list(filter, after).await?;
        let mut may = |row: &SessionRow| *access.entry(row.cwd.clone()).or_insert_with(|| cx.client.has_access_to(&row.cwd));
        for row in page.sessions.into_iter().filter(|row| may(row)) {
            let Some(search) = search else {
                rows.push((row, None));
                continue;
            };
            let place = (row.updated_ms, row.key);
            match sessions.find_text(&row, search).await? {
                Some(Occurrence::Place) => rows.push((row, None)),
                Some(Occurrence::Message(excerpt)) => rows.push((row, Some(excerpt))),
                None => {}
            }
            if Instant::now() > until {
                return Ok((rows, Some(place)));
            }
        }
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
