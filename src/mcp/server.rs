//! One MCP server: starts it, restarts it with a growing delay, and ends it when it is no longer
//! used.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::Either;
use rmcp::service::{ClientInitializeError, RoleClient};
use rmcp::transport::IntoTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::auth::{AuthorizationManager, OAuthClientConfig};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection::{McpConnection, chain, login_required, offer, request_failed, requires_login};
use super::handler::McpHandler;
use super::launch::{McpLaunch, McpTransport, OauthClient};
use super::tokens::{McpTokens, UrlTokens};
use crate::limits;
use crate::process::{Child, Command, Ending, ProcessLauncher};
use crate::web::HttpClients;
use crate::workspace::one_line;

/// Handle to a server. Dropping the last handle ends the server.
pub struct McpServerHandle {
    state: watch::Receiver<State>,
    _stop: DropGuard,
}

/// The state of a server.
#[derive(Clone)]
pub(crate) enum State {
    Starting,
    Ready(Arc<McpConnection>),
    Failed {
        /// The cause, for people.
        why: String,
        /// True if the server will be started again.
        restarts: bool,
    },
}

/// The resources that servers need to start.
#[derive(Clone)]
pub(super) struct Resources {
    pub launcher: ProcessLauncher,
    pub web: HttpClients,
    pub tokens: McpTokens,
}

impl McpServerHandle {
    /// Returns the handle, and a future that supervises the server. The future ends when the handle
    /// is dropped or the server failed too often.
    pub(super) fn new(
        launch: McpLaunch,
        resources: Resources,
        stop: CancellationToken,
    ) -> (McpServerHandle, impl Future<Output = ()> + Send + use<>) {
        let (sender, state) = watch::channel(State::Starting);
        let server = McpServerHandle { state, _stop: stop.clone().drop_guard() };
        let supervised =
            async move { Run { launch: &launch, resources: &resources, state: &sender, stop: &stop }.supervise().await };
        (server, supervised)
    }

    /// The state now.
    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Returns false once the server has stopped or failed for good.
    pub(super) fn is_supervised(&self) -> bool {
        // The supervision owns the sender.
        self.state.has_changed().is_ok()
    }

    /// Waits until the first start of the server has succeeded or failed.
    pub(crate) async fn started(&self) {
        // An error means that the supervision has ended, after a failure.
        let _ = self.state.clone().wait_for(|state| !matches!(state, State::Starting)).await;
    }

    /// Waits until the server is ready, also during a restart. The error is a message.
    pub async fn connection(&self, until: Instant) -> Result<Arc<McpConnection>, String> {
        let mut state = self.state.clone();
        let settled = |state: &State| matches!(state, State::Ready(_) | State::Failed { restarts: false, .. });
        let waited = timeout_at(until, state.wait_for(settled)).await.is_ok();
        match self.state() {
            State::Ready(connection) => Ok(connection),
            State::Failed { why, .. } => Err(why),
            State::Starting if waited => Err("it was stopped".into()),
            State::Starting => Err("it has not started yet".into()),
        }
    }
}

/// Exit status of the supervisor if the program does not exist, as in env(1).
const NOT_FOUND: i32 = 127;

/// How a run of a server ended.
enum End {
    Stopped,
    Failed(String),
    /// A restart would fail, too.
    Hopeless(String),
    /// A restart would fail until the user has signed in.
    Unauthorized,
}

/// The supervision of one server.
struct Run<'a> {
    launch: &'a McpLaunch,
    resources: &'a Resources,
    state: &'a watch::Sender<State>,
    stop: &'a CancellationToken,
}

