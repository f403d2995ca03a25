//! A session in which a hosted agent works: starts the agent when a turn needs it, restarts it
//! after a failure, and ends it when it is idle.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::conversation::{ExternalTurn, HostedConversation};
use super::driver::TurnIo;
use super::events::TurnEvents;
use super::open_requests::OpenRequests;
use super::opencode::OpencodeServers;
use super::permission::PermissionDecider;
use super::process::AgentProcess;
use super::start::{LiveSetup, Start, StartedAgent};
use super::turn_commands::{CommandTurn, TurnCommands};
use super::{options, registry};
use crate::agent::{AgentToken, Services};
use crate::config::{self, HostedAgent, LoadedSettings, McpServer};
use crate::content::StopReason;
use crate::context::commands::SlashCommand;
use crate::error::{Kind, Result};
use crate::event::{Body, SessionChange, Severity};
use crate::process::StartTime;
use crate::session::context_report::{ContextReport, ContextSources};
use crate::session::{Agent, AgentOption, CommandRequest, CommandResult, ExternalTurnStarter, SessionLog, SessionSetup, Turn};
use crate::workspace::Workspace;

/// Delay before a hosted agent is restarted after its first failure. It doubles with each failure
/// up to [`AGENT_RESTART_MAX`].
const AGENT_RESTART: Duration = Duration::from_secs(1);
/// Maximum delay before a hosted agent is restarted.
const AGENT_RESTART_MAX: Duration = Duration::from_secs(30);

/// A hosted agent of one session.
pub(super) struct HostedSession {
    services: Arc<Services>,
    name: String,
    setup: SessionSetup,
    opencode: Arc<OpencodeServers>,
    live: Arc<tokio::sync::Mutex<Live>>,
    /// The running conversation, for reads that must not wait for a turn.
    current: Mutex<Option<Arc<dyn HostedConversation>>>,
    /// MCP servers that the client gave.
    given: Mutex<BTreeMap<String, McpServer>>,
    /// Commands that the agent runs with nuncio.
    commands: TurnCommands,
    /// Number of turns so far.
    turns: AtomicU64,
    start_external: ExternalTurnStarter,
    this: Weak<HostedSession>,
}

/// The state of the agent's process. Locked during a turn.
#[derive(Default)]
struct Live {
    conversation: Option<Arc<dyn HostedConversation>>,
    /// The token with which the process uses nuncio's MCP server.
    token: Option<AgentToken>,
    setup: LiveSetup,
    /// Waits for turns of other clients of the agent.
    watch: Option<AbortOnDropHandle<()>>,
    /// Failed starts since the last successful one.
    failures: u32,
    not_before: Option<Instant>,
}

impl HostedSession {
    pub(super) fn new(
        services: Arc<Services>,
        opencode: Arc<OpencodeServers>,
        name: String,
        setup: SessionSetup,
        start_external: ExternalTurnStarter,
    ) -> Arc<HostedSession> {
        Arc::new_cyclic(|this| HostedSession {
            services,
            opencode,
            name,
            setup,
            live: Arc::default(),
            current: Mutex::default(),
            given: Mutex::default(),
            commands: TurnCommands::default(),
            turns: AtomicU64::new(0),
            start_external,
            this: this.clone(),
        })
    }

    fn current(&self) -> Option<Arc<dyn HostedConversation>> {
        self.current.lock().clone()
    }

    fn set_current(&self, conversation: Option<Arc<dyn HostedConversation>>) {
        *self.current.lock() = conversation;
    }

    async fn work(&self, turn: &Turn) -> Result<StopReason> {
        let settings = registry::allowed(&self.services, &self.name)?;
        let cwd = turn.log.state(|state| state.cwd.clone());
        registry::check_trust(&self.services, &self.name, &cwd)?;
        let loaded = self.services.settings(&cwd)?;
        self.turns.fetch_add(1, Ordering::Relaxed);
        let result = self.work_in(turn, &settings, &loaded, &cwd).await;
        self.end_when_idle(registry::idle_ttl(&self.services, &settings));
        result
    }

