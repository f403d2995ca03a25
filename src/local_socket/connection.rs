//! A connection to another nuncio process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{HELLO, PeerAddress};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::rpc::message::error_from;
use crate::rpc::{Connection, Dialect, Framing, Handler, OverflowPolicy, RequestError};

/// Maximum number of notifications about one forwarded call that wait to be handled.
const PEER_NOTIFICATIONS_MAX: usize = 8;

/// The JSON-RPC dialect of local sockets.
pub(crate) const PEER: Dialect = Dialect {
    framing: Framing::Lines,
    message_bytes_max: limits::PEER_MESSAGE_BYTES_MAX,
    messages_queued_max: limits::REPLIES_QUEUED_MAX,
    when_full: OverflowPolicy::PauseReading(limits::STALLED),
    cancel_method: "$/cancel_request",
    cancel_id: "requestId",
    rejects_invalid: true,
};

/// Params of the request [`HELLO`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hello {
    /// The version of the messages that the calling process sends.
    pub version: u32,
    pub pid: u32,
}

/// Why a request to another process has no result.
#[derive(Clone, Debug)]
pub(crate) enum PeerFailure {
    /// The connection ended before the response. The request may have had an effect.
    Closed,
    /// The error with which the other process responded.
    Refused(Error),
}

/// A notification about a running call: its method and params.
pub(crate) type CallNotification = (String, Value);

/// A connection to another nuncio process. It ends when the last reference is dropped; [`Peers`]
/// keeps one.
///
/// [`Peers`]: super::Peers
pub(crate) struct PeerConnection {
    /// The other process.
    pub address: PeerAddress,
    connection: Connection<()>,
    calls: Arc<CallListeners>,
    closed: CancellationToken,
    /// The version of the messages that both processes send on this connection.
    version: u32,
    /// Why the connection was not opened, or why the other process refused it.
    refusal: OnceLock<Error>,
}

/// The running calls of a connection that receive notifications.
#[derive(Default)]
struct CallListeners {
    next: AtomicU64,
    listeners: Mutex<HashMap<u64, mpsc::Sender<CallNotification>>>,
}

/// Receives the notifications about one call. Dropping it ends the subscription.
pub(crate) struct CallNotifications {
    /// Number of the call on its connection.
    pub call: u64,
    receiver: mpsc::Receiver<CallNotification>,
    calls: Arc<CallListeners>,
}

impl CallNotifications {
    /// Returns the next notification. Cancel-safe. Waits forever after the connection has ended.
    pub(crate) async fn next(&mut self) -> CallNotification {
        match self.receiver.recv().await {
            Some(notification) => notification,
            None => std::future::pending().await,
        }
    }

    /// Returns a notification that has arrived already.
    pub(crate) fn arrived(&mut self) -> Option<CallNotification> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for CallNotifications {
    fn drop(&mut self) {
        self.calls.listeners.lock().remove(&self.call);
    }
}

impl PeerConnection {
    /// Starts the connection that `open` opens and sends [`HELLO`] with `version`. Requests may be
    /// sent at once: the other process handles them after the greeting.
    pub(super) fn start<S: AsyncRead + AsyncWrite + Send + 'static>(
        address: PeerAddress,
        open: impl Future<Output = Result<S>> + Send + 'static,
        version: u32,
    ) -> Arc<PeerConnection> {
        let (connection, reader, mut writer) = crate::rpc::connection::<()>(PEER);
        let (calls, closed) = (Arc::new(CallListeners::default()), CancellationToken::new());
        let (ends, refusal) = (closed.clone(), OnceLock::new());
        let peer = Arc::new(PeerConnection { address, connection, calls: calls.clone(), closed, version, refusal });
        // The task does not keep the connection open.
        let started = Arc::downgrade(&peer);
        crate::task::spawn(async move {
            let talk = async {
                let stream = match open.await {
                    Ok(stream) => stream,
                    Err(error) => return started.upgrade().into_iter().for_each(|peer| peer.refused(error.clone())),
                };
                let (listener, (input, output)) = (CallHandler(calls), tokio::io::split(stream));
                tokio::select! {
                    _ = reader.run(input, &listener) => {}
                    _ = writer.run(output, ()) => {}
                }
            };
            tokio::select! {
                () = talk => {}
                () = ends.cancelled() => {}
            }
            ends.cancel();
        });
        let greeted = peer.clone();
        let mut greeting = Box::pin(async move {
            match greeted.greet().await {
                Ok(Ok(_)) => {}
                Ok(Err(PeerFailure::Closed)) => greeted.close(),
                Ok(Err(PeerFailure::Refused(error))) => greeted.refused(error),
                Err(_) => greeted.refused(Error::new(Kind::Timeout, "the other process does not respond")),
            }
        });
        // Queued before any other request.
        if (&mut greeting).now_or_never().is_none() {
            crate::task::spawn(greeting);
        }
        peer
    }

