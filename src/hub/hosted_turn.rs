//! A turn in which a hosted agent works: starts the agent if needed, sets its options, and runs the
//! prompt.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OnceCell};
use tokio::time::Instant;

use super::abilities;
use super::conversation::{COMPACT, HostedConversation, LiveSetup, is_compaction};
use super::driver::TurnIo;
use super::events::TurnEvents;
use super::hosted_session::{HostedSession, Live};
use super::open_requests::OpenRequests;
use super::options::{self, WantedOptions};
use super::own_rules::OwnRules;
use super::permission::PermissionDecider;
use super::process::AgentProcess;
use super::process_record::ProcessRecord;
use super::registry;
use super::reported_version;
use super::session_settings;
use super::start::{Start, StartedAgent};
use super::turn_environment::TurnEnvironment;
use super::turn_review::TurnReview;
use crate::config::{self, AgentKind, HostedAgent, LoadedSettings, SandboxMode};
use crate::content::{Part, Resource, StopReason};
use crate::context::commands;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, SessionChange, Severity};
use crate::options::Mode;
use crate::permission::rules::Rules;
use crate::process::StartTime;
use crate::runtime::{TurnBudget, Verification};
use crate::session::Turn;
use crate::task;
use crate::workspace::Workspace;

/// The delay before a hosted agent is started again, after a first failure. It doubles with each
/// failure up to [`AGENT_RESTART_MAX`].
const AGENT_RESTART: Duration = Duration::from_secs(1);
/// Maximum delay before a hosted agent is started again.
const AGENT_RESTART_MAX: Duration = Duration::from_secs(30);

/// Wait for a command that an agent has not announced, and the interval of looking for it.
const COMMANDS_ANNOUNCED: Duration = Duration::from_millis(500);
const COMMANDS_LOOKED_AT: Duration = Duration::from_millis(20);

/// A turn, with the settings that apply to it.
pub(super) struct HostedTurn<'a> {
    pub session: &'a HostedSession,
    pub turn: &'a Turn,
    pub agent: HostedAgent,
    pub loaded: LoadedSettings,
    pub cwd: PathBuf,
    /// The settings of the session for the agent.
    pub wanted: SessionChange,
    pub budget: TurnBudget<'a>,
    /// Receives a notification for each report of usage.
    pub usage_reports: Notify,
}

