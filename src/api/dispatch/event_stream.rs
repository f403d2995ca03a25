//! Event streams of one session or of all sessions: first the history, then live events, without
//! gaps or repeats. A stream holds a cursor and buffers no events.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::call_context::CallContext;
use super::client::{Client, ClientRole};
use crate::api::dispatch::agent_status::{AGENT_STATUS, StatusChange, StatusFollow};
use crate::api::dispatch::app::App;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event};
use crate::id::{SessionId, TurnId};
use crate::limits;
use crate::session::permissions::broker::{Responder, ResponderGuard};
use crate::session::{Follow, FollowAll, Session, Sessions};
use crate::store::Cursor;

/// The method of the notifications that deliver the events of a subscription.
pub(crate) const EVENT: &str = "_nuncio/events/event";
/// The method that ends a subscription. Its only param is the id of the subscription.
pub(crate) const UNFOLLOW: &str = "_nuncio/events/unfollow";
/// Maximum number of subscriptions per connection.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 32;

/// Selects the events of a stream.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct FollowParams {
    /// The session; all sessions when it is missing.
    pub session_id: Option<SessionId>,
    /// Cursor (`id`) of the last event that the client has; 0 starts at the beginning.
    #[schemars(range(max = 9_007_199_254_740_991_u64))]
    pub after: u64,
    /// Only events of these types, separated by commas; `tool.*` matches all types that start with
    /// `tool.`.
    pub types: Option<String>,
    /// Only events of this turn.
    pub turn: Option<TurnId>,
    /// A person answers the session's permission requests while the stream is open: they have no
    /// deadline. Needs the role `controller`.
    pub interactive: bool,
}

pub(crate) enum StreamItem {
    /// Events, each with its cursor.
    Events(Vec<(u64, Arc<Event>)>),
    /// The history is complete up to this cursor.
    Synced(u64),
    /// The status of agents changed. Only in the stream of all sessions.
    Status(Box<StatusChange>),
}

/// The params of a notification of a subscription.
#[derive(Serialize)]
pub(crate) struct SubscriptionParams<'a> {
    pub subscription: &'a Value,
    pub result: SubscriptionResult<'a>,
}

/// The result in a notification of a subscription.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum SubscriptionResult<'a> {
    Event {
        cursor: u64,
        event: &'a Event,
    },
    /// The history is complete up to this cursor.
    Synced {
        synced: u64,
    },
    Status {
        status: &'a StatusChange,
    },
    /// The stream has ended.
    Ended {
        ended: bool,
    },
}

impl StreamItem {
    /// Returns the results for a subscription, one for each notification.
    pub(crate) fn results(&self) -> Vec<SubscriptionResult<'_>> {
        match self {
            StreamItem::Events(events) => {
                events.iter().map(|(cursor, event)| SubscriptionResult::Event { cursor: *cursor, event }).collect()
            }
            StreamItem::Synced(cursor) => vec![SubscriptionResult::Synced { synced: *cursor }],
            StreamItem::Status(change) => vec![SubscriptionResult::Status { status: change }],
        }
    }
}

/// A stream of events for one client.
pub struct EventStream {
    app: Arc<App>,
    client: Arc<Client>,
    source: EventSource,
    types: Option<Vec<String>>,
    turn: Option<TurnId>,
    /// Cursor at the end of the history. None once [`StreamItem::Synced`] was returned.
    history: Option<u64>,
    /// Cache of access checks: directories, and whether the client has access to them.
    access: HashMap<PathBuf, bool>,
}

enum EventSource {
    Session(Box<SessionSource>),
    /// The events of all sessions, and the status of agents if the client wants it.
    All(FollowAll, Option<Box<StatusFollow>>),
}

/// The events of one open session. While a client with the controller role follows the session, the
/// session has a client that can answer permission requests.
struct SessionSource {
    session: Session,
    interactive: bool,
    /// Directory of the session at the last access check.
    cwd: PathBuf,
    follow: Follow,
    _attendance: Option<ResponderGuard>,
}