    async fn greet(&self) -> Result<Result<Value, PeerFailure>, Elapsed> {
        let hello = Hello { version: self.version, pid: std::process::id() };
        timeout(limits::PEER_HELLO, self.request(HELLO, &hello)).await
    }

    /// Asks the other process whether it responds. If it does not, the connection ends, so that
    /// later calls do not wait for it.
    pub(crate) async fn responds(&self) -> bool {
        let responds = self.greet().await.is_ok();
        if !responds {
            self.close();
        }
        responds
    }

    /// Waits until the other process no longer responds. Asks it every [`limits::FORWARD_ANSWER`].
    pub(crate) async fn hangs(&self) {
        tokio::time::sleep(limits::FORWARD_ANSWER).await;
        while self.responds().await {
            tokio::time::sleep(limits::FORWARD_ANSWER).await;
        }
    }

    fn refused(&self, error: Error) {
        tracing::warn!(%error, "another nuncio process refused a connection");
        let _ = self.refusal.set(error);
        self.close();
    }

    /// Returns why there is no connection: it was not opened, or the other process refused it.
    pub(crate) fn refusal(&self) -> Option<&Error> {
        self.refusal.get()
    }

    /// Sends a request and waits for its result. The request is queued when the future is polled
    /// for the first time. Dropping the future cancels the request.
    pub(crate) fn request(&self, method: &str, params: impl Serialize) -> impl Future<Output = Result<Value, PeerFailure>> {
        let requested = self.connection.request(method, params, ());
        async move {
            let result = tokio::select! {
                biased;
                result = requested => result,
                () = self.closed.cancelled() => Err(RequestError::Closed),
            };
            result.map_err(|error| match error {
                RequestError::Closed => PeerFailure::Closed,
                RequestError::Refused(error) => PeerFailure::Refused(error_from(&error)),
                RequestError::Invalid(error) => PeerFailure::Refused(Error::internal(error.to_string())),
            })
        }
    }

    /// Sends a notification. Does nothing after the connection has ended.
    pub(crate) fn notify(&self, method: &str, params: impl Serialize) {
        let _ = self.connection.notify(method, params);
    }

    /// Starts to receive the notifications about a new call.
    pub(crate) fn new_call(&self) -> CallNotifications {
        let call = self.calls.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = mpsc::channel(PEER_NOTIFICATIONS_MAX);
        self.calls.listeners.lock().insert(call, sender);
        CallNotifications { call, receiver, calls: self.calls.clone() }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    pub(crate) fn close(&self) {
        self.closed.cancel();
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        self.close();
    }
}

/// Passes notifications to the calls that they are about.
struct CallHandler(Arc<CallListeners>);

impl Handler<()> for CallHandler {
    fn request(
        &self,
        method: String,
        _params: Value,
        _cancel: CancellationToken,
    ) -> impl Future<Output = (Result<Value>, ())> + Send + 'static {
        std::future::ready((Err(Error::new(Kind::Unsupported, format!("unknown method {method}"))), ()))
    }

    fn notification(&self, method: String, params: Value, _cancel: CancellationToken) -> impl Future<Output = ()> + Send + 'static {
        let listener = params["call"].as_u64().and_then(|call| self.0.listeners.lock().get(&call).cloned());
        // A full queue means that the process sent more notifications than it may send.
        if listener.is_some_and(|listener| listener.try_send((method, params)).is_err()) {
            tracing::warn!("a notification of another nuncio process was dropped");
        }
        std::future::ready(())
    }
}
