//! Clients in this process: they call methods with typed params and follow events, of the sessions
//! of this process or of a server elsewhere.

pub(crate) mod remote;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use self::remote::{RemoteEvents, RemoteServer};
use crate::api::{
    App, CallContext, Client, ClientRole, EventStream, FollowChange, FollowParams, ForkParams, ForkSession, GetSession, Method,
    MethodRow, NewSession, NewSessionParams, OpenSessionParams, Prompt, PromptParams, PromptResult, Reply, ResumeSession,
    SessionParams, SessionPlace, StreamItem, TurnStart, method,
};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::{Seq, SessionId, TurnId};
use crate::session::permissions::broker::Responder;

/// Maximum length of the id of a session.
const ID_BYTES_MAX: usize = 128;

/// A client in this process. It uses the sessions of this process, with the controller role and
/// access to every directory, or those of a server elsewhere.
#[derive(Clone)]
pub(crate) struct SessionClient {
    app: Arc<App>,
    client: Arc<Client>,
    server: Option<RemoteServer>,
}

impl SessionClient {
    /// Creates a client with the controller role. `principal` is the client's identity in the log.
    pub(crate) fn new(app: Arc<App>, principal: &str) -> SessionClient {
        let client = Arc::new(unlimited(&app, principal));
        SessionClient { app, client, server: None }
    }

    /// Uses the sessions of a server elsewhere.
    pub(crate) fn on_server(self, server: RemoteServer) -> SessionClient {
        SessionClient { server: Some(server), ..self }
    }

    /// Returns the server, unless the sessions are those of this process.
    pub(crate) fn server(&self) -> Option<&RemoteServer> {
        self.server.as_ref()
    }

    /// Returns an error if the sessions are on a server elsewhere, where `what` is not possible.
    pub(crate) fn require_local(&self, what: &str) -> Result<()> {
        match &self.server {
            None => Ok(()),
            Some(_) => Err(Error::invalid_params(format!("{what}: not available with --url"))),
        }
    }

    /// Creates a client with the controller role whose prompts a model writes. It has access only
    /// to `roots`, and relative paths are resolved against `cwd`.
    pub(crate) fn for_model(app: Arc<App>, principal: &str, cwd: PathBuf, roots: Arc<[PathBuf]>) -> SessionClient {
        let mut client = Client::limited(principal, ClientRole::Controller, Some(roots));
        client.id = Client::new(principal, cwd.clone()).id;
        (client.local, client.sees_all, client.data) = (Some(cwd), false, app.places.data.clone());
        client.is_model = true;
        SessionClient { app, client: Arc::new(client), server: None }
    }

    /// Returns the application of this process.
    pub(crate) fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Returns an error unless the client has access to a directory.
    pub(crate) fn require_dir(&self, directory: &Path) -> Result<()> {
        self.client.require_dir(directory)
    }

    pub(crate) async fn call<M: ClientMethod>(&self, params: M::Params) -> Result<M::Result> {
        self.call_until::<M>(params, CancellationToken::new()).await
    }

    /// Invokes a method that starts a turn, such as a prompt, until `cancel`. When the call
    /// returns, the events that precede its result are committed.
    pub(crate) async fn call_until<M: ClientMethod>(&self, params: M::Params, cancel: CancellationToken) -> Result<M::Result> {
        match &self.server {
            None => self.reply::<M>(params, self.context(cancel)).await?.result,
            Some(server) => {
                let row = row::<M>()?;
                let mut params = encoded::<M>(params)?;
                row.nest_params(&mut params);
                let mut result = Box::pin(server.call(row.name, params)).await?;
                row.flatten_result(&mut result);
                decoded::<M>(result)
            }
        }
    }

    /// Sends a prompt like [`SessionClient::call_until`]. `started` receives the turn when it
    /// starts; it is dropped if none starts.
    pub(crate) async fn prompt(
        self,
        params: PromptParams,
        cancel: CancellationToken,
        started: oneshot::Sender<TurnStart>,
    ) -> Result<PromptResult> {
        let turn_started = Some(Arc::new(Mutex::new(Some(started))));
        self.reply::<Prompt>(params, CallContext { turn_started, ..self.context(cancel) }).await?.result
    }

