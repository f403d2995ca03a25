//! Following what happens, in one session or in all: history first, then live, without a seam. A stream is a cursor and costs no more.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::method::Route;
use super::{Cx, Nuncio, Role, connection::Client};
use crate::error::{Error, Kind, Result};
use crate::event::Event;
use crate::id::{SessionId, TurnId};
use crate::limits;
use crate::session::broker::Attendance;
use crate::session::{Follow, FollowAll, Session, Sessions};

/// A row of the table whose answer is a stream.
pub const FOLLOW: &str = "_nuncio/events/follow";
pub const FOLLOW_DOC: &str = "Follows a session, or all of them: what happened after a cursor, then what happens.";
pub const FOLLOW_ROUTES: [Route; 2] = [Route::get("/v1/sessions/{sessionId}/events"), Route::get("/v1/events")];

/// What to follow.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FollowParams {
    /// One session; none: all of them.
    pub session_id: Option<SessionId>,
    /// The cursor (`id`) of the last event that is known; 0: from the beginning.
    #[schemars(range(max = 9_007_199_254_740_991_u64))]
    pub after: u64,
    /// Only events of these types, separated by commas; `tool.*` is all that begin with `tool.`.
    pub types: Option<String>,
    /// Only events of this turn.
    pub turn: Option<TurnId>,
}

/// What comes out of a stream.
pub enum Shown {
    /// Events, each with its cursor.
    Events(Vec<(u64, Arc<Event>)>),
    /// Everything up to this cursor was history.
    Synced(u64),
}

pub struct EventStream {
    nuncio: Arc<Nuncio>,
    client: Arc<Client>,
    source: Source,
    types: Option<Vec<String>>,
    turn: Option<TurnId>,
    /// Where history ends; none once that was told.
    history: Option<u64>,
    /// Directories of sessions, and whether they are the client's business.
    entered: HashMap<PathBuf, bool>,
}

enum Source {
    One(Box<One>),
    All(FollowAll),
}

/// One opening of a session. Who may answer its questions is there for them as long as it follows.
struct One {
    session: Arc<Session>,
    /// Where the session was when the client was last found to be allowed there.
    cwd: PathBuf,
    follow: Follow,
    _attendance: Option<Attendance>,
}

impl One {
    fn new(session: Arc<Session>, after: u64, client: &Client) -> One {
        let attendance = (client.role >= Role::Controller).then(|| session.broker.attend());
        let cwd = session.log.state(|state| state.cwd.clone());
        One { follow: session.log.follow(after), _attendance: attendance, cwd, session }
    }

    /// `forbidden` once the session has moved to a directory that is not the client's.
    fn check(&mut self, client: &Client) -> Result<()> {
        let moved = self.session.log.state(|state| (state.cwd != self.cwd).then(|| state.cwd.clone()));
        if let Some(cwd) = moved {
            client.must_see(&self.session.log.id, &cwd)?;
            self.cwd = cwd;
        }
        Ok(())
    }
}

impl EventStream {
    pub async fn open(cx: &Cx, params: FollowParams) -> Result<EventStream> {
        let sessions = cx.nuncio.sessions().await?;
        let (source, head) = match &params.session_id {
            Some(id) => {
                let session = cx.look(id).await?;
                let head = session.log.head();
                (Source::One(Box::new(One::new(session, params.after, &cx.client))), head)
            }
            None => (Source::All(sessions.follow_all(params.after)), sessions.head_of_all()?),
        };
        if params.after > head {
            return Err(Error::invalid_params(format!(
                "after: {} is no cursor of this stream, which ends at {head}",
                params.after
            ))
            .hint("begin again with after=0"));
        }
        let types = params.types.map(|types| types.split(',').map(|name| name.trim().to_string()).collect());
        Ok(EventStream {
            nuncio: cx.nuncio.clone(),
            client: cx.client.clone(),
            source,
            types,
            turn: params.turn,
            history: Some(head),
            entered: HashMap::new(),
        })
    }

