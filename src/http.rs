//! The HTTP server: the method table as REST and JSON-RPC, events as server-sent events, and the
//! web console. It shares its sessions with the other transports of the process.

mod auth;
mod files;
mod idempotency;
mod metrics;
mod params;
mod pending_connections;
mod prompt;
mod response;
mod routes;
mod rpc;
mod schema;
mod sse;
mod tls;
pub mod tokens;
mod web;
mod write_timeout;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use tracing::Instrument;

use crate::api::Nuncio;
use crate::error::{Error, Result};
use crate::limits;
use auth::{Auth, CrossOrigin};
use idempotency::Idempotency;
use metrics::{GaugeGuard, Requests};
use pending_connections::{PendingConnection, PendingConnections};
use response::ApiError;
use rpc::line::{Line, Wire};
pub use tokens::Tokens;
use write_timeout::WriteTimeout;

/// Options of the HTTP server, from the command line.
#[derive(Clone, Debug)]
pub struct Options {
    pub address: SocketAddr,
    /// Allows addresses outside the loopback interface.
    pub public: bool,
    /// A reverse proxy terminates TLS.
    pub behind_proxy: bool,
    /// Host names that requests may name, in addition to those of the loopback.
    pub hosts: Vec<String>,
    /// Allowed origins (RFC 6454), in addition to our own.
    pub origins: Vec<String>,
    /// Directories that sessions may work in, without symlinks.
    pub roots: Vec<PathBuf>,
}

/// State shared by all requests.
pub struct AppState {
    nuncio: Arc<Nuncio>,
    auth: Auth,
    router: Router,
    idempotency: Idempotency,
    /// The service of `/rpc`, created by its first request.
    rpc: OnceLock<rpc::Rpc>,
    /// The OpenAPI document, created by its first request.
    openapi_json: OnceLock<Bytes>,
    requests: Requests,
    /// Limits how many kibibytes of bodies are held in memory at once.
    bodies: Semaphore,
    /// When cancelled, streams end after the last available event.
    ending: CancellationToken,
    /// Calls that continue when their client disconnects.
    running: TaskTracker,
    /// Subscriptions of `/rpc`.
    subscriptions: TaskTracker,
    /// WebSockets of `/rpc`.
    sockets: TaskTracker,
}

/// The permit and the gauge of a connection, held until it closes, also as a WebSocket.
type Slot = (OwnedSemaphorePermit, GaugeGuard);

/// The HTTP server: bound to its address, serving once [`Bridge::serve`] is called.
pub struct Bridge {
    listener: TcpListener,
    tls: Option<tokio_rustls::TlsAcceptor>,
    state: Arc<AppState>,
    token: String,
}

impl Bridge {
    /// Checks the options, generates the owner token if needed and binds the address.
    pub async fn open(nuncio: Arc<Nuncio>, options: Options) -> Result<Bridge> {
        let settings = &nuncio.services.user.settings.http;
        let tls = tls::acceptor(settings)?;
        if !options.address.ip().is_loopback() {
            let refused = |message: &str, hint: &str| Err(Error::invalid_params(message).hint(hint));
            if !options.public {
                return refused(
                    "an address outside the loopback interface requires --allow-public",
                    "any host that reaches the port could try tokens",
                );
            }
            if tls.is_none() && !options.behind_proxy {
                let hint = "set http.tls_certificate and http.tls_key, or pass --behind-proxy if a reverse proxy terminates TLS";
                return refused("--allow-public requires TLS: tokens and code would be sent unencrypted", hint);
            }
        }
        let tokens = Tokens::new(&nuncio.places.data);
        let token = tokens.owner()?;
        let doing = format!("listening on {}", options.address);
        let listener = TcpListener::bind(options.address).await.map_err(|error| {
            Error::invalid_params(format!("{doing}: {error}"))
                .hint("choose another --http ADDR, or stop the process that listens there")
                .source(error)
        })?;
        let auth = Auth::new(tokens, options.hosts, options.origins, options.roots.into());
        let state = Arc::new(AppState {
            nuncio,
            auth,
            router: routes::router(),
            idempotency: Idempotency::default(),
            requests: Requests::default(),
            rpc: OnceLock::new(),
            openapi_json: OnceLock::new(),
            bodies: Semaphore::new(limits::HTTP_BODIES_BYTES_MAX >> 10),
            ending: CancellationToken::new(),
            running: TaskTracker::new(),
            subscriptions: TaskTracker::new(),
            sockets: TaskTracker::new(),
        });
        Ok(Bridge { listener, tls, state, token })
    }

    /// The URL of the server: `http://ADDRESS` or `https://ADDRESS`.
    pub fn url(&self) -> Result<String> {
        let address = self.listener.local_addr().map_err(|error| Error::io("reading the listener's address", error))?;
        Ok(format!("{}://{address}", if self.tls.is_some() { "https" } else { "http" }))
    }

    /// The URL with the owner token, for a browser. Browsers do not send the fragment to the
    /// server.
    pub fn ready_url(&self) -> Result<String> {
        Ok(format!("{}/#token={}", self.url()?, self.token))
    }

