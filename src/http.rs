//! The HTTP server. Serves the method table over REST and JSON-RPC, events as server-sent events,
//! and the web console. The server shares its sessions with the other transports of the process.

mod address_file;
mod auth;
mod call;
mod connection;
mod files;
mod hook;
mod idempotency;
mod logins;
mod mcp;
mod metrics;
mod params;
mod pending_connections;
mod responder;
mod response;
mod routes;
mod rpc;
mod schema;
mod sign_in;
mod sse;
mod state;
mod tls;
pub(crate) mod tokens;
mod turn;
mod web;
mod write_timeout;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::api::App;
use crate::cluster::{self, Cluster};
use crate::error::{Error, Result};
use crate::limits;
use crate::task::TaskTracker;
use address_file::AddressFile;
pub(crate) use address_file::running_server;
use auth::Auth;
use connection::Transport;
use logins::Logins;
use metrics::GaugeGuard;
use pending_connections::PendingConnections;
use state::AppState;
pub(crate) use tokens::Tokens;

/// Time for which an unused session is kept open in a server.
const SESSION_IDLE: Duration = Duration::from_secs(3600);
/// Interval at which a server looks for unused sessions.
const SESSION_IDLE_LOOK: Duration = Duration::from_secs(60);
/// Maximum number of connections to the HTTP server, or half of the open-file limit if that is
/// lower. At the limit, the oldest connection that has not authenticated is closed. If all
/// connections have authenticated, the new connection is closed.
const CONNECTIONS_MAX: usize = 4096;
/// Number of unauthenticated connections that are closed together when the server runs out of file
/// descriptors.
const CONNECTIONS_CLOSED: usize = 64;
/// How long connections may take to close at shutdown, after the turns have ended.
const HTTP_SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// How long a node with open connections answers at shutdown: until the health checks of a reverse
/// proxy have found that it ends, and the proxy uses its connections no more.
const PROXY_NOTICE: Duration = Duration::from_secs(2);

/// HTTP server options from the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpOptions {
    /// Host and port to listen on.
    pub address: String,
    /// True if addresses outside the loopback interface are allowed.
    pub public: bool,
    /// True if a reverse proxy terminates TLS.
    pub behind_proxy: bool,
    /// Host names that the `Host` header may contain, in addition to the loopback names.
    pub hosts: Vec<String>,
    /// Allowed origins (RFC 6454), in addition to the server's own origin.
    pub origins: Vec<String>,
    /// Directories that sessions may work in, with symlinks resolved.
    pub roots: Vec<PathBuf>,
}

/// The HTTP server, bound to its address. [`HttpServer::serve`] makes it accept connections.
pub(crate) struct HttpServer {
    listener: TcpListener,
    tls: Option<tokio_rustls::TlsAcceptor>,
    /// The place of this process in its cluster.
    cluster: Option<Arc<Cluster>>,
    state: Arc<AppState>,
    token: String,
    /// Absent if the file could not be written.
    address_file: Option<AddressFile>,
}