    /// What comes next; waits for it. None: the stream is over, because the session is gone or `ending` says so and all was shown.
    pub async fn next(&mut self, ending: &CancellationToken) -> Result<Option<Shown>> {
        loop {
            if let Some(history) = self.history.filter(|history| self.cursor() >= *history) {
                self.history = None;
                return Ok(Some(Shown::Synced(history)));
            }
            let (events, read) = self.read().await?;
            if !events.is_empty() {
                return Ok(Some(Shown::Events(events)));
            }
            // What ended the history may be gone since.
            if let Some(history) = self.history.take_if(|_| !read) {
                return Ok(Some(Shown::Synced(history)));
            }
            if read || self.moved(ending).await? {
                continue;
            }
            // The last words.
            let (events, read) = self.read().await?;
            if !events.is_empty() {
                return Ok(Some(Shown::Events(events)));
            }
            if !read {
                return Ok(None);
            }
        }
    }

    fn cursor(&self) -> u64 {
        match &self.source {
            Source::One(one) => one.follow.cursor(),
            Source::All(all) => all.cursor(),
        }
    }

    /// The next page, as far as it is wanted; and whether there was one.
    async fn read(&mut self) -> Result<(Vec<(u64, Arc<Event>)>, bool)> {
        let page: Vec<(u64, Arc<Event>)> = match &mut self.source {
            Source::One(one) => {
                let page = one.follow.read().await?;
                one.check(&self.client)?;
                page.into_iter().map(|event| (event.seq, event)).collect()
            }
            Source::All(all) => {
                let page = all.read().await?;
                let read = !page.is_empty();
                let (client, entered) = (&self.client, &mut self.entered);
                let visible = page.into_iter().filter(|placed| may_enter(client, entered, &placed.cwd));
                let page = visible.map(|placed| (placed.cursor, Arc::new(placed.event))).collect();
                return Ok((self.wanted(page), read));
            }
        };
        let read = !page.is_empty();
        Ok((self.wanted(page), read))
    }

    fn wanted(&self, mut page: Vec<(u64, Arc<Event>)>) -> Vec<(u64, Arc<Event>)> {
        if let Some(types) = &self.types {
            page.retain(|(_, event)| types.iter().any(|wanted| is_of_type(event.body.name(), wanted)));
        }
        if let Some(turn) = &self.turn {
            page.retain(|(_, event)| event.turn_id.as_ref() == Some(turn));
        }
        page
    }

    /// Waits for more. False: nothing more will come.
    async fn moved(&mut self, ending: &CancellationToken) -> Result<bool> {
        let one = match &mut self.source {
            Source::All(all) => {
                return Ok(tokio::select! {
                    biased;
                    () = all.moved() => true,
                    () = ending.cancelled() => false,
                });
            }
            Source::One(one) => one,
        };
        tokio::select! {
            biased;
            () = one.follow.moved() => return Ok(true),
            () = one.session.closed() => {}
            () = ending.cancelled() => return Ok(false),
        }
        // It was closed: it goes on where somebody works in it again.
        let sessions: &Arc<Sessions> = self.nuncio.sessions().await?;
        let (id, cursor) = (one.session.log.id.clone(), one.follow.cursor());
        let beyond = tokio::select! {
            beyond = sessions.beyond(&id, cursor) => beyond,
            () = ending.cancelled() => return Ok(false),
        };
        if beyond.is_ok() {
            self.client.must_see(&id, &sessions.cwd(&id)?)?;
        }
        match beyond.and(sessions.look(&id).await) {
            Ok(session) => {
                **one = One::new(session, one.follow.cursor(), &self.client);
                Ok(true)
            }
            Err(error) if error.kind == Kind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Looked up once a directory, as long as they are not many.
fn may_enter(client: &Client, entered: &mut HashMap<PathBuf, bool>, cwd: &Path) -> bool {
    if let Some(may) = entered.get(cwd) {
        return *may;
    }
    if entered.len() >= limits::SESSIONS_PAGE {
        entered.clear();
    }
    let may = client.may_enter(cwd);
    entered.insert(cwd.into(), may);
    may
}

/// Whether a type is meant by a name, or by a name with `*` at its end.
fn is_of_type(name: &str, wanted: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == wanted,
    }
}
