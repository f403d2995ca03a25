//! What one socket may have going on: calls, their params, and answers that were not read yet.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, Kind, Result};
use crate::limits;

/// What a call holds until its answer has left.
pub type Held = Vec<OwnedSemaphorePermit>;

/// A request that became a socket.
pub struct Opened {
    /// What of its head the gate asks for.
    pub headers: HeaderMap,
    calls: Arc<Semaphore>,
    notifications: Arc<Semaphore>,
    /// Calls that only read: their answers are what is large.
    reads: Arc<Semaphore>,
    /// Kibibytes of params; and, of all sockets, of answers.
    asked: Arc<Semaphore>,
    unread: Arc<Semaphore>,
    /// Answers on their way, by their length.
    leaving: Mutex<Vec<(u64, Held)>>,
}

impl Opened {
    pub fn new(headers: HeaderMap, unread: Arc<Semaphore>) -> Opened {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Opened {
            headers,
            calls: semaphore(limits::RPC_CALLS_MAX),
            notifications: semaphore(limits::RPC_CALLS_MAX),
            reads: semaphore(limits::RPC_READS_MAX),
            asked: semaphore(limits::RPC_PARAMS_BYTES_MAX >> 10),
            unread,
            leaving: Mutex::default(),
        }
    }

    /// Room for a call with params of so many bytes; one that reads waits for its turn.
    pub async fn call(&self, bytes: usize, reads: bool) -> Result<Held> {
        let most = format!("at most {} calls at a time over a socket", limits::RPC_CALLS_MAX);
        let mut held = vec![one(&self.calls, 1).ok_or_else(|| overloaded(most))?];
        if bytes as u64 > limits::HTTP_BODY_BYTES_SMALL {
            let most = format!("at most {} bytes of params at a time over a socket", limits::RPC_PARAMS_BYTES_MAX);
            held.push(one(&self.asked, bytes >> 10).ok_or_else(|| overloaded(most))?);
        }
        if reads {
            held.extend(self.reads.clone().acquire_owned().await.ok());
        }
        Ok(held)
    }

    pub fn notification(&self) -> Option<OwnedSemaphorePermit> {
        one(&self.notifications, 1)
    }

    /// An answer of so many bytes is on its way; `held` is for until it has left.
    pub fn leaves(&self, bytes: usize, mut held: Held) -> Result<()> {
        if bytes as u64 > limits::HTTP_BODY_BYTES_SMALL {
            let most = "too many answers wait to be read".to_string();
            held.push(one(&self.unread, bytes >> 10).ok_or_else(|| overloaded(most))?);
        }
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner).push((bytes as u64, held));
        Ok(())
    }

    /// A text of this length has left.
    pub fn left(&self, bytes: u64) {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        let place = leaving.iter().position(|(length, _)| *length == bytes);
        drop(place.map(|place| leaving.remove(place)));
    }
}

fn one(semaphore: &Arc<Semaphore>, permits: usize) -> Option<OwnedSemaphorePermit> {
    semaphore.clone().try_acquire_many_owned(permits as u32).ok()
}

fn overloaded(message: String) -> Error {
    Error::new(Kind::Overloaded, message).hint("read the answers, then ask again")
}
