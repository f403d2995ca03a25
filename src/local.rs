//! The in-process transport: a client in this process calls methods and follows events without
//! encoding them.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::api::{App, CallContext, Client, ClientRole, EventStream, FollowChange, FollowParams, Method, Reply, StreamItem};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::{Seq, SessionId};

/// A client in this process, with the controller role and access to every directory. Calls need no
/// role check and no decoding, so they call the method itself instead of its row.
#[derive(Clone)]
pub(crate) struct LocalClient {
    app: Arc<App>,
    client: Arc<Client>,
}

impl LocalClient {
    /// Creates a client with the controller role. `principal` is the client's identity in the log.
    pub(crate) fn new(app: Arc<App>, principal: &str) -> LocalClient {
        LocalClient { app, client: Arc::new(Client::new(principal)) }
    }

    /// Calls a method and returns its result.
    pub(crate) async fn call<M: Method>(&self, params: M::Params) -> Result<M::Result> {
        self.call_until::<M>(params, CancellationToken::new()).await
    }

    /// Calls a method that starts a turn, such as a prompt. When the call returns, the events that
    /// precede its result are committed.
    pub(crate) async fn call_until<M: Method>(&self, params: M::Params, cancel: CancellationToken) -> Result<M::Result> {
        self.reply::<M>(params, cancel).await?.result
    }

    /// Calls a method that creates or opens a session. Returns the session's id and the seq after
    /// which its events are new to this client.
    pub(crate) async fn open<M: Method>(&self, params: M::Params) -> Result<(SessionId, Seq)> {
        let reply = self.reply::<M>(params, CancellationToken::new()).await?;
        reply.result?;
        match reply.follow {
            Some(FollowChange::After(id, after)) => Ok((id, after)),
            _ => Err(Error::internal(format!("{} opens no session", M::NAME))),
        }
    }

    async fn reply<M: Method>(&self, params: M::Params, cancel: CancellationToken) -> Result<Reply<M::Result>> {
        M::call(CallContext::new(self.app.clone(), self.client.clone(), cancel), params).await
    }

    /// Follows the events of a session after seq `after`. If `answers` is true, the client counts
    /// as able to answer the session's permission requests while the stream exists.
    pub(crate) async fn follow(&self, session: &SessionId, after: Seq, answers: bool) -> Result<LocalEvents> {
        let client = match answers {
            true => self.client.clone(),
            false => Arc::new(Client::limited(&self.client.principal, ClientRole::Observer, None)),
        };
        let cx = CallContext::new(self.app.clone(), client, CancellationToken::new());
        let params = FollowParams { session_id: Some(session.clone()), after, ..FollowParams::default() };
        let ended = CancellationToken::new();
        ended.cancel();
        Ok(LocalEvents { stream: EventStream::open(&cx, params).await?, live: CancellationToken::new(), ended })
    }
}

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
                Some(StreamItem::Synced(_)) => {}
                None => return Err(Error::not_found("the session was deleted")),
            }
        }
    }

    /// Returns the committed events without waiting for more.
    pub(crate) async fn committed(&mut self) -> Result<Vec<Arc<Event>>> {
        let mut committed = Vec::new();
        while let Some(item) = self.stream.next(&self.ended).await? {
            if let StreamItem::Events(events) = item {
                committed.extend(events.into_iter().map(|(_, event)| event));
            }
        }
        Ok(committed)
    }
}
