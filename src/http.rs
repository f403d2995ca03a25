//! The bridge: the method table as REST, events as server-sent events. One process, any number of clients, the same sessions as everywhere.

mod answer;
mod files;
mod gate;
mod metrics;
mod newcomers;
mod once;
mod params;
mod patient;
mod prompt;
mod routes;
mod rpc;
mod schema;
mod sse;
mod tls;
pub mod tokens;
mod web;

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
use answer::Failure;
use gate::{Foreign, Gate};
use metrics::{Counted, Requests};
use newcomers::{Newcomer, Newcomers};
use once::Once;
use patient::Patient;
use rpc::line::{Line, Wire};
pub use tokens::Tokens;

/// What the command line says of the bridge.
#[derive(Clone, Debug)]
pub struct Options {
    pub address: SocketAddr,
    /// Other interfaces than the loopback, too.
    pub public: bool,
    /// Somebody in front of us does TLS.
    pub behind_proxy: bool,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    /// Directories, without symlinks, that sessions may be in.
    pub roots: Vec<PathBuf>,
}

/// What all requests share.
pub struct Door {
    nuncio: Arc<Nuncio>,
    gate: Gate,
    router: Router,
    once: Once,
    /// `/rpc`; made for the first who asks.
    rpc: OnceLock<rpc::Rpc>,
    /// OpenAPI of it all; made for the first who asks.
    described: OnceLock<Bytes>,
    requests: Requests,
    /// Kibibytes of bodies that may be read at once.
    bodies: Semaphore,
    /// Streams end when they have shown what there is.
    ending: CancellationToken,
    /// What goes on without the client that asked for it.
    running: TaskTracker,
    /// Subscriptions of `/rpc`, and its sockets.
    telling: TaskTracker,
    sockets: TaskTracker,
}

/// What a connection takes up, also as a WebSocket.
type Slot = (OwnedSemaphorePermit, Counted);

/// A bridge that listens and does not answer yet.
pub struct Bridge {
    listener: TcpListener,
    tls: Option<tokio_rustls::TlsAcceptor>,
    door: Arc<Door>,
    token: String,
}

impl Bridge {
    pub async fn open(nuncio: Arc<Nuncio>, options: Options) -> Result<Bridge> {
        let settings = &nuncio.agents.user.settings.http;
        let tls = tls::acceptor(settings)?;
        if !options.address.ip().is_loopback() {
            let refused = |message: &str, hint: &str| Err(Error::invalid_params(message).hint(hint));
            if !options.public {
                return refused(
                    "only the loopback is served without --allow-public",
                    "anybody who reaches the port could try tokens",
                );
            }
            if tls.is_none() && !options.behind_proxy {
                let hint = "set http.tls_certificate and http.tls_key, or say --behind-proxy if somebody in front does it";
                return refused("--allow-public needs TLS: tokens and code would cross the network in the clear", hint);
            }
        }
        let tokens = Tokens::new(&nuncio.places.data);
        let token = tokens.owner()?;
        let doing = format!("listening on {}", options.address);
        let listener = TcpListener::bind(options.address).await.map_err(|error| {
            Error::invalid_params(format!("{doing}: {error}")).hint("another --http ADDR, or stop what listens there").source(error)
        })?;
        let gate = Gate::new(tokens, options.hosts, options.origins, options.roots.into());
        let door = Arc::new(Door {
            nuncio,
            gate,
            router: routes::router(),
            once: Once::default(),
            requests: Requests::default(),
            rpc: OnceLock::new(),
            described: OnceLock::new(),
            bodies: Semaphore::new(limits::HTTP_BODIES_BYTES_MAX >> 10),
            ending: CancellationToken::new(),
            running: TaskTracker::new(),
            telling: TaskTracker::new(),
            sockets: TaskTracker::new(),
        });
        Ok(Bridge { listener, tls, door, token })
    }

    /// `http://ADDRESS`.
    pub fn url(&self) -> Result<String> {
        let address = self.listener.local_addr().map_err(|error| Error::io("looking at the listener", error))?;
        Ok(format!("{}://{address}", if self.tls.is_some() { "https" } else { "http" }))
    }

    /// The same with the owner's token, for a browser: what follows `#` is never sent.
    pub fn ready_url(&self) -> Result<String> {
        Ok(format!("{}/#token={}", self.url()?, self.token))
    }

