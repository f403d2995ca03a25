//! The pending requests of a connection: outgoing requests, which wait for a response, and incoming
//! requests, which the other side may cancel.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::message::Id;
use crate::error::{Error, Kind, Result};

/// Maximum number of concurrent requests per connection. Further requests fail with `overloaded`.
const REQUESTS_RUNNING_MAX: usize = 1024;

/// Called once with the result of an outgoing request, or with its error object.
pub(crate) type ResponseHandler = Box<dyn FnOnce(Result<Value, Value>) + Send>;

/// The pending requests of a connection, in both directions.
#[derive(Default)]
pub(super) struct PendingRequests {
    /// Id of the next outgoing request.
    next: AtomicU64,
    outgoing: Mutex<HashMap<Id, ResponseHandler>>,
    incoming: Mutex<HashMap<Id, CancellationToken>>,
}

impl PendingRequests {
    /// Returns the id for a new outgoing request without registering the request, so its response
    /// is ignored.
    pub(crate) fn next_id(&self) -> Id {
        Id::Integer(self.next.fetch_add(1, Ordering::Relaxed).into())
    }

    /// Registers an outgoing request. Returns the id of the request.
    pub(crate) fn register(&self, handler: ResponseHandler) -> Id {
        let id = self.next_id();
        self.outgoing.lock().insert(id.clone(), handler);
        id
    }

    /// Passes the result of an outgoing request to its handler. Returns false if no such request is
    /// pending.
    pub(crate) fn resolve(&self, id: &Id, result: Result<Value, Value>) -> bool {
        let handler = self.outgoing.lock().remove(id);
        match handler {
            Some(handler) => {
                handler(result);
                true
            }
            None => false,
        }
    }

    /// Removes an outgoing request, so that a later response is ignored. Returns false if the
    /// request was not pending.
    pub(crate) fn withdraw(&self, id: &Id) -> bool {
        self.outgoing.lock().remove(id).is_some()
    }

    /// Registers an incoming request. Fails if the id is in use or if
    /// `REQUESTS_RUNNING_MAX` requests are running.
    pub(crate) fn begin(&self, id: &Id, cancel: CancellationToken) -> Result<()> {
        let mut incoming = self.incoming.lock();
        if incoming.len() >= REQUESTS_RUNNING_MAX {
            return Err(Error::new(Kind::Overloaded, format!("{} requests are running already", incoming.len())));
        }
        if incoming.contains_key(id) {
            return Err(Error::new(Kind::InvalidRequest, format!("id: {id} belongs to a request that is still running")));
        }
        incoming.insert(id.clone(), cancel);
        Ok(())
    }

    /// Removes an incoming request whose handler has returned.
    pub(crate) fn finish(&self, id: &Id) {
        self.incoming.lock().remove(id);
    }

    /// Cancels an incoming request. Does nothing if the request is not running.
    pub(crate) fn cancel(&self, id: &Id) {
        if let Some(cancel) = self.incoming.lock().get(id) {
            cancel.cancel();
        }
    }
}
