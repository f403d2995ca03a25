//! Serves an HTTP connection and its requests: authentication, routing and the request log.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::Instrument;

use super::auth::CrossOrigin;
use super::hook;
use super::mcp;
use super::pending_connections::PendingConnection;
use super::response::{self, ApiError};
use super::routes;
use super::state::{AppState, ConnectionSlot};
use super::write_timeout::WriteTimeout;
use crate::cluster::{self, Cluster};
use crate::error::Result;
use crate::limits;

/// Timeout for receiving the head of a request, including the wait for the next request on an idle
/// connection.
const HTTP_HEAD: Duration = Duration::from_secs(30);
/// Size of a connection's read buffer, in bytes.
const HTTP_BUFFER_BYTES: usize = 64 << 10;

/// The state that a connection needs to serve its requests.
#[derive(Clone)]
pub(crate) struct Transport {
    pub state: Arc<AppState>,
    pub router: Router,
    pub tls: Option<tokio_rustls::TlsAcceptor>,
    /// Accepts connections of other nodes, which TLS tells from those of HTTP clients.
    pub cluster: Option<Arc<Cluster>>,
    /// When cancelled, connections end after their running request.
    pub closing: CancellationToken,
}

impl Transport {
    /// Serves a connection until it closes. After an upgrade, the WebSocket is served by its own
    /// task.
    pub(crate) async fn serve(self, stream: TcpStream, held: ConnectionSlot, pending: Arc<PendingConnection>) {
        let Ok(local) = stream.local_addr().map(|address| address.ip()) else { return };
        let _ = stream.set_nodelay(true);
        // An event stream to a machine that is gone ends, and so does the wait for its user.
        #[cfg(not(posix))]
        let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, (2 * limits::HEARTBEAT).as_millis() as u32);
        match self.tls.clone() {
            None => self.serve_http(stream, local, held, pending).await,
            Some(tls) => {
                let Ok(Ok(stream)) = tokio::time::timeout(HTTP_HEAD, tls.accept(stream)).await else { return };
                match self.cluster.clone().filter(|_| stream.get_ref().1.alpn_protocol() == Some(cluster::PROTOCOL)) {
                    Some(cluster) => self.serve_node(&cluster, stream, pending).await,
                    None => self.serve_http(stream, local, held, pending).await,
                }
            }
        }
    }

    /// Serves another node. Its connection ends with the calls of other processes, not with those
    /// of HTTP clients.
    async fn serve_node(self, cluster: &Cluster, stream: TlsStream<TcpStream>, pending: Arc<PendingConnection>) {
        let served = crate::peer::serve_node(&self.state.app, cluster, stream, || pending.admit()).await;
        if let Err(error) = served {
            tracing::warn!(%error, "the connection of another node was refused");
        }
    }

    async fn serve_http(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        local: IpAddr,
        held: ConnectionSlot,
        pending: Arc<PendingConnection>,
    ) {
        let closing = self.closing.clone();
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let (transport, mut request) = (self.clone(), request.map(Body::new));
            request.extensions_mut().insert(held.clone());
            request.extensions_mut().insert(pending.clone());
            async move { Ok::<_, std::convert::Infallible>(transport.answer(request, local).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HTTP_HEAD)
            .max_buf_size(HTTP_BUFFER_BYTES)
            .serve_connection(TokioIo::new(WriteTimeout::new(stream)), service)
            .with_upgrades();
        tokio::pin!(connection);
        // Connection errors, e.g. malformed HTTP, are ignored: they do not affect the server.
        tokio::select! {
            _ = &mut connection => return,
            () = closing.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }

    /// Answers a request, turns errors and panics into responses, and logs one line.
    async fn answer(self, request: Request, local: IpAddr) -> Response {
        let started = Instant::now();
        let id = response::request_id();
        let record = response::RequestRecord::new(&request);
        let address = |()| self.state.auth.address(request.uri(), request.headers(), local);
        let cross_origin = response::check_head(&request).and_then(address);
        let mut response = match &cross_origin {
            Ok(cross_origin) => response::catch_panic(self.dispatch(request, cross_origin, &id)).await,
            Err(error) => ApiError(error.clone()).into_response(),
        };
        response::finish(&mut response, &id, cross_origin.ok().flatten());
        record.record(&self.state.requests, &id, &response, started.elapsed());
        response
    }

    /// Adds the client of the request's token to the request.
    fn authenticate(&self, request: &mut Request) -> Result<()> {
        let AppState { auth, app, .. } = &*self.state;
        if request.uri().path() == mcp::PATH {
            let access = auth.agent(&app.services.agent_tokens, request.headers())?;
            request.extensions_mut().insert(access);
        } else {
            let is_hook = request.uri().path() == hook::PATH;
            let client = if is_hook { auth.hook_client(request.headers()) } else { auth.client(request.headers()) }?;
            request.extensions_mut().insert(Arc::new(client));
        }
        Ok(())
    }

    /// Authenticates a request and routes it.
    async fn dispatch(&self, mut request: Request, cross_origin: &CrossOrigin, id: &str) -> Response {
        if cross_origin.is_some() && request.method() == Method::OPTIONS {
            return response::preflight();
        }
        if !routes::is_open(&request) {
            if let Err(error) = self.authenticate(&mut request) {
                return ApiError(error).into_response();
            }
            if let Some(pending) = request.extensions_mut().remove::<Arc<PendingConnection>>() {
                pending.admit();
            }
        }
        request.extensions_mut().insert(self.state.clone());
        // The span is created after authentication, so that rejected requests cannot set its
        // parent.
        let span = response::span(&request, id);
        match self.router.clone().oneshot(request).instrument(span).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}