    /// Serves until `stop`. Then running turns get their time, are cancelled, and streams end with the last event.
    pub async fn serve(self, stop: CancellationToken) {
        let Bridge { listener, tls, door, .. } = self;
        let connections = TaskTracker::new();
        let slots = Arc::new(Semaphore::new(connections_max()));
        let newcomers = Arc::new(Newcomers::default());
        let closing = CancellationToken::new();
        connections.spawn(door.clone().tidy(stop.clone()));
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Usually no file is left.
                    tracing::warn!(%error, "accepting a connection");
                    newcomers.close_oldest(limits::CONNECTIONS_CLOSED);
                    tokio::time::sleep(limits::ACCEPT_PAUSE).await;
                    continue;
                }
            };
            if slots.available_permits() == 0 && !newcomers.close_oldest(1) {
                continue;
            }
            let slot = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                slot = slots.clone().acquire_owned() => slot,
            };
            let Ok(slot) = slot else { break };
            let (door, tls, closing, newcomer) = (door.clone(), tls.clone(), closing.clone(), newcomers.enter());
            connections.spawn(async move {
                let held = (slot, Counted::new(&door.requests.connections));
                tokio::select! {
                    biased;
                    () = newcomer.close.cancelled() => {}
                    () = door.connection(stream, tls, held, closing, newcomer.clone()) => {}
                }
            });
        }
        // First this: whoever finds nobody listening any more can rely on it.
        door.nuncio.refuse_turns();
        drop(listener);
        door.nuncio.drain(Duration::from_secs(door.nuncio.agents.user.settings.http.drain_s)).await;
        door.ending.cancel();
        closing.cancel();
        for tracker in [&connections, &door.running, &door.telling, &door.sockets] {
            tracker.close();
        }
        let goodbye = async {
            connections.wait().await;
            door.running.wait().await;
            // Only who has said that it ends is ended.
            door.telling.wait().await;
            door.rpc.get().inspect(|rpc| rpc.stop());
            door.sockets.wait().await;
        };
        if tokio::time::timeout(limits::HTTP_GOODBYE, goodbye).await.is_err() {
            tracing::debug!("connections were cut");
        }
    }
}

impl Door {
    /// Gives up the sessions that nobody uses, from time to time.
    async fn tidy(self: Arc<Self>, stop: CancellationToken) {
        while tokio::time::timeout(limits::SESSION_IDLE_LOOK, stop.cancelled()).await.is_err() {
            if let Some(sessions) = self.nuncio.sessions_now() {
                sessions.release_idle(limits::SESSION_IDLE).await;
            }
        }
    }

    /// Does work to its end, also when whoever asked for it hangs up in the midst.
    async fn to_its_end<T: Send + 'static>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        match self.running.spawn(work.in_current_span()).await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(done) => done,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_)) => Err(Error::internal("the server ended first")),
        }
    }

    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        tls: Option<tokio_rustls::TlsAcceptor>,
        held: Slot,
        closing: CancellationToken,
        newcomer: Arc<Newcomer>,
    ) {
        let _ = stream.set_nodelay(true);
        match tls {
            None => self.speak(stream, held, closing, newcomer).await,
            Some(tls) => {
                if let Ok(Ok(stream)) = tokio::time::timeout(limits::HTTP_HEAD, tls.accept(stream)).await {
                    self.speak(stream, held, closing, newcomer).await;
                }
            }
        }
    }

    async fn speak(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        held: Slot,
        closing: CancellationToken,
        newcomer: Arc<Newcomer>,
    ) {
        let wire = Wire::default();
        let line = Line::new(Patient::new(stream), wire.clone(), held);
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let (door, mut request) = (self.clone(), request.map(Body::new));
            request.extensions_mut().insert(wire.clone());
            request.extensions_mut().insert(newcomer.clone());
            async move { Ok::<_, std::convert::Infallible>(door.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits::HTTP_HEAD)
            .max_buf_size(limits::HTTP_BUFFER_BYTES)
            .serve_connection(TokioIo::new(line), service)
            .with_upgrades();
        tokio::pin!(connection);
        // A client that breaks off, or says what is no HTTP, is its own affair.
        tokio::select! {
            _ = &mut connection => return,
            () = closing.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }

    /// Answers a request, whatever becomes of it; tells it in one line.
    async fn answer(self: Arc<Self>, request: Request) -> Response {
        let started = Instant::now();
        let id = answer::request_id();
        let asked = answer::Asked::of(&request);
        let foreign = answer::check_head(&request).and_then(|()| self.gate.address(request.uri(), request.headers()));
        let mut response = match &foreign {
            Ok(foreign) => answer::caught(self.pass(request, foreign, &id)).await,
            Err(error) => Failure(error.clone()).into_response(),
        };
        answer::finish(&mut response, &id, foreign.ok().flatten());
        asked.told(&self.requests, &id, &response, started.elapsed());
        response
    }

    async fn pass(self: &Arc<Self>, mut request: Request, foreign: &Foreign, id: &str) -> Response {
        if foreign.is_some() && request.method() == Method::OPTIONS {
            return answer::preflight();
        }
        if !routes::is_open(&request) {
            match self.gate.client(request.headers()) {
                Ok(client) => {
                    if let Some(newcomer) = request.extensions_mut().remove::<Arc<Newcomer>>() {
                        newcomer.admit();
                    }
                    request.extensions_mut().insert(Arc::new(client));
                }
                Err(error) => return Failure(error).into_response(),
            }
        }
        request.extensions_mut().insert(self.clone());
        // Who was not let in tells no trace.
        let span = answer::span(&request, id);
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