impl HostedTurn<'_> {
    /// Runs the turn within its budget, as far as the agent reports what it uses.
    pub(super) async fn run(&self) -> Result<StopReason> {
        let (turn, budget) = (self.turn, &self.budget);
        let reported = abilities::reported(&self.agent);
        let result = budget.limit_reported(self.work(), &reported, &self.usage_reports).await;
        let has_limit = |resource: &Resource| *resource != Resource::Requests && budget.has_limit(*resource);
        let uses_nothing = || turn.log.state(|state| state.turns.last().is_some_and(|last| last.usage.is_none()));
        if matches!(result, Ok(StopReason::EndTurn)) && reported.iter().any(has_limit) && uses_nothing() {
            let title = format!("The agent {} reported no usage", self.session.name);
            self.warn(title, "the limits of tokens and cost had no effect in this turn".into()).await;
        }
        result
    }

    /// Returns the cause with which the agent makes calls without asking.
    fn own_rules(&self) -> Option<OwnRules> {
        let HostedTurn { session, agent, cwd, .. } = self;
        let (mode, _) = self.turn.permissions(self.loaded.settings.permissions.default);
        registry::own_rules(&session.services, &session.name, agent, cwd, mode)
    }

    /// Starts the agent and runs the prompt. Fails if a rule denies calls about which the agent
    /// does not ask.
    async fn work(&self) -> Result<StopReason> {
        let (session, turn) = (self.session, self.turn);
        if let Some(own) = self.own_rules() {
            let (_, remembered) = turn.permissions(self.loaded.settings.permissions.default);
            own.check(&session.name, &Rules::new(&self.loaded, remembered))?;
        }
        let lock = session.live.clone().lock_owned();
        let mut live = tokio::select! {
            biased;
            () = turn.cancel.cancelled() => return Ok(StopReason::Cancelled),
            live = lock => live,
        };
        live.stop_watch().await;
        let start = async {
            let conversation = self.ready(&mut live).await?;
            let wanted =
                WantedOptions { agent: &self.agent, session: &self.wanted, default: self.loaded.settings.permissions.default };
            options::apply(&session.name, &*conversation, turn, wanted).await.map(|()| conversation)
        };
        let started = tokio::select! {
            biased;
            () = turn.cancel.cancelled() => None,
            started = start => Some(started),
        };
        let Some(started) = started else {
            // Stop the process: a request to it may be open.
            session.end_live(&mut live).await;
            return Ok(StopReason::Cancelled);
        };
        let conversation = started?;
        let began = StartTime::now();
        let result = self.work_and_review(&*conversation).await;
        self.report_other_model(&mut live, &*conversation).await;
        // Claude Code reports it in its first turn.
        if let Some(version) = conversation.report().version {
            reported_version::write(registry::data(&session.services, &session.name), self.agent.command_line(), version).await;
        }
        let is_unusable = |error: &Error| matches!(error.kind, Kind::AgentUnavailable | Kind::AgentSessionLost);
        let unusable = result.as_ref().is_err_and(is_unusable);
        if unusable || conversation.process().has_ended() {
            session.end_live(&mut live).await;
        }
        let leaves_processes = matches!(result, Ok(StopReason::Cancelled)) && conversation.is_disposable();
        let this = session.this.clone();
        // The next turn waits until `live` is released.
        task::spawn(async move {
            if leaves_processes {
                conversation.process().end_leftovers(began).await;
            }
            if let Some(this) = this.upgrade() {
                this.watch(&mut live);
            }
        });
        result
    }

    /// Runs the prompt of the turn and the checks, and then offers the changes for review.
    async fn work_and_review(&self, conversation: &dyn HostedConversation) -> Result<StopReason> {
        let HostedTurn { session, turn, loaded, .. } = self;
        let (services, parent) = (&session.services, session.setup.parent.as_ref());
        let environment = TurnEnvironment {
            services,
            turn,
            parent,
            agent: (conversation.port(), conversation.session().to_owned()),
            has_hooks: services.has_call_hooks(loaded),
            checks_requests: !conversation.asks_before_calls(),
            created: OnceCell::new(),
            denied: Mutex::default(),
            announced: Mutex::default(),
        };
        let review = TurnReview::begin(&environment, loaded).await;
        let result = self.checked(conversation, &environment).await;
        if let Some(review) = review {
            review.end(&environment, self.budget.stops_work()).await?;
        }
        result
    }

    /// Runs the prompt of the turn, and prompts the agent again while the checks of the project
    /// fail.
    async fn checked(&self, conversation: &dyn HostedConversation, environment: &TurnEnvironment<'_>) -> Result<StopReason> {
        let turn = self.turn;
        if !self.agent.verify {
            return self.prompt(conversation, environment, None).await;
        }
        let mut checks = Verification::new(turn, environment.get().await?);
        checks.watch_files().await;
        let mut stop = self.prompt(conversation, environment, None).await?;
        while stop == StopReason::EndTurn
            && let Some(failure) = checks.failure().await?
        {
            stop = self.prompt(conversation, environment, Some(&[Part::text(failure)])).await?;
        }
        Ok(if turn.cancel.is_cancelled() { StopReason::Cancelled } else { stop })
    }

    /// Runs a prompt in the agent, by default that of the turn, and records its events.
    async fn prompt(
        &self,
        conversation: &dyn HostedConversation,
        environment: &TurnEnvironment<'_>,
        again: Option<&[Part]>,
    ) -> Result<StopReason> {
        let HostedTurn { session, turn, loaded, .. } = self;
        let workspace = self.workspace();
        let mut events = TurnEvents::new(turn, &self.usage_reports, environment);
        events.counts_requests = [Resource::Requests, Resource::Tokens].iter().any(|limited| self.budget.has_limit(*limited));
        events.compacts = again.is_none() && is_compaction(&turn.prompt);
        // The agents of other kinds have the command or a method.
        if events.compacts && self.agent.kind == AgentKind::Acp && !has_command(conversation, COMPACT).await {
            let message = format!("/{COMPACT} is not supported by the agent {}", session.name);
            return Err(Error::new(Kind::Unsupported, message).hint("create a new session for new work"));
        }
        let permissions = PermissionDecider::new(turn, events.bytes(), loaded, &workspace, environment);
        let mut io = TurnIo { name: &session.name, events, requests: OpenRequests::new(&permissions, turn.cancel.child_token()) };
        // Notes tell the agent what the user rejected of its last changes, for example. A slash
        // command must come first in its prompt.
        let notes = turn.log.state(|state| state.history.notes_before_turn());
        let notes = notes.into_iter().filter(|_| commands::parse(&turn.prompt).is_none());
        // Some agents join the parts of a prompt.
        let notes = notes.map(|note| Part::text(format!("{note}\n\n")));
        let noted: Vec<Part> = notes.chain(turn.prompt.iter().cloned()).collect();
        let work = match again {
            None if turn.external => conversation.follow(&mut io),
            parts => conversation.prompt(parts.unwrap_or(&noted), &mut io),
        };
        let work = session.commands.serve(environment, work);
        let result = match with_login_notice(&session.name, turn, conversation.process(), work).await {
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
        if matches!(result, Ok(StopReason::EndTurn)) {
            io.events.report_compaction().await;
        }
        result
    }

    /// Returns the directories that permission decisions about the turn's calls use.
    fn workspace(&self) -> Workspace {
        let HostedTurn { session, turn, loaded, cwd, .. } = self;
        let places = &session.services.places;
        let roots = turn.log.state(|state| state.additional_directories().to_vec());
        let roots = roots.into_iter().chain(loaded.settings.allowed_paths.iter().cloned());
        Workspace::new(cwd, roots, &places.artifacts(turn.log.id.as_str()))
            .home(places.home.clone())
            .protect(places.own_files())
            .private(places.private())
            .excludes(config::excludes(&session.services.environment))
    }

    /// Returns the running agent, or starts it. The session's id in the agent is recorded before
    /// the first prompt.
    async fn ready(&self, live: &mut Live) -> Result<Arc<dyn HostedConversation>> {
        let HostedTurn { session, turn, agent, loaded, cwd, .. } = self;
        let wanted = LiveSetup {
            cwd: cwd.clone(),
            directories: turn.log.state(|state| state.additional_directories().to_vec()),
            given: session.given.lock().clone(),
            settings: session_settings::at_start(self.wanted.clone(), agent),
            sandbox: self.sandbox(),
            has_hooks: session.services.has_call_hooks(loaded),
        };
        if let Some(conversation) = self.running(live, &wanted).await {
            self.record_session(&*conversation).await?;
            return Ok(conversation);
        }
        session.end_live(live).await;
        if let Some(not_before) = live.not_before {
            tokio::time::sleep_until(not_before).await;
        }
        let HostedSession { services, opencode, name, setup, process, .. } = session;
        *process.lock() = None;
        let started = Start { services, opencode, name, session: setup, agent, loaded, turn, process }.open(&wanted).await;
        let StartedAgent { conversation, token } = started.inspect_err(|_| {
            let delay = AGENT_RESTART * 2_u32.saturating_pow(live.failures.min(16));
            live.failures += 1;
            live.not_before = Some(Instant::now() + delay.min(AGENT_RESTART_MAX));
        })?;
        (live.failures, live.not_before) = (0, None);
        (live.conversation, live.token) = (Some(conversation.clone()), token);
        live.setup = wanted;
        session.set_current(Some(conversation.clone()));
        self.record_process(live, &*conversation).await;
        let is_new = turn.log.state(|state| state.settings.agent_session.is_none());
        self.record_session(&*conversation).await?;
        let unused = conversation.unused_servers();
        if !unused.is_empty() {
            self.warn(format!("The agent {name} does not use some MCP servers"), unused.join(", ")).await;
        }
        if is_new && !conversation.asks_before_calls() && abilities::has_before_hooks(loaded) {
            let title = format!("Hooks before tool calls run only where the agent {name} asks");
            self.warn(title, "the agent makes other calls without a permission request".into()).await;
        }
        if let Some(OwnRules { source, .. }) = self.own_rules().filter(|_| is_new) {
            self.warn(format!("The agent {name} acts by its own rules, without asking nuncio"), source).await;
        }
        if let Some(settings) = abilities::not_followed(agent, loaded).filter(|_| is_new) {
            self.warn(format!("The agent {name} does not follow some of nuncio's settings"), settings).await;
        }
        Ok(conversation)
    }

    /// Records that the session uses the process of a conversation that was just opened.
    async fn record_process(&self, live: &mut Live, conversation: &dyn HostedConversation) {
        let HostedTurn { session, turn, .. } = self;
        let process = conversation.process().handle();
        // The slot holds a process that was started for this session.
        let shared = session.process.lock().replace(process.clone()).is_none();
        process.pid().await;
        let view = session.view(&process);
        let record = live.record.insert(ProcessRecord::new(turn.log.clone(), &process, &view));
        record.begin(turn, view, shared).await;
    }

    /// Returns the sandbox around the agent: of the flag, else of the agent's settings. In mode
    /// `plan`, a sandboxed agent writes nothing.
    fn sandbox(&self) -> Option<SandboxMode> {
        let settings = &self.loaded.settings;
        let flag = self.session.services.overrides.sandbox.as_ref().and(settings.sandbox.mode);
        let (mode, _) = self.turn.permissions(settings.permissions.default);
        let sandbox = flag.or(self.agent.sandbox).filter(|sandbox| *sandbox != SandboxMode::Off);
        sandbox.map(|sandbox| if mode == Mode::Plan { SandboxMode::ReadOnly } else { sandbox })
    }

    /// Returns the running conversation. Returns `None` if the agent must be started or restarted:
    /// its process has ended, its directory changed, or its MCP servers, additional directories or
    /// settings changed and it can resume its session. An agent that cannot resume its session
    /// keeps running with a warning.
    async fn running(&self, live: &mut Live, wanted: &LiveSetup) -> Option<Arc<dyn HostedConversation>> {
        let conversation = live.conversation.clone().filter(|conversation| !conversation.process().has_ended())?;
        if live.setup == *wanted {
            return Some(conversation);
        }
        if live.setup.cwd != wanted.cwd || conversation.can_resume() {
            return None;
        }
        // The next turn does not repeat the notice.
        live.setup = wanted.clone();
        let title = format!("The agent {} does not use the new MCP servers, directories and settings", self.session.name);
        self.warn(title, "it runs and cannot resume its session in a new process".into()).await;
        Some(conversation)
    }

    /// Records the id of the session in the agent.
    async fn record_session(&self, conversation: &dyn HostedConversation) -> Result<()> {
        let (turn, session) = (self.turn, conversation.session());
        if turn.log.state(|state| state.settings.agent_session.as_deref() == Some(session)) {
            return Ok(());
        }
        let change = SessionChange { agent_session: Some(session.into()), ..SessionChange::default() };
        turn.commit_durably(Body::SessionUpdated { change }).await.map(drop)
    }

    /// Reports once that the agent uses another model than the session's.
    async fn report_other_model(&self, live: &mut Live, conversation: &dyn HostedConversation) {
        let other = options::other_model(&self.wanted, &conversation.report());
        if other != live.other_model {
            live.other_model.clone_from(&other);
            if let (Some(other), Some(wanted)) = (other, &self.wanted.model) {
                self.warn(format!("The agent {} uses another model", self.session.name), format!("{other}, not {wanted}")).await;
            }
        }
    }

    async fn warn(&self, title: String, description: String) {
        self.turn.emit(Body::notice(Severity::Warning, title, description)).await;
    }
}

/// Returns whether an agent has a slash command. Agents announce their commands soon after their
/// start.
async fn has_command(conversation: &dyn HostedConversation, name: &str) -> bool {
    let has = || conversation.report().commands.iter().any(|command| command.name == name);
    let announced = async {
        while !has() {
            tokio::time::sleep(COMMANDS_LOOKED_AT).await;
        }
    };
    tokio::time::timeout(COMMANDS_ANNOUNCED, announced).await.is_ok()
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
