//! The ACP transport: JSON-RPC messages on lines. Requests become calls of the method table; events
//! become `session/update` notifications.

mod caller;
mod client_fs;
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

use crate::api::{self, CallContext, Client, FollowChange, MethodKind, Nuncio, Reply};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::rpc::lines::{Line, LineReader};
use crate::rpc::message::{Id, Incoming, InvalidMessage, frame};
use crate::rpc::peer::Peer;
use caller::Caller;
use outbox::{Out, Outbox};
use presence::Presence;

/// A connection to one client.
#[derive(Clone)]
struct Connection {
    nuncio: Arc<Nuncio>,
    client: Arc<Client>,
    peer: Arc<Peer>,
    out: mpsc::Sender<Out>,
    running: TaskTracker,
    closed: CancellationToken,
}

/// Serves one client until its input ends or `stop` is cancelled. Then waits for `others`, cancels
/// the running turns, and writes the remaining output, within [`limits::DRAIN`].
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
    follow_prompted_sessions(&connection, presence.clone());
    let outbox = Outbox::new(nuncio.clone(), client, peer, presence.clone(), output);
    let mut writing = tokio::spawn(outbox.run(replies));
    let read = tokio::select! {
        read = connection.read(input) => read,
        () = stop.cancelled() => Ok(()),
        // Writing failed: the client has closed the connection.
        _ = &mut writing => Ok(()),
    };
    // Permission requests that no other client can answer are denied before the turns are
    // cancelled.
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
            // Stop reading while the response queue is full because the client does not read.
            if self.out.capacity() == 0 && tokio::time::timeout(limits::STALLED, self.out.reserve()).await.is_err() {
                return Err(Error::new(Kind::Timeout, "the client is not reading its responses"));
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

    /// Handles a line without waiting for handlers, so that responses and cancels always arrive.
    fn take(&self, line: &[u8]) {
        match Incoming::parse(line) {
            Ok(Incoming::Request { id, method, params }) => self.request(id, &method, params),
            Ok(Incoming::Notification { method, params }) => self.notification(&method, params),
            Ok(Incoming::Response { id, result }) => {
                if !self.peer.answer(&id, result) {
                    tracing::debug!(%id, "response to an unknown request");
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
        let Some(row) = api::method(method).filter(|row| matches!(row.kind, MethodKind::Call | MethodKind::Turn)) else {
            self.peer.finish(&id);
            return self.reply(&id, Err(unknown(method)));
        };
        let cx = CallContext::new(self.nuncio.clone(), self.client.clone(), cancel);
        let answered = cx.answered.clone().drop_guard();
        let connection = self.clone();
        let handled = async move {
            let result = row.run(cx, params).await;
            connection.peer.finish(&id);
            connection.send(&id, result, Some(answered));
        };
        self.start(handled);
    }

    fn notification(&self, method: &str, params: Value) {
        if method == "$/cancel_request" {
            return self.cancel_request(params);
        }
        let Some(row) = api::method(method).filter(|row| row.kind == MethodKind::Notification) else {
            tracing::debug!(method, "unknown notification");
            return;
        };
        let cx = CallContext::new(self.nuncio.clone(), self.client.clone(), self.closed.child_token());
        let method = row.name;
        self.start(async move {
            if let Err(error) = row.run(cx, params).await {
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

    /// Polls the handler once, so that the part before its first `.await` runs in the order of the
    /// messages, then spawns it. The poll is unconstrained: an exhausted budget of cooperative
    /// scheduling would make a free lock return `Pending`.
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
            Ok(Reply { result, after, follow, .. }) => (result, after, follow),
            Err(error) => (Err(error), None, None),
        };
        queue(&self.out, &self.running, Out { frame: frame::response(id, &result), after, follow, answered });
    }
}

fn queue(outbox: &mpsc::Sender<Out>, running: &TaskTracker, out: Out) {
    match outbox.try_send(out) {
        Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
        // The queue is full: send from a task. The number of tasks is bounded, because the reader
        // waits for capacity before it accepts more requests.
        Err(mpsc::error::TrySendError::Full(out)) => {
            let outbox = outbox.clone();
            running.spawn(async move {
                let _ = outbox.send(out).await;
            });
        }
    }
}

/// Follows a session that the client prompts without having opened it, and makes the client answer
/// its permission requests.
fn follow_prompted_sessions(connection: &Connection, presence: Presence) {
    // Weak: the outbox holds the client, and a strong sender would keep the outbox from ending.
    let (outbox, running) = (connection.out.downgrade(), connection.running.clone());
    connection.client.on_show(Box::new(move |session, after| {
        if let Some(outbox) = outbox.upgrade()
            && presence.attend(session)
        {
            let follow = Some(FollowChange::AfterIfNew(session.log.id.clone(), after));
            queue(&outbox, &running, Out { frame: Vec::new(), after: None, follow, answered: None });
        }
    }));
}

fn unknown(method: &str) -> Error {
    Error::new(Kind::Unsupported, format!("unknown method {method}"))
}
