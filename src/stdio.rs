//! The ACP door: JSON-RPC lines in and out. LineReader become calls of the method table; events become `session/update`.

mod caller;
mod hands;
mod outbox;
mod pipes;
mod presence;
mod project;
mod view;

use std::sync::Arc;

use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use pipes::standard;

use crate::api::{self, Client, Cx, Follow, Nuncio, Reply};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::rpc::lines::{Line, LineReader};
use crate::rpc::message::{Id, Incoming, InvalidMessage, frame};
use crate::rpc::peer::Peer;
use caller::Caller;
use outbox::{Out, Outbox};
use presence::Presence;

/// One connection, from its first line to its end.
#[derive(Clone)]
struct Connection {
    nuncio: Arc<Nuncio>,
    client: Arc<Client>,
    peer: Arc<Peer>,
    out: mpsc::Sender<Out>,
    running: TaskTracker,
    closed: CancellationToken,
}

/// Serves one client until its input ends or `stop` says so; then `others` may come to their end, what still runs is cancelled, and what is left to say is said, within a bound.
pub async fn serve(
    nuncio: Arc<Nuncio>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    stop: CancellationToken,
    others: impl Future<Output = ()>,
) -> Result<()> {
    let (out, replies) = mpsc::channel(limits::REPLIES_QUEUED_MAX);
    let mut client = Client::new("client");
    client.local = true;
    let client = Arc::new(client);
    let peer = Arc::new(Peer::default());
    let connection = Connection {
        nuncio: nuncio.clone(),
        client: client.clone(),
        peer: peer.clone(),
        out,
        running: TaskTracker::new(),
        closed: CancellationToken::new(),
    };
    let caller = Caller::new(client.clone(), peer.clone(), connection.out.downgrade(), connection.running.clone());
    let presence = Presence::new(caller);
    show_what_is_prompted(&connection, presence.clone());
    let outbox = Outbox::new(nuncio.clone(), client, peer, presence.clone(), output);
    let mut writing = tokio::spawn(outbox.run(replies));
    let read = tokio::select! {
        read = connection.read(input) => read,
        () = stop.cancelled() => Ok(()),
        // The client does not take our output any more: nobody is there.
        _ = &mut writing => Ok(()),
    };
    // Questions that only this client could answer are denied before its turns are cancelled.
    presence.clear();
    connection.closed.cancel();
    let Connection { running, out, .. } = connection;
    running.close();
    others.await;
    let drained = tokio::time::timeout(limits::DRAIN, async {
        nuncio.shut_down().await;
        running.wait().await;
        drop(out);
        if !writing.is_finished() {
            let _ = (&mut writing).await;
        }
    });
    if drained.await.is_err() {
        tracing::warn!("the connection did not drain in time");
        writing.abort();
    }
    read
}

