//! State that all requests of the HTTP server share.

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::auth::Auth;
use super::idempotency::Idempotency;
use super::metrics::{GaugeGuard, RequestMetrics};
use crate::api::{App, Client};
use crate::error::{Error, Result};
use crate::limits;
use crate::task::TaskTracker;

/// Maximum total size of unread responses, over all sockets, in bytes.
const RPC_UNREAD_BYTES_MAX: usize = 256 << 20;

/// The shared state, as an argument of a handler.
pub(crate) type StateExtension = Extension<Arc<AppState>>;
/// The authenticated client, as an argument of a handler.
pub(crate) type ClientExtension = Extension<Arc<Client>>;

/// The permit and the gauge of a connection, held until the connection closes, even after an
/// upgrade to a WebSocket.
pub(crate) type ConnectionSlot = Arc<(OwnedSemaphorePermit, GaugeGuard)>;

/// State shared by all requests.
pub(crate) struct AppState {
    pub app: Arc<App>,
    pub auth: Auth,
    pub idempotency: Idempotency,
    /// The OpenAPI document, created by its first request.
    pub openapi_json: OnceLock<Bytes>,
    pub requests: RequestMetrics,
    /// Limits the total size of the request bodies in memory, in kibibytes.
    pub bodies: Semaphore,
    /// When cancelled, streams end after the last available event.
    pub ending: CancellationToken,
    /// Tasks that run calls which continue when their client disconnects.
    pub running: TaskTracker,
    /// Tasks that serve the subscriptions of `/rpc`.
    pub subscriptions: TaskTracker,
    /// Tasks that serve the WebSockets of `/rpc`.
    pub sockets: TaskTracker,
    /// When cancelled, WebSockets end after their running calls.
    pub sockets_closing: CancellationToken,
    /// Limits the total size of the unread responses of all WebSockets, in kibibytes.
    pub unread: Arc<Semaphore>,
}

impl AppState {
    pub(crate) fn new(app: Arc<App>, auth: Auth) -> AppState {
        AppState {
            app,
            auth,
            idempotency: Idempotency::default(),
            openapi_json: OnceLock::new(),
            requests: RequestMetrics::default(),
            bodies: Semaphore::new(limits::HTTP_BODIES_BYTES_MAX >> 10),
            ending: CancellationToken::new(),
            running: TaskTracker::default(),
            subscriptions: TaskTracker::default(),
            sockets: TaskTracker::default(),
            sockets_closing: CancellationToken::new(),
            unread: Arc::new(Semaphore::new(RPC_UNREAD_BYTES_MAX >> 10)),
        }
    }

    /// Runs a call to completion, even if its client disconnects.
    pub(crate) async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        match self.running.spawn(work.in_current_span()).await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(done) => done,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_)) => Err(Error::internal("the server shut down before the call completed")),
        }
    }
}
