//! Limits of a WebSocket: concurrent calls, the size of their params, and unread responses.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, Kind, Result};
use crate::limits;

/// The permits of a call, held until its response is written.
pub type CallPermits = Vec<OwnedSemaphorePermit>;

/// A WebSocket and its limits.
pub struct Socket {
    /// The headers with the token, to check it again.
    pub headers: HeaderMap,
    calls: Arc<Semaphore>,
    notifications: Arc<Semaphore>,
    /// Calls that only read, whose responses may be large.
    reads: Arc<Semaphore>,
    /// Kibibytes of params.
    params: Arc<Semaphore>,
    /// Kibibytes of unread responses of all sockets.
    unread: Arc<Semaphore>,
    /// Responses that are not written yet, by length.
    pending: Mutex<Vec<(u64, CallPermits)>>,
}

impl Socket {
    /// A socket without calls. `unread` is shared by all sockets.
    pub fn new(headers: HeaderMap, unread: Arc<Semaphore>) -> Socket {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Socket {
            headers,
            calls: semaphore(limits::RPC_CALLS_MAX),
            notifications: semaphore(limits::RPC_CALLS_MAX),
            reads: semaphore(limits::RPC_READS_MAX),
            params: semaphore(limits::RPC_PARAMS_BYTES_MAX >> 10),
            unread,
            pending: Mutex::default(),
        }
    }

    /// Acquires the permits of a call with `bytes` of params. A call that reads waits for its
    /// permit; the others fail with `overloaded`.
    pub async fn call(&self, bytes: usize, reads: bool) -> Result<CallPermits> {
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

    /// The permit of a notification. `None` if there are too many.
    pub fn notification(&self) -> Option<OwnedSemaphorePermit> {
        acquire(&self.notifications, 1)
    }

    /// Keeps the permits of a call until its response of `bytes` is written.
    pub fn respond(&self, bytes: usize, mut held: CallPermits) -> Result<()> {
        if bytes as u64 > limits::HTTP_BODY_BYTES_SMALL {
            let most = "the client is not reading its responses".to_string();
            held.push(acquire(&self.unread, bytes >> 10).ok_or_else(|| overloaded(most))?);
        }
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push((bytes as u64, held));
        Ok(())
    }

    /// Releases the permits of a written response of this length.
    pub fn written(&self, bytes: u64) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let place = pending.iter().position(|(length, _)| *length == bytes);
        drop(place.map(|place| pending.remove(place)));
    }
}

fn acquire(semaphore: &Arc<Semaphore>, permits: usize) -> Option<OwnedSemaphorePermit> {
    semaphore.clone().try_acquire_many_owned(permits as u32).ok()
}

fn overloaded(message: String) -> Error {
    Error::new(Kind::Overloaded, message).hint("read the pending responses, then retry")
}
