//! The requests of both sides that are under way: theirs, which may be cancelled, and ours, which wait for an answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::message::Id;
use crate::error::{Error, Kind, Result};
use crate::limits;

/// Called once with the answer, or with what came instead of one.
pub type Answered = Box<dyn FnOnce(Result<Value, Value>) + Send>;

#[derive(Default)]
pub struct Peer {
    next: AtomicU64,
    ours: Mutex<HashMap<Id, Answered>>,
    theirs: Mutex<HashMap<Id, CancellationToken>>,
}

impl Peer {
    /// Registers a request of ours; returns the id to send it with.
    pub fn ask(&self, answered: Answered) -> Id {
        let id = Id::Number(self.next.fetch_add(1, Ordering::Relaxed).into());
        self.ours.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), answered);
        id
    }

    /// Hands an answer to whoever waits for it. False: nobody does.
    pub fn answer(&self, id: &Id, result: Result<Value, Value>) -> bool {
        let answered = self.ours.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        match answered {
            Some(answered) => {
                answered(result);
                true
            }
            None => false,
        }
    }

    /// Forgets a request of ours; its answer, if one comes, is nobody's.
    pub fn withdraw(&self, id: &Id) -> bool {
        self.ours.lock().unwrap_or_else(PoisonError::into_inner).remove(id).is_some()
    }

    /// Registers a request of theirs. An id that is in use, or one request too many, is an error.
    pub fn begin(&self, id: &Id, cancel: CancellationToken) -> Result<()> {
        let mut theirs = self.theirs.lock().unwrap_or_else(PoisonError::into_inner);
        if theirs.len() >= limits::REQUESTS_RUNNING_MAX {
            return Err(Error::new(Kind::Overloaded, format!("{} requests are running already", theirs.len())));
        }
        if theirs.contains_key(id) {
            return Err(Error::new(Kind::InvalidRequest, format!("id: {id} belongs to a request that is still running")));
        }
        theirs.insert(id.clone(), cancel);
        Ok(())
    }

    pub fn finish(&self, id: &Id) {
        self.theirs.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Cancels a request of theirs; one that is over is left alone.
    pub fn cancel(&self, id: &Id) {
        if let Some(cancel) = self.theirs.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            cancel.cancel();
        }
    }
}
