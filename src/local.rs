//! The in-process transport: a client in this process calls methods of the method table and follows
//! events.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::api::{
    App, CallContext, Client, ClientRole, EventStream, FollowChange, FollowParams, Method, MethodRow, Prompt, Reply, StreamItem,
    TurnStart, method,
};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::{Seq, SessionId};
use crate::protocol::acp;
use crate::session::permissions::broker::Responder;

/// A client in this process, with the controller role and access to every directory.
#[derive(Clone)]
pub(crate) struct LocalClient {
    app: Arc<App>,
    client: Arc<Client>,
}

impl LocalClient {
    /// Creates a client with the controller role. `principal` is the client's identity in the log.
    pub(crate) fn new(app: Arc<App>, principal: &str) -> LocalClient {
        let client = Arc::new(unlimited(&app, principal));
        LocalClient { app, client }
    }

    /// Creates a client with the controller role whose prompts a model writes. It has access only
    /// to `roots`, and relative paths are resolved against `cwd`.
    pub(crate) fn for_model(app: Arc<App>, principal: &str, cwd: PathBuf, roots: Arc<[PathBuf]>) -> LocalClient {
        let mut client = Client::limited(principal, ClientRole::Controller, Some(roots));
        client.id = Client::new(principal, cwd.clone()).id;
        (client.local, client.sees_all, client.data) = (Some(cwd), false, app.places.data.clone());
        client.is_model = true;
        LocalClient { app, client: Arc::new(client) }
    }

    /// Returns the application of this process.
    pub(crate) fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Returns an error unless the client has access to a directory.
    pub(crate) fn require_dir(&self, directory: &Path) -> Result<()> {
        self.client.require_dir(directory)
    }

    pub(crate) async fn call<M: LocalMethod>(&self, params: M::Params) -> Result<M::Result> {
        self.call_until::<M>(params, CancellationToken::new()).await
    }

    /// Invokes a method that starts a turn, such as a prompt, until `cancel`. When the call
    /// returns, the events that precede its result are committed.
    pub(crate) async fn call_until<M: LocalMethod>(&self, params: M::Params, cancel: CancellationToken) -> Result<M::Result> {
        self.reply::<M>(params, self.context(cancel)).await?.result
    }

    /// Sends a prompt like [`LocalClient::call_until`]. `started` receives the turn when it starts;
    /// it is dropped if none starts.
    pub(crate) async fn prompt(
        self,
        params: acp::PromptRequest,
        cancel: CancellationToken,
        started: oneshot::Sender<TurnStart>,
    ) -> Result<acp::PromptResponse> {
        let turn_started = Some(Arc::new(Mutex::new(Some(started))));
        self.reply::<Prompt>(params, CallContext { turn_started, ..self.context(cancel) }).await?.result
    }

    /// Invokes a method that creates or opens a session. Returns the session's id and the seq after
    /// which its events are new to this client.
    pub(crate) async fn open<M: LocalMethod>(&self, params: M::Params) -> Result<(SessionId, Seq)> {
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

    async fn reply<M: LocalMethod>(&self, params: M::Params, cx: CallContext) -> Result<Reply<M::Result>> {
        let row = method(M::NAME).ok_or_else(|| Error::internal(format!("{} is not in the method table", M::NAME)))?;
        let invalid = |error: serde_json::Error| Error::internal(format!("{}: {error}", M::NAME));
        let _answered = cx.answered.clone().drop_guard();
        let Reply { result, after, follow, stream } = row.run(cx, serde_json::to_value(params).map_err(invalid)?).await?;
        let result = result.and_then(|result| serde_json::from_value(result).map_err(invalid));
        Ok(Reply { result, after, follow, stream })
    }

    /// Invokes the method of a row of the method table, with params and a result in JSON.
    pub(crate) async fn call_row(&self, row: &MethodRow, params: Value, cancel: CancellationToken) -> Result<Value> {
        let cx = self.context(cancel);
        let _answered = cx.answered.clone().drop_guard();
        row.run(cx, params).await?.result
    }

    /// Follows the events of a session after seq `after`. With `responder`, the client counts as
    /// able to answer the session's permission requests while the stream exists.
    pub(crate) async fn follow(&self, session: &SessionId, after: Seq, responder: Option<Responder>) -> Result<LocalEvents> {
        let client = match responder {
            Some(_) => self.client.clone(),
            None => Arc::new(Client::limited(&self.client.principal, ClientRole::Observer, None)),
        };
        let cx = CallContext::new(self.app.clone(), client, CancellationToken::new());
        let interactive = responder == Some(Responder::Person);
        let params = FollowParams { session_id: Some(session.clone()), after, interactive, ..FollowParams::default() };
        let ended = CancellationToken::new();
        ended.cancel();
        Ok(LocalEvents { stream: EventStream::open(&cx, params).await?, live: CancellationToken::new(), ended })
    }
}

/// Creates a client of the command line of this process.
fn unlimited(app: &App, principal: &str) -> Client {
    let mut client = Client::new(principal, app.cwd.clone());
    client.needs_own_process = app.services.overrides.apply_to_process();
    client
}

/// A method whose params and result can be encoded and decoded.
pub(crate) trait LocalMethod: Method<Params: Serialize, Result: DeserializeOwned> {}

impl<M: Method<Params: Serialize, Result: DeserializeOwned>> LocalMethod for M {}

/// The events of a session, in order.
pub(crate) struct LocalEvents {
    stream: EventStream,
    /// A token that is never cancelled: [`LocalEvents::next`] waits for more events.
    live: CancellationToken,
    /// A token that is cancelled from the start: [`LocalEvents::committed`] does not wait.
    ended: CancellationToken,
}

impl LocalEvents {
    /// Waits for the next events. Cancel safe. Returns an error if the session was deleted.
    pub(crate) async fn next(&mut self) -> Result<Vec<Arc<Event>>> {
        loop {
            match self.stream.next(&self.live).await? {
                Some(StreamItem::Events(events)) => return Ok(events.into_iter().map(|(_, event)| event).collect()),
                Some(StreamItem::Synced(_) | StreamItem::Status(_)) => {}
                None => return Err(Error::not_found("the session was deleted")),
            }
        }
    }

    /// Returns the committed events without waiting for more.
    pub(crate) async fn committed(&mut self) -> Result<Vec<Arc<Event>>> {
        let mut committed = Vec::new();
        while let Some(events) = self.next_committed().await? {
            committed.extend(events);
        }
        Ok(committed)
    }

    /// Returns the next committed events without waiting for more; `None` at the end. Cancel safe.
    pub(crate) async fn next_committed(&mut self) -> Result<Option<Vec<Arc<Event>>>> {
        while let Some(item) = self.stream.next(&self.ended).await? {
            if let StreamItem::Events(events) = item {
                return Ok(Some(events.into_iter().map(|(_, event)| event).collect()));
            }
        }
        Ok(None)
    }
}
