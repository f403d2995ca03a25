//! One MCP server: starts it, restarts it with a growing delay, and ends it when it is no longer
//! used.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, FusedFuture};
use parking_lot::Mutex;
use rmcp::service::RoleClient;
use rmcp::transport::IntoTransport;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection::{McpConnection, chain, login_message, offer, requires_login};
use super::handler::McpHandler;
use super::identity::server_identity;
use super::launch::{McpLaunch, McpTransport};
use super::lifecycle::{RunEnd, RunStart, end_after_failed_start, notify_changes, signed_in};
use super::process_end::{log_stderr, terminate};
use super::readable::ReadableResults;
use super::stdio::{Garbage, StdioTransport, describe_line};
use super::tokens::{McpTokens, UrlTokens};
use crate::limits;
use crate::process::{Child, ChildExit, Command, ProcessLauncher};
use crate::web::HttpClients;

/// How long the first turn waits for a server whose first output is not a message of MCP.
const MCP_GARBAGE_WAIT: Duration = Duration::from_secs(1);
/// Interval of the checks for a sign-in of the user to an MCP server.
const MCP_LOGIN_POLL: Duration = Duration::from_secs(1);
/// How long the rest of the output of an MCP server is read after its process has ended.
const MCP_REST: Duration = Duration::from_millis(500);
/// Maximum number of restarts of an MCP server whose instances run shorter than [`MCP_STABLE`].
/// After that, the server is not restarted.
const MCP_RESTARTS_MAX: u32 = 5;
/// Delay before the first restart of an MCP server. It doubles with each further restart.
const MCP_RESTART: Duration = Duration::from_millis(250);
/// An instance of an MCP server that runs this long resets the restart count.
const MCP_STABLE: Duration = Duration::from_secs(60);
/// Minimum time between two requests for the lists of an MCP server.
const MCP_LIST_INTERVAL: Duration = Duration::from_secs(1);

/// Handle to a server. Dropping the last handle ends the server.
pub struct McpServerHandle {
    state: watch::Receiver<State>,
    /// Digest of the program or URL of the server.
    pub(crate) identity: String,
    _stop: DropGuard,
}

#[derive(Clone)]
pub(crate) enum State {
    Starting {
        /// The reason why the server is not expected to become ready, for people.
        fault: Option<String>,
    },
    Ready(Arc<McpConnection>),
    Failed {
        /// The cause, for people.
        why: String,
        /// True if the server will be restarted.
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
        let (sender, state) = watch::channel(State::Starting { fault: None });
        let identity = server_identity(&launch);
        let server = McpServerHandle { state, identity, _stop: stop.clone().drop_guard() };
        let supervised =
            async move { Supervision { launch: &launch, resources: &resources, state: &sender, stop: &stop }.supervise().await };
        (server, supervised)
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Returns false once the server has stopped or failed for good.
    pub(super) fn is_supervised(&self) -> bool {
        // The supervision owns the sender.
        self.state.has_changed().is_ok()
    }

    /// Waits until the first start of the server has succeeded or failed, or is not expected to
    /// succeed.
    pub(crate) async fn started(&self) {
        // Ignore an error: the supervision has ended after a failure.
        let _ = self.state.clone().wait_for(|state| !matches!(state, State::Starting { fault: None })).await;
    }

    /// Waits until the server is ready, also during a restart. The error is a message.
    pub async fn connection(&self, until: Instant) -> Result<Arc<McpConnection>, String> {
        let mut state = self.state.clone();
        let settled = |state: &State| match state {
            // The connection can end before the server's process.
            State::Ready(connection) => !connection.is_closed(),
            State::Failed { restarts, .. } => !restarts,
            State::Starting { .. } => false,
        };
        let waited = timeout_at(until, state.wait_for(settled)).await.is_ok();
        match self.state() {
            State::Ready(connection) => Ok(connection),
            State::Failed { why, .. } => Err(why),
            State::Starting { .. } if waited => Err("it was stopped".into()),
            State::Starting { fault } => Err(fault.unwrap_or_else(|| "it has not started yet".into())),
        }
    }
}

/// Exit status of the supervisor if the program does not exist, as in env(1).
const NOT_FOUND: i32 = 127;

struct Supervision<'a> {
    launch: &'a McpLaunch,
    resources: &'a Resources,
    state: &'a watch::Sender<State>,
    stop: &'a CancellationToken,
}