impl Run<'_> {
    async fn supervise(self) {
        let (mut failures, mut after) = (0, None);
        for run in 0.. {
            let started = Instant::now();
            let end = self.run_once(run, after.take()).await;
            let sign_in = self.sign_in();
            failures = if started.elapsed() < limits::MCP_STABLE { failures + 1 } else { 1 };
            let (why, restarts, unauthorized) = match end {
                End::Stopped => return,
                End::Failed(why) => (why, failures <= limits::MCP_RESTARTS_MAX, false),
                End::Hopeless(why) => (why, false, false),
                End::Unauthorized => (login_required(&self.launch.name), false, true),
            };
            tracing::warn!(server = self.launch.name, why, "an MCP server failed");
            self.state.send_replace(State::Failed { why: why.clone(), restarts });
            let waited = match (restarts, unauthorized) {
                (true, _) => self.stop.run_until_cancelled(sleep(limits::MCP_RESTART * 2_u32.pow(failures - 1))).await,
                (false, true) => self.stop.run_until_cancelled(sign_in).await,
                (false, false) => None,
            };
            if waited.is_none() {
                return;
            }
            if unauthorized {
                failures = 0;
                self.state.send_replace(State::Failed { why: why.clone(), restarts: true });
            }
            after = Some(why);
        }
    }

    /// Returns a future that waits until the stored tokens differ from those that are stored now.
    fn sign_in(&self) -> impl Future<Output = ()> + use<> {
        let tokens = match &self.launch.transport {
            McpTransport::Http { url, .. } => Some(self.resources.tokens.of(url)),
            McpTransport::Stdio { .. } => None,
        };
        let modified = move || tokens.as_ref().and_then(UrlTokens::modified);
        let before = modified();
        async move {
            while modified() == before {
                sleep(limits::MCP_LOGIN_POLL).await;
            }
        }
    }

    /// Runs the server until it ends or must stop.
    async fn run_once(&self, run: u32, after: Option<String>) -> End {
        match &self.launch.transport {
            McpTransport::Stdio { command, env, env_removed, cwd } => {
                let mut order = Command::program(command, cwd);
                order.env_removed.extend(env_removed.iter().map(Into::into));
                order.env_set.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
                let (Child { output, mut ending }, input, errors) = match self.resources.launcher.spawn_captured(&order) {
                    Ok(spawned) => spawned,
                    Err(error) => return End::Hopeless(error.to_string()),
                };
                let transport = AsyncRwTransport::new_client(output, input).with_max_line_length(limits::MCP_MESSAGE_BYTES_MAX);
                let last_line = Mutex::default();
                let work = async {
                    let end = self.serve_process(transport, &mut ending, run, after).await;
                    (end, terminate(ending).await)
                };
                let (end, code) = tokio::select! {
                    ended = work => ended,
                    never = log_stderr(&self.launch.name, errors, &last_line) => never,
                };
                match (end, code) {
                    (End::Stopped, _) => End::Stopped,
                    (_, Some(NOT_FOUND)) => End::Hopeless(format!("{} was not found", command[0])),
                    (End::Failed(why), code) => {
                        let code = code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
                        let line = last_line.into_inner().unwrap_or_else(PoisonError::into_inner);
                        End::Failed(if line.is_empty() { why + &code } else { format!("{why}{code}: {line}") })
                    }
                    (end, _) => end,
                }
            }
            McpTransport::Http { url, headers, bearer_token, bearer_token_command, oauth_client } => {
                let Resources { launcher, web, tokens } = self.resources;
                let transport = async {
                    let token = match (bearer_token, bearer_token_command) {
                        (Some(token), _) => Some(token.clone()),
                        (None, Some(command)) => {
                            let printed = launcher.printed(command, Path::new("/")).await;
                            Some(printed.map_err(|why| format!("bearer_token_command: {why}"))?)
                        }
                        (None, None) => None,
                    };
                    let stored = tokens.of(url);
                    if token.is_some() || !stored.exist() {
                        return web.streamable_http(url, headers, token).map(Either::Left);
                    }
                    let manager = timeout(limits::MCP_START, signed_in(web, url, stored, oauth_client.as_ref())).await;
                    let manager = manager.map_err(|_| "its authorization server did not answer in time")??;
                    web.authorized_http(url, headers, manager).map(Either::Right)
                };
                match self.stop.run_until_cancelled(transport).await {
                    None => End::Stopped,
                    Some(Ok(Either::Left(transport))) => self.serve(transport, run, after).await,
                    Some(Ok(Either::Right(transport))) => self.serve(transport, run, after).await,
                    Some(Err(why)) => End::Failed(why),
                }
            }
        }
    }

    /// Serves the connection to a process. Reads the rest of the output if the process ends first.
    async fn serve_process(
        &self,
        transport: impl IntoTransport<RoleClient, std::io::Error, rmcp::transport::TransportAdapterIdentity>,
        ending: &mut Ending,
        run: u32,
        after: Option<String>,
    ) -> End {
        let mut served = std::pin::pin!(self.serve(transport, run, after));
        tokio::select! {
            end = &mut served => end,
            _ = ending.wait() => {
                let rest = timeout(limits::MCP_REST, served).await;
                rest.unwrap_or_else(|_| End::Failed("its process ended".into()))
            }
        }
    }

    /// Initializes the connection and keeps the offer up to date until the connection ends.
    async fn serve<T, E, A>(&self, transport: T, run: u32, after: Option<String>) -> End
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let handler = Arc::new(McpHandler::new(self.launch));
        let until = Instant::now() + limits::MCP_START;
        let ended = CancellationToken::new();
        let initialized = tokio::select! {
            biased;
            () = self.stop.cancelled() => return End::Stopped,
            initialized = timeout_at(until, rmcp::service::serve_client_with_ct(handler.clone(), transport, ended.clone())) => initialized,
        };
        let service = match initialized {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return initialization_failed(&self.launch.name, &error),
            Err(_) => return End::Failed(format!("it did not answer `initialize` within {} s", limits::MCP_START.as_secs())),
        };
        let peer = service.peer().clone();
        let mut waiting = std::pin::pin!(service.waiting());
        let mut changed = None;
        let unauthorized = CancellationToken::new();
        loop {
            // The first lists count to the start; later ones have their own timeout.
            let until = if changed.is_none() { until } else { Instant::now() + limits::MCP_START };
            let listed = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                _ = &mut waiting => return End::Failed("it closed the connection".into()),
                listed = timeout_at(until, offer(&peer)) => listed,
            };
            match (listed, &changed) {
                (Ok(Ok(offer)), _) => {
                    let (peer, handler) = (peer.clone(), handler.clone());
                    let (offer, after, unauthorized) = (Arc::new(offer), after.clone(), unauthorized.clone());
                    let connection = McpConnection { offer, run, after, peer, handler, unauthorized };
                    self.state.send_replace(State::Ready(Arc::new(connection)));
                }
                (Ok(Err(error)), _) if requires_login(&error) => return End::Unauthorized,
                (Ok(Err(error)), None) => return End::Failed(format!("listing its tools failed: {}", chain(&error))),
                (Err(_), None) => return End::Failed("it did not list its tools in time".into()),
                (_, Some(())) => tracing::debug!(server = self.launch.name, "an MCP server did not list its changed tools"),
            }
            changed = Some(());
            let next = Instant::now() + limits::MCP_LIST_INTERVAL;
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                _ = &mut waiting => return End::Failed("it closed the connection".into()),
                () = unauthorized.cancelled() => return End::Unauthorized,
                () = async { sleep_until(next).await; handler.lists_changed.notified().await } => {}
            }
        }
        ended.cancel();
        let _ = timeout(limits::MCP_GOODBYE, waiting).await;
        End::Stopped
    }
}