    /// Starts the turn of a prompt on a server elsewhere.
    pub(crate) async fn start_elsewhere(&self, params: PromptParams) -> Result<TurnId> {
        let server = self.server.as_ref().ok_or_else(|| Error::internal("the client has no server"))?;
        server.start_turn(&params.session_id.clone(), encoded::<Prompt>(params)?).await
    }

    /// Creates a session. Returns its id, and the seq after which its events are new to this
    /// client.
    pub(crate) async fn begin(&self, params: NewSessionParams) -> Result<(SessionId, Seq)> {
        match &self.server {
            None => self.open::<NewSession>(params).await,
            Some(_) => Ok((checked(self.call::<NewSession>(params).await?.session_id)?, 0)),
        }
    }

    /// Opens a session to continue it. Returns what [`SessionClient::begin`] does.
    pub(crate) async fn resume(&self, params: OpenSessionParams) -> Result<(SessionId, Seq)> {
        if self.server.is_none() {
            return self.open::<ResumeSession>(params).await;
        }
        let session_id = checked(params.session_id.clone())?;
        self.call::<ResumeSession>(params).await?;
        let head = self.call::<GetSession>(SessionParams { session_id: session_id.clone() }).await?.head;
        Ok((session_id, head))
    }

    /// Creates a session with the history of another one.
    pub(crate) async fn fork(&self, session: &SessionId) -> Result<SessionId> {
        let params = ForkParams { session_id: session.clone(), place: SessionPlace::default(), title: None };
        checked(self.call::<ForkSession>(params).await?.session_id)
    }

    async fn open<M: ClientMethod>(&self, params: M::Params) -> Result<(SessionId, Seq)> {
        let reply = self.reply::<M>(params, self.context(CancellationToken::new())).await?;
        reply.result?;
        match reply.follow {
            Some(FollowChange::After(id, after)) => Ok((id, after)),
            _ => Err(Error::internal(format!("{} opens no session", M::NAME))),
        }
    }

    fn context(&self, cancel: CancellationToken) -> CallContext {
        CallContext::new(self.app.clone(), self.client.clone(), cancel)
    }

    async fn reply<M: ClientMethod>(&self, params: M::Params, cx: CallContext) -> Result<Reply<M::Result>> {
        let _answered = cx.answered.clone().drop_guard();
        // Boxed, because callers hold the futures of several calls.
        let Reply { result, after, follow, stream } = Box::pin(row::<M>()?.run(cx, encoded::<M>(params)?)).await?;
        Ok(Reply { result: result.and_then(decoded::<M>), after, follow, stream })
    }

    /// Invokes the method of a row of the method table, with params and a result in JSON.
    pub(crate) async fn call_row(&self, row: &MethodRow, params: Value, cancel: CancellationToken) -> Result<Value> {
        let cx = self.context(cancel);
        let _answered = cx.answered.clone().drop_guard();
        row.run(cx, params).await?.result
    }

    /// Follows the events of a session after seq `after`. With `responder`, the client counts as
    /// able to answer the session's permission requests while the stream exists.
    pub(crate) async fn follow(&self, session: &SessionId, after: Seq, responder: Option<Responder>) -> Result<SessionEvents> {
        if let Some(server) = &self.server {
            return server
                .follow(session, after, responder == Some(Responder::Person))
                .await
                .map(|events| SessionEvents::Remote(Box::new(events)));
        }
        let client = match responder {
            Some(_) => self.client.clone(),
            None => Arc::new(Client::limited(&self.client.principal, ClientRole::Observer, None)),
        };
        let cx = CallContext::new(self.app.clone(), client, CancellationToken::new());
        let interactive = responder == Some(Responder::Person);
        let params = FollowParams { session_id: Some(session.clone()), after, interactive, ..FollowParams::default() };
        let ended = CancellationToken::new();
        ended.cancel();
        let stream = EventStream::open(&cx, params).await?;
        Ok(SessionEvents::Local(Box::new(LocalEvents { stream, live: CancellationToken::new(), ended })))
    }
}