impl Supervision<'_> {
    async fn supervise(self) {
        let (mut failures, mut after, mut refused) = (0, None, None);
        for run in 0.. {
            let started = Instant::now();
            let end = match self.run_once(RunStart { run, after: after.take(), refused: refused.clone(), tokens: None }).await {
                RunEnd::Refused(error) => {
                    refused = Some(error);
                    self.run_once(RunStart { run, after: after.take(), refused: refused.clone(), tokens: None }).await
                }
                end => end,
            };
            let sign_in = self.sign_in();
            failures = if started.elapsed() < MCP_STABLE { failures + 1 } else { 1 };
            let (why, restarts, unauthorized) = match end {
                RunEnd::Stopped => return,
                RunEnd::Failed(why) => (why, failures <= MCP_RESTARTS_MAX, false),
                RunEnd::Hopeless(why) | RunEnd::Refused(why) => (why, false, false),
                RunEnd::Unauthorized => (login_message(&self.launch.name), false, true),
            };
            tracing::warn!(server = self.launch.name, why, "an MCP server failed");
            self.state.send_replace(State::Failed { why: why.clone(), restarts });
            let waited = match (restarts, unauthorized) {
                (true, _) => self.stop.run_until_cancelled(sleep(MCP_RESTART * 2_u32.pow(failures - 1))).await,
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
            McpTransport::Http { url, .. } => Some(self.resources.tokens.for_url(url)),
            McpTransport::Stdio { .. } => None,
        };
        let modified = move || tokens.as_ref().and_then(UrlTokens::modified_at);
        let before = modified();
        async move {
            while modified() == before {
                sleep(MCP_LOGIN_POLL).await;
            }
        }
    }

    /// Runs the server until it ends or must stop.
    async fn run_once(&self, start: RunStart) -> RunEnd {
        match &self.launch.transport {
            McpTransport::Stdio { command, env, env_removed, cwd, confined, hint } => {
                let mut order = Command::program(command, cwd);
                order = confined.iter().fold(order, Command::confined);
                order.env_removed.extend(env_removed.iter().map(Into::into));
                order.env_set.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
                let (Child { output, mut ending }, input, errors) = match self.resources.launcher.spawn_captured(&order) {
                    Ok(spawned) => spawned,
                    Err(error) => return RunEnd::Hopeless(error.to_string()),
                };
                let garbage = Garbage::new();
                let transport = StdioTransport::new(output, input, garbage.clone());
                let last_line = Mutex::default();
                let work = async {
                    let end = self.serve_process(transport, &mut ending, start).await;
                    (end, terminate(ending).await)
                };
                let mut errors = std::pin::pin!(log_stderr(&self.launch.name, errors, &last_line).fuse());
                let (end, code) = tokio::select! {
                    ended = work => ended,
                    never = errors.as_mut().then(|()| std::future::pending()) => never,
                    never = self.report_garbage(&garbage) => never,
                };
                if !matches!(end, RunEnd::Stopped) && !errors.is_terminated() {
                    let _ = timeout(MCP_REST, errors).await;
                }
                match (end, code) {
                    (RunEnd::Stopped, _) => RunEnd::Stopped,
                    (_, Some(NOT_FOUND)) => RunEnd::Hopeless(format!("{} was not found", command[0])),
                    (RunEnd::Failed(why), code) => {
                        let code = code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
                        let line = Some(last_line.lock().clone()).filter(|line| !line.is_empty());
                        let shown = line.or_else(|| garbage.describe_first()).unwrap_or_default();
                        let why = if shown.is_empty() { why + &code } else { format!("{why}{code}: {shown}") };
                        RunEnd::Failed(hint.iter().fold(why, |why, hint| format!("{why} ({hint})")))
                    }
                    (end, _) => end,
                }
            }
            McpTransport::Http { url, headers, bearer_token, bearer_token_command, oauth_client } => {
                let Resources { launcher, web, tokens } = self.resources;
                let transport = async {
                    let token = match (bearer_token, bearer_token_command) {
                        (Some(token), _) => Some(token.clone()),
                        (None, Some(program)) => {
                            let printed = program.token(launcher).await;
                            Some(printed.map_err(|why| format!("bearer_token_command: {why}"))?)
                        }
                        (None, None) => None,
                    };
                    let stored = tokens.for_url(url);
                    if token.is_some() || !stored.exist() {
                        return web.streamable_http(url, headers, token).map(Either::Left);
                    }
                    let manager = timeout(limits::MCP_START, signed_in(web, url, stored, oauth_client.as_ref())).await;
                    let manager = manager.map_err(|_| "its authorization server did not answer in time")??;
                    web.authorized_http(url, headers, manager).map(Either::Right)
                };
                match self.stop.run_until_cancelled(transport).await {
                    None => RunEnd::Stopped,
                    Some(Ok(Either::Left(transport))) => self.serve(transport, start).await,
                    Some(Ok(Either::Right(transport))) => {
                        self.serve(transport, RunStart { tokens: Some(tokens.for_url(url)), ..start }).await
                    }
                    Some(Err(why)) => RunEnd::Failed(why),
                }
            }
        }
    }

    /// Serves the connection to a process. Reads the rest of the output if the process ends first.
    async fn serve_process(
        &self,
        transport: impl IntoTransport<RoleClient, std::io::Error, rmcp::transport::TransportAdapterIdentity>,
        ending: &mut ChildExit,
        start: RunStart,
    ) -> RunEnd {
        let mut served = std::pin::pin!(self.serve(transport, start));
        tokio::select! {
            end = &mut served => end,
            _ = ending.wait() => {
                let rest = timeout(MCP_REST, served).await;
                rest.unwrap_or_else(|_| RunEnd::Failed("its process ended".into()))
            }
        }
    }

    /// Reports a server that writes text instead of messages and does not become ready. Never
    /// returns, because it can still become ready.
    async fn report_garbage<T>(&self, garbage: &Garbage) -> T {
        let line = garbage.line().await;
        sleep(MCP_GARBAGE_WAIT).await;
        self.state.send_if_modified(|state| match state {
            State::Starting { fault } if fault.is_none() => {
                *fault = Some(describe_line(&line));
                true
            }
            _ => false,
        });
        std::future::pending().await
    }

    /// Initializes the connection and updates the lists of tools and prompts until the connection
    /// ends.
    async fn serve<T, E, A>(&self, transport: T, start: RunStart) -> RunEnd
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let handler = Arc::new(McpHandler::new(self.launch));
        let until = Instant::now() + limits::MCP_START;
        let ended = CancellationToken::new();
        let lifecycle = start.lifecycle();
        let transport = ReadableResults(transport.into_transport());
        let initialized = rmcp::service::serve_client_with_lifecycle_and_ct(handler.clone(), transport, lifecycle, ended.clone());
        let initialized = tokio::select! {
            biased;
            () = self.stop.cancelled() => return RunEnd::Stopped,
            initialized = timeout_at(until, initialized) => initialized,
        };
        let service = match initialized {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return end_after_failed_start(&self.launch.name, &start, &error),
            Err(_) => return RunEnd::Failed(format!("it did not answer `initialize` within {} s", limits::MCP_START.as_secs())),
        };
        let peer = service.peer().clone();
        let mut waiting = std::pin::pin!(service.waiting());
        let mut subscribed = std::pin::pin!(notify_changes(&peer, &handler));
        let mut changed = None;
        let unauthorized = CancellationToken::new();
        loop {
            // The timeout of the start includes the first lists. Later lists have their own
            // timeout.
            let until = if changed.is_none() { until } else { Instant::now() + limits::MCP_START };
            let listed = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                _ = &mut waiting => return RunEnd::Failed("it closed the connection".into()),
                listed = timeout_at(until, offer(&peer)) => listed,
            };
            match (listed, &changed) {
                (Ok(Ok(offer)), _) => {
                    let (peer, handler) = (peer.clone(), handler.clone());
                    let (offer, after, unauthorized) = (Arc::new(offer), start.after.clone(), unauthorized.clone());
                    let (run, tokens) = (start.run, start.tokens.clone());
                    let connection = McpConnection { offer, run, after, peer, handler, unauthorized, tokens };
                    self.state.send_replace(State::Ready(Arc::new(connection)));
                }
                (Ok(Err(error)), _) if requires_login(&error) => return RunEnd::Unauthorized,
                (Ok(Err(error)), None) => return RunEnd::Failed(format!("listing its tools failed: {}", chain(&error))),
                (Err(_), None) => return RunEnd::Failed("it did not list its tools in time".into()),
                (_, Some(())) => tracing::debug!(server = self.launch.name, "an MCP server did not list its changed tools"),
            }
            changed = Some(());
            let next = Instant::now() + MCP_LIST_INTERVAL;
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                _ = &mut waiting => return RunEnd::Failed("it closed the connection".into()),
                () = unauthorized.cancelled() => return RunEnd::Unauthorized,
                never = &mut subscribed => never,
                () = async { sleep_until(next).await; handler.lists_changed.notified().await } => {}
            }
        }
        ended.cancel();
        let _ = timeout(limits::MCP_SHUTDOWN_GRACE, waiting).await;
        RunEnd::Stopped
    }
}