    /// Serves until `stop` is cancelled. Then running turns get `http.drain_s` to end before they
    /// are cancelled, and streams end with the last event.
    pub async fn serve(self, stop: CancellationToken) {
        let Bridge { listener, tls, state, .. } = self;
        let connections = TaskTracker::new();
        let slots = Arc::new(Semaphore::new(connections_max()));
        let pending_connections = Arc::new(PendingConnections::default());
        let closing = CancellationToken::new();
        connections.spawn(state.clone().release_idle_sessions(stop.clone()));
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Usually the process has no file descriptor left.
                    tracing::warn!(%error, "cannot accept a connection");
                    pending_connections.close_oldest(limits::CONNECTIONS_CLOSED);
                    tokio::time::sleep(limits::ACCEPT_PAUSE).await;
                    continue;
                }
            };
            if slots.available_permits() == 0 && !pending_connections.close_oldest(1) {
                continue;
            }
            let slot = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                slot = slots.clone().acquire_owned() => slot,
            };
            let Ok(slot) = slot else { break };
            let (state, tls, closing, pending) = (state.clone(), tls.clone(), closing.clone(), pending_connections.enter());
            connections.spawn(async move {
                let held = (slot, GaugeGuard::new(&state.requests.connections));
                tokio::select! {
                    biased;
                    () = pending.close.cancelled() => {}
                    () = state.connection(stream, tls, held, closing, pending.clone()) => {}
                }
            });
        }
        // Before the listener closes: once connections are refused, no new turn starts.
        state.nuncio.refuse_turns();
        drop(listener);
        state.nuncio.drain(Duration::from_secs(state.nuncio.services.user.settings.http.drain_s)).await;
        state.ending.cancel();
        closing.cancel();
        for tracker in [&connections, &state.running, &state.subscriptions, &state.sockets] {
            tracker.close();
        }
        let finished = async {
            connections.wait().await;
            state.running.wait().await;
            // Subscriptions send `ended` before their sockets are closed.
            state.subscriptions.wait().await;
            state.rpc.get().inspect(|rpc| rpc.stop());
            state.sockets.wait().await;
        };
        if tokio::time::timeout(limits::HTTP_GOODBYE, finished).await.is_err() {
            tracing::debug!("connections were closed before they had finished");
        }
    }
}

impl AppState {
    /// Periodically releases sessions that no client uses.
    async fn release_idle_sessions(self: Arc<Self>, stop: CancellationToken) {
        while tokio::time::timeout(limits::SESSION_IDLE_LOOK, stop.cancelled()).await.is_err() {
            if let Some(sessions) = self.nuncio.sessions_now() {
                sessions.close_idle(limits::SESSION_IDLE).await;
            }
        }
    }

    /// Runs a call to completion, even if its client disconnects.
    async fn run_detached<T: Send + 'static>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        match self.running.spawn(work.in_current_span()).await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(done) => done,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_)) => Err(Error::internal("the server shut down before the call completed")),
        }
    }

    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        tls: Option<tokio_rustls::TlsAcceptor>,
        held: Slot,
        closing: CancellationToken,
        pending: Arc<PendingConnection>,
    ) {
        let _ = stream.set_nodelay(true);
        match tls {
            None => self.serve_http(stream, held, closing, pending).await,
            Some(tls) => {
                if let Ok(Ok(stream)) = tokio::time::timeout(limits::HTTP_HEAD, tls.accept(stream)).await {
                    self.serve_http(stream, held, closing, pending).await;
                }
            }
        }
    }

    async fn serve_http(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        held: Slot,
        closing: CancellationToken,
        pending: Arc<PendingConnection>,
    ) {
        let wire = Wire::default();
        let line = Line::new(WriteTimeout::new(stream), wire.clone(), held);
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let (state, mut request) = (self.clone(), request.map(Body::new));
            request.extensions_mut().insert(wire.clone());
            request.extensions_mut().insert(pending.clone());
            async move { Ok::<_, std::convert::Infallible>(state.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits::HTTP_HEAD)
            .max_buf_size(limits::HTTP_BUFFER_BYTES)
            .serve_connection(TokioIo::new(line), service)
            .with_upgrades();
        tokio::pin!(connection);
        // Errors of a connection, e.g. malformed HTTP, do not concern the server.
        tokio::select! {
            _ = &mut connection => return,
            () = closing.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }

    /// Answers a request, turns errors and panics into responses, and logs one line.
    async fn answer(self: Arc<Self>, request: Request) -> Response {
        let started = Instant::now();
        let id = response::request_id();
        let record = response::RequestRecord::of(&request);
        let cross_origin = response::check_head(&request).and_then(|()| self.auth.address(request.uri(), request.headers()));
        let mut response = match &cross_origin {
            Ok(cross_origin) => response::catch_panic(self.dispatch(request, cross_origin, &id)).await,
            Err(error) => ApiError(error.clone()).into_response(),
        };
        response::finish(&mut response, &id, cross_origin.ok().flatten());
        record.record(&self.requests, &id, &response, started.elapsed());
        response
    }

    /// Authenticates a request and routes it.
    async fn dispatch(self: &Arc<Self>, mut request: Request, cross_origin: &CrossOrigin, id: &str) -> Response {
        if cross_origin.is_some() && request.method() == Method::OPTIONS {
            return response::preflight();
        }
        if !routes::is_open(&request) {
            match self.auth.client(request.headers()) {
                Ok(client) => {
                    if let Some(pending) = request.extensions_mut().remove::<Arc<PendingConnection>>() {
                        pending.admit();
                    }
                    request.extensions_mut().insert(Arc::new(client));
                }
                Err(error) => return ApiError(error).into_response(),
            }
        }
        request.extensions_mut().insert(self.clone());
        // Unauthenticated requests cannot set a trace.
        let span = response::span(&request, id);
        match self.router.clone().oneshot(request).instrument(span).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// How many connections may be open: half of the open files (RLIMIT_NOFILE), at most
/// [`limits::CONNECTIONS_MAX`].
fn connections_max() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    files.map_or(limits::CONNECTIONS_MAX, |files| limits::CONNECTIONS_MAX.min(files as usize / 2)).max(1)
}