impl SessionSource {
    fn new(session: Session, after: u64, interactive: bool, client: &Client) -> SessionSource {
        let responder = if interactive { Responder::Person } else { Responder::Program };
        let attendance = (client.role >= ClientRole::Controller).then(|| session.broker.register_responder(responder));
        let cwd = session.log.state(|state| state.cwd.clone());
        SessionSource { follow: session.log.follow(after), interactive, _attendance: attendance, cwd, session }
    }

    /// Returns [`Kind::Forbidden`] if the session moved to a directory that the client has no
    /// access to.
    fn check(&mut self, client: &Client) -> Result<()> {
        let moved = self.session.log.state(|state| (state.cwd != self.cwd).then(|| state.cwd.clone()));
        if let Some(cwd) = moved {
            client.require_session(&self.session.log.id, &cwd)?;
            self.cwd = cwd;
        }
        Ok(())
    }
}

impl EventStream {
    /// Opens a stream. Returns [`Kind::InvalidParams`] if the cursor is beyond the end.
    pub(crate) async fn open(cx: &CallContext, params: FollowParams) -> Result<EventStream> {
        let sessions = cx.app.sessions().await?;
        let types: Option<Vec<String>> = params.types.map(|types| types.split(',').map(|name| name.trim().to_string()).collect());
        let (source, head) = match &params.session_id {
            Some(id) => {
                let session = cx.open_read_only(id).await?;
                let head = session.log.head();
                let source = SessionSource::new(session.clone(), params.after, params.interactive, &cx.client);
                // The client that prompted is registered by its prompt.
                if params.turn.is_none() {
                    sessions.register(&session).await;
                }
                (EventSource::Session(Box::new(source)), head)
            }
            None => {
                let wanted = params.turn.is_none() && is_wanted(types.as_deref(), AGENT_STATUS);
                let status = wanted.then(|| Box::new(StatusFollow::new(&cx.app, sessions)));
                (
                    EventSource::All(sessions.follow_all(Cursor::from_number(params.after)), status),
                    sessions.head_of_all().await?.number(),
                )
            }
        };
        if params.after > head {
            return Err(Error::invalid_params(format!("after: invalid cursor {}: the stream ends at {head}", params.after))
                .hint("start again with after=0"));
        }
        Ok(EventStream {
            app: cx.app.clone(),
            client: cx.client.clone(),
            source,
            types,
            turn: params.turn,
            history: Some(head),
            access: HashMap::new(),
        })
    }

    /// Waits for the next item and returns it. Returns None at the end of the stream: when the
    /// session was deleted, or when `ending` was cancelled and all committed events were returned.
    pub(crate) async fn next(&mut self, ending: &CancellationToken) -> Result<Option<StreamItem>> {
        loop {
            if let EventSource::All(_, Some(status)) = &mut self.source {
                let (client, access) = (&self.client, &mut self.access);
                let change = status.next(&self.app, |cwd| client.sees_all || has_access(client, access, cwd)).await?;
                if let Some(change) = change {
                    return Ok(Some(StreamItem::Status(Box::new(change))));
                }
            }
            if let Some(history) = self.history.filter(|history| self.cursor() >= *history) {
                self.history = None;
                return Ok(Some(StreamItem::Synced(history)));
            }
            let (events, read) = self.read().await?;
            if !events.is_empty() {
                return Ok(Some(StreamItem::Events(events)));
            }
            // The history is also complete if no event is left to read: its last event may have
            // been removed since, so that the cursor cannot reach it.
            if let Some(history) = self.history.take_if(|_| !read) {
                return Ok(Some(StreamItem::Synced(history)));
            }
            if read || self.wait(ending).await? {
                continue;
            }
            // Return the events that were committed before the stream ended.
            let (events, read) = self.read().await?;
            if !events.is_empty() {
                return Ok(Some(StreamItem::Events(events)));
            }
            if !read {
                return Ok(None);
            }
        }
    }

    fn cursor(&self) -> u64 {
        match &self.source {
            EventSource::Session(one) => one.follow.cursor(),
            EventSource::All(all, _) => all.cursor().number(),
        }
    }

