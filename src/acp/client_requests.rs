//! Requests to the client for one session, and the fallback if they fail.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::barrier::{AcpConnection, Barrier};
use crate::api::Client;
use crate::error::Kind;
use crate::event::{Body, Severity};
use crate::limits;
use crate::protocol::acp;
use crate::rpc::RequestError;
use crate::session::SessionLog;
use crate::toolkit::ClientRefusal;

/// Sends the requests of one session to the client, and records whether the client's files and
/// terminals can still be used.
#[derive(Clone)]
pub(crate) struct ClientRequests {
    /// The client, with its capabilities.
    pub client: Arc<Client>,
    /// The connection to the client.
    pub connection: AcpConnection,
    /// The log of the session.
    pub log: Arc<SessionLog>,
    /// True once a request has timed out: the client's files and terminals are no longer used.
    pub slow: Arc<AtomicBool>,
    /// True once the user has been notified of the fallback.
    notified: Arc<AtomicBool>,
    /// True once a file differed from the text that the client was asked to write: the client's
    /// files are no longer used.
    pub distrusted: Arc<AtomicBool>,
    /// Files with an outstanding write request.
    pub(super) writing: Arc<Mutex<HashSet<PathBuf>>>,
}

/// Why a request to the client has no result.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// The client answered with an error.
    Refused { code: i64, message: String },
    /// The client has disconnected.
    Gone,
    /// The client's response is not a valid result of the method.
    Unusable(String),
    /// The client did not answer in time. It may still carry out the request.
    TimedOut(String),
}

impl std::fmt::Display for RequestFailure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            RequestFailure::Refused { message: why, .. } | RequestFailure::Unusable(why) | RequestFailure::TimedOut(why) => why,
            RequestFailure::Gone => "the client is gone",
        })
    }
}

impl RequestFailure {
    /// Creates the failure from a JSON-RPC error object.
    fn from_error(error: &serde_json::Value) -> RequestFailure {
        let message = error["message"].as_str().unwrap_or("an error without a message").to_owned();
        let code = error["code"].as_i64().unwrap_or(Kind::Internal.row().rpc.into());
        RequestFailure::Refused { code, message: reason(error).map_or(message.clone(), |reason| format!("{message}: {reason}")) }
    }

    /// Returns whether the client answered with the JSON-RPC code of this kind.
    pub(crate) fn has_kind(&self, kind: Kind) -> bool {
        matches!(self, RequestFailure::Refused { code, .. } if *code == i64::from(kind.row().rpc))
    }
}

/// Returns the cause in an error object: `data`, or `data.details`, where SDKs put the cause of
/// internal errors.
fn reason(error: &serde_json::Value) -> Option<&str> {
    error["data"].as_str().or_else(|| error["data"]["details"].as_str())
}

impl ClientRequests {
    pub(crate) fn new(client: Arc<Client>, connection: AcpConnection, log: Arc<SessionLog>) -> ClientRequests {
        let (slow, notified, distrusted) = (Arc::default(), Arc::default(), Arc::default());
        ClientRequests { client, connection, log, slow, notified, distrusted, writing: Arc::default() }
    }

    pub(crate) fn session(&self) -> acp::SessionId {
        acp::SessionId::new(self.log.id.as_str())
    }

    /// Sends a request after all events that the session has so far, and waits up to `timeout` for
    /// the result.
    pub(crate) async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
        timeout: Duration,
    ) -> Result<R, RequestFailure> {
        let requested = self.connection.request(method, params, Barrier::after(self.log.id.clone(), self.log.head()));
        let result = tokio::time::timeout(timeout, requested).await.map_err(|_| self.timed_out(timeout))?;
        result.map_err(|error| match error {
            RequestError::Invalid(error) => RequestFailure::Unusable(error.to_string()),
            RequestError::Refused(error) => RequestFailure::from_error(&error),
            RequestError::Closed => RequestFailure::Gone,
        })
    }

    fn timed_out(&self, timeout: Duration) -> RequestFailure {
        self.slow.store(true, Ordering::Relaxed);
        RequestFailure::TimedOut(format!("no answer within {} s", timeout.as_secs()))
    }

    /// Sends a request that the client may still carry out after the timeout. `late` receives a
    /// result that arrives after the timeout or after the returned future was dropped.
    pub(crate) async fn call_with_effect<R: DeserializeOwned + Send + 'static>(
        &self,
        method: &'static str,
        params: impl Serialize + Send + 'static,
        timeout: Duration,
        late: impl FnOnce(Result<R, RequestFailure>) + Send + 'static,
    ) -> Result<R, RequestFailure> {
        let (requests, (answer, answered)) = (self.clone(), oneshot::channel());
        crate::task::spawn(async move {
            let result = requests.call(method, params, limits::STALLED).await;
            if let Err(result) = answer.send(result) {
                late(result);
            }
        });
        match tokio::time::timeout(timeout, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(self.timed_out(timeout)),
        }
    }

    /// Decides whether to use the local disk after a failed request. Returns an error if the client
    /// refused the request. For other failures, notifies the user and returns `Ok`: the caller uses
    /// the local disk.
    pub(crate) fn fall_back(&self, method: &str, failure: RequestFailure) -> Result<(), ClientRefusal> {
        match failure {
            RequestFailure::Refused { ref message, .. } if !failure.has_kind(Kind::Unsupported) => {
                Err(ClientRefusal(message.clone()))
            }
            failure => {
                self.notify(method, &failure);
                Ok(())
            }
        }
    }

    /// Notifies the user once that nuncio continues without the client.
    pub(crate) fn notify(&self, method: &str, why: &RequestFailure) {
        tracing::info!(session = %self.log.id, method, %why, "request to the client failed");
        if !self.notified.swap(true, Ordering::Relaxed) {
            let description = format!("{method}: {why}; nuncio continues without the client");
            self.log.try_emit(None, Body::notice(Severity::Warning, "A request to the client failed", description));
        }
    }
}