impl HttpServer {
    /// Checks the options, generates the owner token if needed and binds the address.
    pub(crate) async fn open(app: Arc<App>, options: HttpOptions) -> Result<HttpServer> {
        let address = tokio::net::lookup_host(&options.address).await.ok().and_then(|mut found| found.next()).ok_or_else(|| {
            let message = format!("--http: invalid address {}", options.address);
            Error::invalid_params(message).hint("give a host and a port: 127.0.0.1:8686")
        })?;
        let settings = &app.services.user.settings;
        let tls = tls::acceptor(&settings.http, settings.cluster.address.is_some())?;
        if settings.cluster.address.is_some() && (tls.is_none() || settings.store.postgres().is_none()) {
            let hint = "set http.tls_certificate, http.tls_key and store.url";
            return Err(Error::invalid_params("cluster.address requires TLS and a PostgreSQL database").hint(hint));
        }
        if !address.ip().is_loopback() {
            let refused = |message: &str, hint: &str| Err(Error::invalid_params(message).hint(hint));
            if !options.public {
                return refused(
                    "an address outside the loopback interface requires --allow-public",
                    "other hosts could connect and guess tokens",
                );
            }
            if tls.is_none() && !options.behind_proxy {
                let hint = "set http.tls_certificate and http.tls_key, or pass --behind-proxy if a reverse proxy terminates TLS";
                return refused("--allow-public requires TLS: tokens and code would be sent unencrypted", hint);
            }
        }
        let tokens = Tokens::new(&app.places.data);
        let token = tokens.owner()?;
        let doing = format!("listening on {address}");
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Error::invalid_params(format!("{doing}: {error}"))
                .hint("choose another --http ADDR, or stop the process that listens there")
                .source(error)
        })?;
        let address = listener.local_addr().map_err(|error| Error::io("reading the listener's address", error))?;
        app.services.listens_at(address, tls.is_some());
        let cluster = app.cluster(tls.as_ref().map(|tls| (address.port(), &*tls.certificate)))?;
        let tls = tls.map(|tls| tls.acceptor);
        let hosts = options.hosts.into_iter().chain(settings.cluster.address.as_deref().and_then(cluster::host_name)).collect();
        let auth = Auth::new(tokens, Logins::new(&app.places.data), hosts, options.origins, options.roots.into());
        let state = Arc::new(AppState::new(app, auth));
        let mut server = HttpServer { listener, tls, cluster, state, token, address_file: None };
        let created = server.url_here().and_then(|url| AddressFile::create(&server.state.app.places.data, &url));
        // Only the hooks of terminal clients need the file.
        server.address_file = created.inspect_err(|error| tracing::warn!(%error, "the server's address is not stored")).ok();
        Ok(server)
    }

    /// Returns the URL of the server for programs on this machine. Loopback addresses replace
    /// `0.0.0.0` and `[::]`.
    fn url_here(&self) -> Result<String> {
        let url = self.url()?;
        Ok(url.replace("://0.0.0.0:", "://127.0.0.1:").replace("://[::]:", "://[::1]:"))
    }

    /// Returns the URL of the server: `http://ADDRESS` or `https://ADDRESS`.
    pub(crate) fn url(&self) -> Result<String> {
        let address = self.listener.local_addr().map_err(|error| Error::io("reading the listener's address", error))?;
        Ok(format!("{}://{address}", if self.tls.is_some() { "https" } else { "http" }))
    }

    /// Returns the owner token.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Returns the URL to open in a browser. It contains the owner token in the fragment, which
    /// browsers do not send to the server.
    pub(crate) fn ready_url(&self) -> Result<String> {
        Ok(format!("{}/#token={}", self.url()?, self.token))
    }

    /// Returns the URL to open in a browser on this machine, with a code for one sign-in: other
    /// users see the command lines of browsers.
    pub(crate) fn code_url(&self) -> Result<String> {
        let code = self.state.auth.logins.new_code(tokens::sha256(&self.token))?;
        Ok(format!("{}/#code={code}", self.url_here()?))
    }

    /// Serves requests until `stop` is cancelled. Then waits up to `http.drain_s` seconds for the
    /// running turns, cancels the remaining turns, and closes each event stream after its last
    /// event. A node of a cluster answers on its open connections for [`PROXY_NOTICE`]. Once
    /// `leaves` is cancelled, the address is free for another process, and only open connections
    /// are served.
    pub(crate) async fn serve(self, stop: CancellationToken, leaves: CancellationToken) {
        let HttpServer { listener, tls, cluster, state, address_file, .. } = self;
        let mut listening = Some((listener, address_file));
        let connections = TaskTracker::default();
        let slots = Arc::new(Semaphore::new(connections_max()));
        let pending_connections = Arc::new(PendingConnections::default());
        let closing = CancellationToken::new();
        connections.spawn(release_idle_sessions(state.clone(), stop.clone()));
        let in_cluster = cluster.is_some();
        let transport = Transport { state: state.clone(), router: routes::router(), tls, cluster, closing: closing.clone() };
        while let Some(accepted) = next_connection(&mut listening, &stop, &leaves).await {
            let stream = match accepted {
                Ok(stream) => stream,
                Err(error) => {
                    // Usually the process has run out of file descriptors. Closing unauthenticated
                    // connections frees some.
                    tracing::warn!(%error, "cannot accept a connection");
                    pending_connections.close_oldest(CONNECTIONS_CLOSED);
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
            let (transport, pending) = (transport.clone(), pending_connections.enter());
            connections.spawn(async move {
                let held = Arc::new((slot, GaugeGuard::new(&transport.state.requests.connections)));
                tokio::select! {
                    biased;
                    () = pending.close.cancelled() => {}
                    () = transport.serve(stream, held, pending.clone()) => {}
                }
            });
        }
        // Turns are refused before the listener closes: once connections are refused, no new turn
        // starts.
        state.app.refuse_turns();
        drop(listening);
        let time = Duration::from_secs(state.app.services.user.settings.http.drain_s);
        let noticed = async {
            if in_cluster && !connections.is_empty() {
                tokio::time::sleep(PROXY_NOTICE.min(time)).await;
            }
        };
        tokio::join!(state.app.drain(time), noticed);
        state.ending.cancel();
        closing.cancel();
        for tracker in [&connections, &state.running, &state.subscriptions, &state.sockets] {
            tracker.close();
        }
        let finished = async {
            connections.wait().await;
            state.running.wait().await;
            // Wait for the subscriptions first: they send `ended` before their sockets are closed.
            state.subscriptions.wait().await;
            state.sockets_closing.cancel();
            state.sockets.wait().await;
        };
        if tokio::time::timeout(HTTP_SHUTDOWN_GRACE, finished).await.is_err() {
            tracing::debug!("open connections were closed at shutdown; their responses may be incomplete");
        }
    }
}

/// Waits for the next connection. Closes the listener when `leaves` is cancelled; returns `None`
/// when `stop` is.
async fn next_connection(
    listening: &mut Option<(TcpListener, Option<AddressFile>)>,
    stop: &CancellationToken,
    leaves: &CancellationToken,
) -> Option<std::io::Result<TcpStream>> {
    if let Some((listener, _)) = listening {
        tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            accepted = listener.accept() => return Some(accepted.map(|(stream, _)| stream)),
            () = leaves.cancelled() => {}
        }
        *listening = None;
    }
    stop.cancelled().await;
    None
}

/// Releases sessions that no client uses, periodically until `stop`.
async fn release_idle_sessions(state: Arc<AppState>, stop: CancellationToken) {
    while tokio::time::timeout(SESSION_IDLE_LOOK, stop.cancelled()).await.is_err() {
        if let Some(sessions) = state.app.sessions_now() {
            sessions.close_idle(SESSION_IDLE).await;
        }
    }
}

/// Returns the maximum number of open connections: half of the limit on open files (RLIMIT_NOFILE),
/// at most [`CONNECTIONS_MAX`].
fn connections_max() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    files.map_or(CONNECTIONS_MAX, |files| CONNECTIONS_MAX.min(files as usize / 2)).max(1)
}