impl Connection {
    async fn read(&self, input: impl AsyncRead + Unpin) -> Result<()> {
        let mut lines = LineReader::new(input, limits::FRAME_BYTES_MAX);
        loop {
            // A client that does not read its answers is not read either, once enough of them wait.
            if self.out.capacity() == 0 && tokio::time::timeout(limits::STALLED, self.out.reserve()).await.is_err() {
                return Err(Error::new(Kind::Timeout, "the client asks and does not read"));
            }
            match lines.next().await {
                Ok(Some(Line::Text(line))) if line.iter().all(u8::is_ascii_whitespace) => {}
                Ok(Some(Line::Text(line))) => self.take(&line),
                Ok(Some(Line::TooLong)) => {
                    let message = format!("message is longer than {} bytes", limits::FRAME_BYTES_MAX);
                    self.reply(&Id::Null, Err(Error::new(Kind::TooLarge, message)));
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(Error::io("reading from the client", error)),
            }
        }
    }

    /// Never waits for a handler: answers of the client and cancels always get in.
    fn take(&self, line: &[u8]) {
        match Incoming::parse(line) {
            Ok(Incoming::Request { id, method, params }) => self.request(id, &method, params),
            Ok(Incoming::Notification { method, params }) => self.notification(&method, params),
            Ok(Incoming::Response { id, result }) => {
                if !self.peer.answer(&id, result) {
                    tracing::debug!(%id, "an answer that nobody waits for");
                }
            }
            Err(InvalidMessage { id, error }) => self.reply(&id, Err(error)),
        }
    }

    fn request(&self, id: Id, method: &str, params: Value) {
        let cancel = self.closed.child_token();
        if let Err(error) = self.peer.begin(&id, cancel.clone()) {
            return self.reply(&id, Err(error));
        }
        let Some(entry) = api::entry(method).filter(|entry| !entry.notification) else {
            self.peer.finish(&id);
            return self.reply(&id, Err(unknown(method)));
        };
        let cx = Cx::new(self.nuncio.clone(), self.client.clone(), cancel);
        let answered = cx.answered.clone().drop_guard();
        let connection = self.clone();
        let handled = async move {
            let result = entry.run(cx, params).await;
            connection.peer.finish(&id);
            connection.send(&id, result, Some(answered));
        };
        self.start(handled);
    }

    fn notification(&self, method: &str, params: Value) {
        if method == "$/cancel_request" {
            return self.cancel_request(params);
        }
        let Some(entry) = api::entry(method).filter(|entry| entry.notification) else {
            tracing::debug!(method, "unknown notification");
            return;
        };
        let cx = Cx::new(self.nuncio.clone(), self.client.clone(), self.closed.child_token());
        let method = entry.name;
        self.start(async move {
            if let Err(error) = entry.run(cx, params).await {
                tracing::warn!(method, error = ?error, "notification failed");
            }
        });
    }

    fn cancel_request(&self, params: Value) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CancelRequest {
            request_id: Id,
        }
        match CancelRequest::deserialize(params) {
            Ok(CancelRequest { request_id }) => self.peer.cancel(&request_id),
            Err(error) => tracing::warn!(%error, "$/cancel_request without a requestId"),
        }
    }

    /// Polls the handler once here: what comes before its first `.await` happens in the order of the messages. The budget of cooperative
    /// scheduling must not make a free lock look taken, hence unconstrained.
    fn start(&self, handled: impl Future<Output = ()> + Send + 'static) {
        let mut handled = Box::pin(handled);
        if tokio::task::coop::unconstrained(&mut handled).now_or_never().is_none() {
            self.running.spawn(handled);
        }
    }

    fn reply(&self, id: &Id, result: Result<Reply<Value>>) {
        self.send(id, result, None);
    }

    fn send(&self, id: &Id, result: Result<Reply<Value>>, answered: Option<DropGuard>) {
        let (result, after, follow) = match result {
            Ok(Reply { result, after, follow }) => (result, after, follow),
            Err(error) => (Err(error), None, None),
        };
        queue(&self.out, &self.running, Out { frame: frame::response(id, &result), after, follow, answered });
    }
}

fn queue(outbox: &mpsc::Sender<Out>, running: &TaskTracker, out: Out) {
    match outbox.try_send(out) {
        Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
        // Others were quicker to fill the queue: no more than requests may run, and the reading waits for room before it goes on.
        Err(mpsc::error::TrySendError::Full(out)) => {
            let outbox = outbox.clone();
            running.spawn(async move {
                let _ = outbox.send(out).await;
            });
        }
    }
}

/// A session that is prompted without having been opened on this connection is followed from there; its questions can be answered at once.
fn show_what_is_prompted(connection: &Connection, presence: Presence) {
    // The outbox has the client: with a sender of its own it would wait for itself.
    let (outbox, running) = (connection.out.downgrade(), connection.running.clone());
    connection.client.on_show(Box::new(move |session, after| {
        if let Some(outbox) = outbox.upgrade()
            && presence.attend(session)
        {
            let follow = Some(Follow::AfterIfNew(session.log.id.clone(), after));
            queue(&outbox, &running, Out { frame: Vec::new(), after: None, follow, answered: None });
        }
    }));
}

fn unknown(method: &str) -> Error {
    Error::new(Kind::Unsupported, format!("there is no method {method}"))
}