    async fn work_in(&self, turn: &Turn, settings: &HostedAgent, loaded: &LoadedSettings, cwd: &Path) -> Result<StopReason> {
        let lock = self.live.clone().lock_owned();
        let mut live = tokio::select! {
            biased;
            () = turn.cancel.cancelled() => return Ok(StopReason::Cancelled),
            live = lock => live,
        };
        stop_watch(&mut live).await;
        let start = async {
            let conversation = self.ready(&mut live, turn, settings, loaded, cwd).await?;
            options::apply(&self.name, &*conversation, turn, loaded.settings.permissions.default).await.map(|()| conversation)
        };
        let started = tokio::select! {
            biased;
            () = turn.cancel.cancelled() => None,
            started = start => Some(started),
        };
        let Some(started) = started else {
            // Stop the process: a request to it may be open.
            self.end_live(&mut live).await;
            return Ok(StopReason::Cancelled);
        };
        let conversation = started?;
        let workspace = self.workspace(turn, loaded, cwd);
        let events = TurnEvents::new(turn);
        let permissions = PermissionDecider::new(turn, events.bytes(), loaded, &workspace);
        let mut io = TurnIo { name: &self.name, events, requests: OpenRequests::new(&permissions, turn.cancel.child_token()) };
        let started = StartTime::now();
        let (services, parent) = (&self.services, self.setup.parent.as_ref());
        let during = CommandTurn { services, turn, parent, conversation: &*conversation };
        let work = match turn.external {
            true => conversation.follow(&mut io),
            false => conversation.prompt(&turn.prompt, &mut io),
        };
        let work = self.commands.serve(during, work);
        let result = match with_login_notice(&self.name, turn, conversation.process(), work).await {
            // Some agents answer a cancelled prompt with an error.
            Err(error) if turn.cancel.is_cancelled() && error.kind != Kind::AgentUnavailable => Ok(StopReason::Cancelled),
            result => result,
        };
        io.requests.end().await;
        let why = match &result {
            Ok(StopReason::Cancelled) => "cancelled; the effect of the call is unknown",
            Ok(_) => "the agent ended its turn without the result of this call",
            Err(_) => "the agent failed during this call; its effect is unknown",
        };
        io.events.close(why).await;
        let unusable = result.as_ref().is_err_and(|error| error.kind == Kind::AgentUnavailable);
        if unusable || conversation.process().has_ended() {
            self.end_live(&mut live).await;
        }
        let leaves_processes = matches!(result, Ok(StopReason::Cancelled)) && conversation.is_disposable();
        let this = self.this.clone();
        // The next turn waits until `live` is released.
        crate::task::spawn(async move {
            if leaves_processes {
                conversation.process().end_leftovers(started).await;
            }
            if let Some(this) = this.upgrade() {
                this.watch(&mut live);
            }
        });
        result
    }

    /// Returns the directories that permission decisions about the turn's calls use.
    fn workspace(&self, turn: &Turn, loaded: &LoadedSettings, cwd: &Path) -> Workspace {
        let places = &self.services.places;
        let roots = turn.log.state(|state| state.additional_directories.clone());
        let roots = roots.into_iter().chain(loaded.settings.allowed_paths.iter().cloned());
        Workspace::new(cwd, roots, &places.artifacts(turn.log.id.as_str()))
            .home(places.home.clone())
            .protect(places.own_files())
            .private(places.private())
            .excludes(config::excludes(&self.services.environment))
    }

    /// Returns the running agent, or starts it. The session's id in the agent is recorded before
    /// the first prompt.
    async fn ready(
        &self,
        live: &mut Live,
        turn: &Turn,
        settings: &HostedAgent,
        loaded: &LoadedSettings,
        cwd: &Path,
    ) -> Result<Arc<dyn HostedConversation>> {
        let wanted = LiveSetup {
            cwd: cwd.into(),
            directories: turn.log.state(|state| state.additional_directories.clone()),
            given: self.given.lock().clone(),
        };
        if let Some(conversation) = self.running(live, turn, &wanted).await {
            self.record_session(turn, &*conversation).await?;
            return Ok(conversation);
        }
        self.end_live(live).await;
        if let Some(not_before) = live.not_before {
            tokio::time::sleep_until(not_before).await;
        }
        let HostedSession { services, opencode, name, setup, .. } = self;
        let started = Start { services, opencode, name, session: setup, settings, loaded, turn }.open(&wanted).await;
        let StartedAgent { conversation, token } = started.inspect_err(|_| {
            let delay = AGENT_RESTART * 2_u32.saturating_pow(live.failures.min(16));
            live.failures += 1;
            live.not_before = Some(Instant::now() + delay.min(AGENT_RESTART_MAX));
        })?;
        (live.failures, live.not_before) = (0, None);
        (live.conversation, live.token) = (Some(conversation.clone()), token);
        live.setup = wanted;
        self.set_current(Some(conversation.clone()));
        self.record_session(turn, &*conversation).await?;
        let unused = conversation.unused_servers();
        if !unused.is_empty() {
            let title = format!("The agent {} does not use some MCP servers", self.name);
            turn.emit(Body::notice(Severity::Warning, title, unused.join(", "))).await;
        }
        Ok(conversation)
    }

    /// Returns the running conversation. Returns `None` if the agent must be started or restarted:
    /// its process has ended, its directory changed, or its MCP servers or additional directories
    /// changed and it can resume its session. An agent that cannot resume its session keeps running
    /// with a warning.
    async fn running(&self, live: &mut Live, turn: &Turn, wanted: &LiveSetup) -> Option<Arc<dyn HostedConversation>> {
        let conversation = live.conversation.clone().filter(|conversation| !conversation.process().has_ended())?;
        if live.setup == *wanted {
            return Some(conversation);
        }
        if live.setup.cwd != wanted.cwd || conversation.can_resume() {
            return None;
        }
        // Record the new setup, so that the next turn does not repeat the notice.
        let (directories, given) = (wanted.directories.clone(), wanted.given.clone());
        (live.setup.directories, live.setup.given) = (directories, given);
        let title = format!("The agent {} does not use the new MCP servers and directories", self.name);
        let why = "it runs and cannot resume its session in a new process";
        turn.emit(Body::notice(Severity::Warning, title, why)).await;
        Some(conversation)
    }