/// The OAuth tokens of a server to which the user has signed in. The error is a message.
async fn signed_in(
    web: &HttpClients,
    url: &str,
    stored: UrlTokens,
    client: Option<&OauthClient>,
) -> Result<AuthorizationManager, String> {
    let mut manager = web.authorization(url).await?;
    manager.set_credential_store(stored);
    manager.initialize_from_store().await.map_err(|error| chain(&error))?;
    if let Some(OauthClient { id, secret: Some(secret) }) = client {
        let config = OAuthClientConfig::new(id, url).with_client_secret(secret);
        manager.configure_client(config).map_err(|error| chain(&error))?;
    }
    Ok(manager)
}

/// A server that refuses the connection for a reason that does not change is not started again.
fn initialization_failed(name: &str, error: &ClientInitializeError) -> End {
    if error.is_authorization_required() {
        return End::Unauthorized;
    }
    let why = match error {
        ClientInitializeError::TransportError { error, .. } => request_failed(name, &*error.error),
        error => chain(error),
    };
    End::Failed(format!("initialization failed: {why}"))
}

/// Waits a limited time for the process to exit by itself, because its input is closed, then kills
/// it. Returns the exit status, if known.
async fn terminate(mut ending: Ending) -> Option<i32> {
    let mut ended = timeout(limits::MCP_GOODBYE, ending.wait()).await;
    if ended.is_err() {
        ending.cut();
        ended = timeout(limits::END_WAIT, ending.wait()).await;
    }
    ended.ok()?.ok().map(|status| status.code)
}

/// Logs the lines of a server's stderr, within limits, reads the others, and keeps the last line.
/// Never returns, because the end of stderr is not the end of the server.
async fn log_stderr<T>(name: &str, errors: impl AsyncRead + Unpin, last_line: &Mutex<String>) -> T {
    let mut reader = BufReader::new(errors);
    let (mut line, mut lines) = (Vec::new(), 0);
    while let Ok(bytes) = reader.fill_buf().await {
        if bytes.is_empty() {
            break;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        line.extend_from_slice(&part[..part.len().min(limits::MCP_LOG_LINE_BYTES_MAX - line.len())]);
        let used = end.map_or(bytes.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            let text = one_line(String::from_utf8_lossy(&line).trim().to_owned());
            if lines < limits::MCP_LOG_LINES_MAX {
                tracing::info!(server = name, "{text}");
            }
            if !text.is_empty() {
                *last_line.lock().unwrap_or_else(PoisonError::into_inner) = text;
            }
            lines += 1;
            line.clear();
        }
    }
    std::future::pending().await
}