/// Creates a client of the command line of this process.
fn unlimited(app: &App, principal: &str) -> Client {
    let mut client = Client::new(principal, app.cwd.clone());
    client.needs_own_process = app.services.overrides.apply_to_process();
    client
}

/// A method whose params and result can be encoded and decoded.
pub(crate) trait ClientMethod: Method<Params: Serialize, Result: DeserializeOwned> {}

impl<M: Method<Params: Serialize, Result: DeserializeOwned>> ClientMethod for M {}

fn row<M: Method>() -> Result<&'static MethodRow> {
    method(M::NAME).ok_or_else(|| Error::internal(format!("{} is not in the method table", M::NAME)))
}

fn encoded<M: ClientMethod>(params: M::Params) -> Result<Value> {
    serde_json::to_value(params).map_err(|error| Error::internal(format!("{}: {error}", M::NAME)))
}

fn decoded<M: ClientMethod>(result: Value) -> Result<M::Result> {
    serde_json::from_value(result).map_err(|error| Error::internal(format!("{}: {error}", M::NAME)))
}

/// Checks an id from a server elsewhere, because it becomes part of URLs and names of files.
fn checked(id: SessionId) -> Result<SessionId> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let text = id.as_str();
    match text.len() <= ID_BYTES_MAX && !text.is_empty() && text.chars().all(is_plain) {
        true => Ok(id),
        false => Err(Error::internal(format!("the server sent {text:?}, which is not the id of a session"))),
    }
}

/// The events of a session, in order.
pub(crate) enum SessionEvents {
    Local(Box<LocalEvents>),
    Remote(Box<RemoteEvents>),
}

impl SessionEvents {
    /// Waits for the next events. Cancel safe. Returns an error if the session was deleted.
    pub(crate) async fn next(&mut self) -> Result<Vec<Arc<Event>>> {
        match self {
            SessionEvents::Local(events) => events.next().await,
            SessionEvents::Remote(events) => events.next().await,
        }
    }

    /// Returns the committed events without waiting for more; of a server elsewhere, those that
    /// were committed when the stream was opened.
    pub(crate) async fn committed(&mut self) -> Result<Vec<Arc<Event>>> {
        let mut committed = Vec::new();
        while let Some(events) = self.next_committed().await? {
            committed.extend(events);
        }
        Ok(committed)
    }

    /// Returns the next events of [`SessionEvents::committed`]; `None` at the end. Cancel safe.
    pub(crate) async fn next_committed(&mut self) -> Result<Option<Vec<Arc<Event>>>> {
        match self {
            SessionEvents::Local(events) => events.next_committed().await,
            SessionEvents::Remote(events) => {
                events.committed().await.map(|events| Some(events).filter(|events| !events.is_empty()))
            }
        }
    }
}

/// The events of a session of this process.
pub(crate) struct LocalEvents {
    stream: EventStream,
    /// A token that is never cancelled: [`LocalEvents::next`] waits for more events.
    live: CancellationToken,
    /// A token that is cancelled from the start: [`LocalEvents::next_committed`] does not wait.
    ended: CancellationToken,
}

impl LocalEvents {
    async fn next(&mut self) -> Result<Vec<Arc<Event>>> {
        loop {
            match self.stream.next(&self.live).await? {
                Some(StreamItem::Events(events)) => return Ok(events.into_iter().map(|(_, event)| event).collect()),
                Some(StreamItem::Synced(_) | StreamItem::Status(_)) => {}
                None => return Err(Error::not_found("the session was deleted")),
            }
        }
    }

    async fn next_committed(&mut self) -> Result<Option<Vec<Arc<Event>>>> {
        while let Some(item) = self.stream.next(&self.ended).await? {
            if let StreamItem::Events(events) = item {
                return Ok(Some(events.into_iter().map(|(_, event)| event).collect()));
            }
        }
        Ok(None)
    }
}