    /// Records the id of the session in the agent.
    async fn record_session(&self, turn: &Turn, conversation: &dyn HostedConversation) -> Result<()> {
        let session = conversation.session();
        if turn.log.state(|state| state.agent_session.as_deref() == Some(session)) {
            return Ok(());
        }
        let change = SessionChange { agent_session: Some(session.into()), ..SessionChange::default() };
        turn.commit_durably(Body::SessionUpdated { change }).await.map(drop)
    }

    /// Ends the agent's process, if it runs.
    async fn end_live(&self, live: &mut Live) {
        self.set_current(None);
        live.token = None;
        stop_watch(live).await;
        if let Some(conversation) = live.conversation.take() {
            conversation.close().await;
        }
    }

    /// Waits for a turn that another client of the agent begins, until the next turn.
    fn watch(&self, live: &mut Live) {
        let running = live.conversation.clone().filter(|conversation| !conversation.process().has_ended());
        let Some(conversation) = running else { return };
        let start_external = self.start_external.clone();
        live.watch = Some(AbortOnDropHandle::new(crate::task::spawn(async move {
            let started = match conversation.external_turn().await {
                Ok(ExternalTurn { prompt, by }) => start_external(prompt, by),
                Err(error) => Err(error),
            };
            if let Err(error) = started {
                tracing::debug!(%error, "nuncio does not follow turns of other clients");
            }
        })));
    }

    /// Ends the agent's process if no turn runs for `ttl`.
    fn end_when_idle(&self, ttl: std::time::Duration) {
        let (this, turns) = (self.this.clone(), self.turns.load(Ordering::Relaxed));
        crate::task::spawn(async move {
            tokio::time::sleep(ttl).await;
            let Some(this) = this.upgrade() else { return };
            let mut live = this.live.lock().await;
            // An agent that cannot resume its session would lose the conversation.
            let resumable = live.conversation.as_ref().is_some_and(|conversation| conversation.can_resume());
            if resumable && this.turns.load(Ordering::Relaxed) == turns {
                this.end_live(&mut live).await;
            }
        });
    }

    async fn end(&self) {
        let mut live = self.live.lock().await;
        self.end_live(&mut live).await;
    }
}

/// Runs the work of a turn, and emits a notice if the agent asks for a login during it.
async fn with_login_notice<R>(name: &str, turn: &Turn, process: &AgentProcess, work: impl Future<Output = R>) -> R {
    let stderr_before = process.stderr();
    let notice = async {
        let line = process.login_request(&stderr_before).await;
        turn.emit(Body::notice(Severity::Warning, format!("The agent {name} asks for a login"), line)).await;
        std::future::pending().await
    };
    tokio::select! {
        biased;
        result = work => result,
        result = notice => result,
    }
}

/// Stops waiting for turns of other clients. The task may hold a connection to the agent.
async fn stop_watch(live: &mut Live) {
    if let Some(watch) = live.watch.take() {
        watch.abort();
        // The result of an aborted task is an error.
        let _ = watch.await;
    }
}

impl Agent for HostedSession {
    fn run<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(self.work(turn))
    }

    fn context<'a>(&'a self, log: &'a SessionLog) -> BoxFuture<'a, Result<ContextReport>> {
        Box::pin(async move {
            let tokens = log.state(|state| state.context_tokens);
            let context_window = self.current().map_or(0, |conversation| conversation.report().context_window);
            let free = context_window.saturating_sub(tokens);
            let sources = ContextSources { messages: tokens, free, ..ContextSources::default() };
            Ok(ContextReport { model: self.name.clone(), context_window, tokens, measured: tokens > 0, compact_at: None, sources })
        })
    }

    fn set_mcp_servers(&self, servers: BTreeMap<String, McpServer>) {
        *self.given.lock() = servers;
    }

    fn execute(&self, command: CommandRequest) -> BoxFuture<'_, Result<CommandResult>> {
        Box::pin(self.commands.run(command))
    }

    fn commands<'a>(&'a self, _cwd: &'a Path, _check: bool) -> BoxFuture<'a, Arc<[SlashCommand]>> {
        let commands = self.current().map(|conversation| conversation.report().commands).unwrap_or_default();
        Box::pin(async move { commands.into() })
    }

    fn options(&self) -> Vec<AgentOption> {
        self.current().map(|conversation| conversation.report().options).unwrap_or_default()
    }

    /// Returns true if the session must stay open because the running agent cannot resume it in a
    /// new process.
    fn has_background_work(&self) -> bool {
        self.current().is_some_and(|conversation| !conversation.process().has_ended() && !conversation.can_resume())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.end())
    }
}