    /// Reads the next page of events. Returns the events that match the filter, and whether the
    /// page had any events before filtering.
    async fn read(&mut self) -> Result<(Vec<(u64, Arc<Event>)>, bool)> {
        let page: Vec<(u64, Arc<Event>)> = match &mut self.source {
            EventSource::Session(one) => {
                let page = one.follow.read().await?;
                one.check(&self.client)?;
                page.into_iter().map(|event| (event.seq, event)).collect()
            }
            EventSource::All(all, _) => {
                let page = all.read().await?;
                let read = !page.is_empty();
                let (client, access) = (&self.client, &mut self.access);
                let visible = page.into_iter().filter(|resolved| has_access(client, access, &resolved.cwd));
                let page = visible.map(|resolved| (resolved.cursor.number(), Arc::new(resolved.event))).collect();
                return Ok((self.filter(page), read));
            }
        };
        let read = !page.is_empty();
        Ok((self.filter(page), read))
    }

    /// Keeps the events of the requested types and turn.
    fn filter(&self, mut page: Vec<(u64, Arc<Event>)>) -> Vec<(u64, Arc<Event>)> {
        if let Some(types) = &self.types {
            page.retain(|(_, event)| is_wanted(Some(types), event.body.name()));
        }
        if let Some(turn) = &self.turn {
            page.retain(|(_, event)| event.turn_id.as_ref() == Some(turn));
        }
        if !self.client.is_owner() {
            page.iter_mut().for_each(|(_, event)| withhold_options(event));
        }
        page
    }

    /// Waits for more events. Returns false if no more events will follow.
    async fn wait(&mut self, ending: &CancellationToken) -> Result<bool> {
        let one = match &mut self.source {
            EventSource::All(all, status) => {
                let status_is_due = async {
                    match status {
                        Some(status) => status.due().await,
                        None => std::future::pending().await,
                    }
                };
                return Ok(tokio::select! {
                    biased;
                    () = all.moved() => true,
                    () = status_is_due => true,
                    () = ending.cancelled() => false,
                });
            }
            EventSource::Session(one) => one,
        };
        tokio::select! {
            biased;
            () = one.follow.moved() => return Ok(true),
            () = one.session.closed() => {}
            () = ending.cancelled() => return Ok(false),
        }
        // The session was closed: wait until a process writes to it again.
        let sessions: &Arc<Sessions> = self.app.sessions().await?;
        let (id, cursor) = (one.session.log.id.clone(), one.follow.cursor());
        let beyond = tokio::select! {
            beyond = sessions.beyond(&id, cursor) => beyond,
            () = ending.cancelled() => return Ok(false),
        };
        if beyond.is_ok() {
            self.client.require_session(&id, &sessions.cwd(&id).await?)?;
        }
        match beyond.and(sessions.open_read_only(&id).await) {
            Ok(session) => {
                **one = SessionSource::new(session, one.follow.cursor(), one.interactive, &self.client);
                Ok(true)
            }
            Err(error) if error.kind == Kind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Removes the options of a permission request that only the owner may choose.
fn withhold_options(event: &mut Arc<Event>) {
    if matches!(event.body, Body::PermissionRequested(_))
        && let Event { body: Body::PermissionRequested(request), .. } = Arc::make_mut(event)
    {
        request.options.retain(|option| !option.needs_owner());
    }
}

/// Returns whether the client has access to `cwd`. Results are cached; a full cache is cleared.
fn has_access(client: &Client, cache: &mut HashMap<PathBuf, bool>, cwd: &Path) -> bool {
    if let Some(may) = cache.get(cwd) {
        return *may;
    }
    if cache.len() >= limits::SESSIONS_PAGE {
        cache.clear();
    }
    let may = client.has_access_to(cwd);
    cache.insert(cwd.into(), may);
    may
}

/// Returns whether one of the patterns matches an event type. Without patterns, all types match.
fn is_wanted(types: Option<&[String]>, name: &str) -> bool {
    types.is_none_or(|types| types.iter().any(|pattern| matches_type(name, pattern)))
}

/// Returns whether an event type matches a pattern: a type, or a prefix followed by `*`.
fn matches_type(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}
