//! A `/rpc` WebSocket, with its limits on calls, params, unread responses and subscriptions.

use std::sync::Arc;

use axum::http::HeaderMap;
use jsonrpsee::types::error::reject_too_many_subscriptions;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::errors::from_jsonrpsee;
use crate::api::{Client, SUBSCRIPTIONS_MAX};
use crate::error::{Error, Kind, Result};
use crate::http::state::AppState;
use crate::limits;

/// Maximum number of concurrent read-only calls per socket.
const RPC_READS_MAX: usize = 4;

/// The permits of a call, held until its response is written.
pub(crate) type CallPermits = Vec<OwnedSemaphorePermit>;

/// A message to the client. The permits are released when it is written.
pub(crate) type SocketMessage = (String, Option<Arc<CallPermits>>);

/// A WebSocket and its limits.
pub(crate) struct Socket {
    /// The headers that contain the token. The token is checked again for each call.
    headers: HeaderMap,
    pub outgoing: mpsc::Sender<SocketMessage>,
    /// Cancelled when the client has disconnected.
    pub closed: CancellationToken,
    calls: Arc<Semaphore>,
    notifications: Arc<Semaphore>,
    /// Limits concurrent read-only calls, whose responses may be large.
    reads: Arc<Semaphore>,
    /// Limits the total size of the params of running calls, in kibibytes.
    params: Arc<Semaphore>,
    /// Limits the total size of the unread responses of all sockets, in kibibytes.
    unread: Arc<Semaphore>,
    subscriptions: Arc<Semaphore>,
    /// The subscriptions, and the tokens that end them.
    followed: Mutex<Vec<(Value, CancellationToken)>>,
}

impl Socket {
    /// Creates a socket. `headers` contain the token; `unread` is shared by all sockets.
    pub(crate) fn new(headers: HeaderMap, outgoing: mpsc::Sender<SocketMessage>, unread: Arc<Semaphore>) -> Socket {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Socket {
            headers,
            outgoing,
            closed: CancellationToken::new(),
            calls: semaphore(limits::RPC_CALLS_MAX),
            notifications: semaphore(limits::RPC_CALLS_MAX),
            reads: semaphore(RPC_READS_MAX),
            params: semaphore(limits::RPC_PARAMS_BYTES_MAX >> 10),
            unread,
            subscriptions: semaphore(SUBSCRIPTIONS_MAX),
            followed: Mutex::default(),
        }
    }

    /// Returns the client of the socket. Fails once its token is revoked.
    pub(crate) fn client(&self, state: &AppState) -> Result<Client> {
        state.auth.client(&self.headers)
    }

    /// Queues a message; waits while the queue is full. Returns false if the client has
    /// disconnected.
    pub(crate) async fn send(&self, text: String) -> bool {
        self.outgoing.send((text, None)).await.is_ok()
    }

    /// Acquires the permits for a call with `bytes` of params. A read-only call (`reads`) waits for
    /// its read permit. If any other permit is not available, the call fails with `overloaded`.
    pub(crate) async fn call(&self, bytes: usize, reads: bool) -> Result<CallPermits> {
        let most = format!("more than {} concurrent calls on one socket", limits::RPC_CALLS_MAX);
        let mut held = vec![acquire(&self.calls, 1).ok_or_else(|| overloaded(most))?];
        if bytes as u64 > limits::HTTP_BODY_BYTES_SMALL {
            let most = format!("more than {} bytes of concurrent params on one socket", limits::RPC_PARAMS_BYTES_MAX);
            held.push(acquire(&self.params, bytes >> 10).ok_or_else(|| overloaded(most))?);
        }
        if reads {
            held.extend(self.reads.clone().acquire_owned().await.ok());
        }
        Ok(held)
    }

    /// Acquires the permits for a response of `bytes` and adds them to the permits of its call.
    pub(crate) fn respond(&self, bytes: usize, held: &mut CallPermits) -> Result<()> {
        if bytes as u64 > limits::HTTP_BODY_BYTES_SMALL {
            let most = "the client is not reading its responses".to_string();
            held.push(acquire(&self.unread, bytes >> 10).ok_or_else(|| overloaded(most))?);
        }
        Ok(())
    }

    /// Acquires the permit for a notification.
    pub(crate) fn notification(&self) -> Result<OwnedSemaphorePermit> {
        acquire(&self.notifications, 1).ok_or_else(|| Error::new(Kind::Overloaded, "too many notifications at once"))
    }

    /// Acquires the permit for a subscription.
    pub(crate) fn subscription(&self) -> Result<OwnedSemaphorePermit> {
        let most = || from_jsonrpsee(&reject_too_many_subscriptions(SUBSCRIPTIONS_MAX as u32));
        acquire(&self.subscriptions, 1).ok_or_else(most)
    }

    /// Adds a subscription to the list. Returns the token that is cancelled when the client ends
    /// the subscription or disconnects.
    pub(crate) fn follow(&self, id: &Value) -> CancellationToken {
        let ended = self.closed.child_token();
        self.followed.lock().push((id.clone(), ended.clone()));
        ended
    }

    /// Ends the subscription whose id is the only param. Returns false if the subscription is not
    /// in the list.
    pub(crate) fn unfollow(&self, params: &str) -> bool {
        let Ok([id]) = serde_json::from_str::<[Value; 1]>(params) else { return false };
        let followed = self.followed.lock();
        let ended = followed.iter().find(|(listed, _)| *listed == id).map(|(_, ended)| ended);
        ended.inspect(|ended| ended.cancel()).is_some()
    }

    /// Removes a subscription from the list.
    pub(crate) fn forget(&self, id: &Value) {
        self.followed.lock().retain(|(listed, _)| listed != id);
    }
}

fn acquire(semaphore: &Arc<Semaphore>, permits: usize) -> Option<OwnedSemaphorePermit> {
    semaphore.clone().try_acquire_many_owned(permits as u32).ok()
}

fn overloaded(message: String) -> Error {
    Error::new(Kind::Overloaded, message).hint("read the pending responses, then retry")
}
