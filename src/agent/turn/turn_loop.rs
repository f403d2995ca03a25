//! The turn loop of the native agent: request an answer from the model, run its tool calls, repeat.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use super::answer::{AnswerPart, ModelAnswer};
use super::budget::TurnBudget;
use super::context_report::{overhead, report};
use super::context_window::ContextWindow;
use super::fallback::Fallback;
use super::repetition::{EndedCall, Repetition, RepetitionGuard, Round};
use super::review;
use super::step::{REPEATED, Steps, report_empty};
use super::verify::{self, Verification};
use crate::agent::calls::background_jobs::background_jobs;
use crate::agent::calls::execute::ToolCall;
use crate::agent::calls::hooks;
use crate::agent::environment::SessionEnvironment;
use crate::agent::input::bundle;
use crate::agent::input::local_commands;
use crate::agent::input::messages;
use crate::agent::input::prompt::SystemPrompt;
use crate::agent::mcp::prompts;
use crate::agent::mcp::servers::SessionMcp;
use crate::agent::services::{Services, model_error};
use crate::agent::setup;
use crate::config::McpServer;
use crate::content::{Role, StepOutcome, StopReason};
use crate::context::commands::{self, SlashCommand};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, SessionParent, Severity};
use crate::id::SessionId;
use crate::limits;
use crate::model::{Model, Request};
use crate::options::OptionValue;
use crate::session::context_report::ContextReport;
use crate::session::message::IncomingMessage;
use crate::session::{Agent, AgentSetup, BackgroundJob, SessionLog, Turn};
use crate::task;

/// The native agent of one session.
pub(crate) struct NativeAgent {
    services: Arc<Services>,
    session: SessionId,
    /// Set for a subagent.
    parent: Option<SessionParent>,
    /// Built by the first turn and rebuilt when the session's directories change.
    environment: Mutex<Option<Arc<SessionEnvironment>>>,
    /// The last used model, kept because a scripted model counts its steps.
    model: Mutex<Option<(String, Arc<dyn Model>)>>,
    /// The model of the last turn cannot call tools, which was reported in a notice.
    without_tools: Mutex<bool>,
    mcp: SessionMcp,
    prompt: SystemPrompt,
}

impl Agent for NativeAgent {
    fn run<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(async move {
            self.services.check_depth()?;
            let environment = self.current_environment(turn).await?;
            let budget = TurnBudget::new(turn, &environment, self.parent.is_some());
            budget.limit_time(self.work(turn, &environment, &budget)).await
        })
    }

    fn context<'a>(&'a self, log: &'a SessionLog) -> BoxFuture<'a, Result<ContextReport>> {
        Box::pin(self.report(log))
    }

    fn setup<'a>(&'a self, log: &'a SessionLog) -> BoxFuture<'a, Result<AgentSetup>> {
        Box::pin(async { setup::read(&self.services, &self.prompt, &self.next_environment(log).await?, log) })
    }

    fn set_mcp_servers(&self, servers: BTreeMap<String, McpServer>) {
        self.mcp.give(servers);
    }

    fn prepare<'a>(&'a self, turn: &'a Turn, message: &'a mut IncomingMessage, opens: bool) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let has_media = messages::has_media(message);
            tokio::select! {
                biased;
                prepared = self.complete(turn, message, opens) => prepared,
                // No model may get media that it may not read. Other messages need no facts in a
                // turn that sends no request.
                () = turn.cancel.cancelled(), if has_media => Err(Error::new(Kind::Cancelled, "the turn was cancelled")),
                () = turn.cancel.cancelled() => Ok(()),
            }
        })
    }

    fn commands<'a>(&'a self, cwd: &'a Path, check: bool) -> BoxFuture<'a, Arc<[SlashCommand]>> {
        Box::pin(async move {
            let commands = messages::list(&self.services, cwd, check).await.unwrap_or_default();
            let prompts = prompts::commands(&self.mcp);
            if prompts.is_empty() { commands } else { commands.iter().cloned().chain(prompts).collect() }
        })
    }

    fn has_background_work(&self) -> bool {
        !self.background_jobs().is_empty()
    }

    fn background_jobs(&self) -> Vec<BackgroundJob> {
        let environment = self.environment.lock();
        environment.as_ref().map(|environment| background_jobs(&environment.shell.jobs)).unwrap_or_default()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.mcp.close();
            let environment = self.environment.lock().take();
            if let Some(environment) = environment {
                environment.shell.jobs.close().await;
                // Dropping the environment removes its temporary files, which may block.
                let _ = tokio::task::spawn_blocking(move || drop(environment)).await;
            }
        })
    }
}

impl NativeAgent {
    /// Creates the agent of `session`, which loads nothing before its first turn.
    pub(crate) fn new(services: Arc<Services>, session: SessionId, parent: Option<SessionParent>) -> NativeAgent {
        let (environment, model, without_tools, prompt, mcp) = Default::default();
        NativeAgent { services, session, parent, environment, model, without_tools, prompt, mcp }
    }

    /// Adds texts of documents, the facts of the first message, the text of a slash command, and
    /// resources of MCP servers. A message that a model wrote, such as the prompt of a subagent,
    /// uses no server. Fails if the user's message begins with an unknown command.
    async fn complete(&self, turn: &Turn, message: &mut IncomingMessage, opens: bool) -> Result<()> {
        if messages::has_media(message) {
            let environment = self.current_environment(turn).await?;
            let model = self.current_model(turn, &environment).await?;
            messages::add_texts(&*model, message).await?;
        }
        messages::complete(&self.services, turn, message, opens).await?;
        if self.parent.is_some() || message.by_model || message.role != Role::User {
            return Ok(());
        }
        if prompts::may_use_servers(message) {
            let environment = self.current_environment(turn).await?;
            if self.mcp.ready().is_empty() {
                for notice in self.mcp.update(&environment, &turn.cancel).await {
                    turn.commit(notice).await?;
                }
            }
            prompts::complete(&self.mcp, turn, &environment, message).await?;
        }
        if commands::parse(&message.parts).is_none() || message.extra.expansion.is_some() {
            return Ok(());
        }
        let cwd = turn.log.state(|state| state.cwd.clone());
        messages::check_command(&self.commands(&cwd, true).await, message)
    }

    async fn work(&self, turn: &Turn, environment: &Arc<SessionEnvironment>, budget: &TurnBudget<'_>) -> Result<StopReason> {
        for notice in self.mcp.update(environment, &turn.cancel).await {
            turn.commit(notice).await?;
        }
        verify::check_clean(turn, environment).await?;
        environment.changes.begin(review::is_on(environment), verify::is_active(environment));
        let ended = self.answer(turn, environment, budget).await;
        review::hold(turn, environment, budget.stops_work()).await?;
        ended
    }

    /// Sends requests to the model and runs the tool calls of its answers, until the model ends the
    /// turn.
    async fn answer(&self, turn: &Turn, environment: &Arc<SessionEnvironment>, budget: &TurnBudget<'_>) -> Result<StopReason> {
        let model = tokio::select! {
            biased;
            () = turn.cancel.cancelled() => return Ok(StopReason::Cancelled),
            model = self.current_model(turn, environment) => model?,
        };
        environment.set_model(model.clone());
        let system = self.prompt.text(turn, environment, model.id()).await?;
        let overhead = overhead(model.as_ref(), &system, &environment.tools.table().specs());
        let fallback = Fallback::new(&self.services, &environment.loaded.settings, model.id());
        let (mut steps, mut worked) = (Steps::new(turn, model, fallback, budget.given_cost()).await?, false);
        let (mut guard, mut verification) = (RepetitionGuard::default(), Verification::default());
        let mut window = ContextWindow::new(turn, environment, overhead);
        let request = || self.request(&turn.log, environment, &system);
        if let Some(command) = turn.log.state(|state| state.history.local_command().cloned()) {
            return local_commands::run(command, turn, &window, &mut steps, request()).await;
        }
        bundle::add(turn, environment).await?;
        loop {
            if messages::take_steered(self, turn).await? {
                guard = RepetitionGuard::default();
            }
            if !budget.allows_request(&turn.cancel).await? {
                return Ok(StopReason::MaxTurnRequests);
            }
            let answer = window.ask(&mut steps, request).await?;
            let (stop, outcome, empty, repeated) = (answer.stop, answer.outcome(), answer.is_empty(), answer.repeated);
            let calls = outcome == StepOutcome::ToolCalls;
            let announced = self.record(turn, environment, answer, calls).await;
            steps.end(outcome, repeated.map(|_| REPEATED.into())).await;
            let started = Instant::now();
            let round = self.run_tools(turn, environment, &mut verification, announced).await?;
            // A call that waits, such as for another machine, may be repeated.
            let round = round.filter(|_| started.elapsed() < limits::REPEATED_ROUND_TIME);
            if turn.cancel.is_cancelled() {
                return Ok(StopReason::Cancelled);
            }
            let repetition = match repeated {
                Some(text) => Some(guard.text(text)),
                None if calls => guard.calls(round),
                None => None,
            };
            match repetition {
                Some(Repetition::Note(notice)) => {
                    turn.commit(notice).await?;
                    worked |= calls;
                    continue;
                }
                Some(Repetition::Stop(notice)) => {
                    turn.emit(notice).await;
                    return Ok(if calls { StopReason::MaxTurnRequests } else { stop });
                }
                None => {}
            }
            if empty {
                report_empty(turn, steps.model_id(), worked).await?;
            }
            worked |= calls;
            // A steering message that arrives before the turn ends continues the turn, and so do
            // failed checks.
            let ends = !calls && (stop != StopReason::EndTurn || !messages::take_steered(self, turn).await?);
            let checks_failed = ends && stop == StopReason::EndTurn && verification.continues_turn(turn, environment).await?;
            if ends && !checks_failed {
                return Ok(stop);
            }
            if !calls {
                guard = RepetitionGuard::default();
            }
        }
    }

    /// Returns the environment of the session's next turn, outside of a turn.
    async fn next_environment(&self, log: &SessionLog) -> Result<Arc<SessionEnvironment>> {
        let (cwd, directories) = log.state(|state| (state.cwd.clone(), state.additional_directories.clone()));
        let kept = self.environment.lock().clone();
        let environment = match kept.filter(|environment| environment.is_for(&cwd, &directories)) {
            Some(environment) => environment,
            None => self.new_environment(cwd, directories, None).await?,
        };
        environment.tools.set_subset(log.state(|state| state.tools.clone()));
        Ok(environment)
    }

    async fn report(&self, log: &SessionLog) -> Result<ContextReport> {
        let environment = self.next_environment(log).await?;
        let settings = &environment.loaded.settings;
        let (_, model, _) = self.open_model(log, &environment).await?;
        let system = self.prompt.preview(log, &environment, model.id())?;
        Ok(report(log, &settings.context, &*model, &self.request(log, &environment, &system)))
    }

    /// Records the messages of an answer and announces its calls, in order. `run` is false for a
    /// truncated answer, whose calls are dropped.
    async fn record(&self, turn: &Turn, environment: &Arc<SessionEnvironment>, answer: ModelAnswer, run: bool) -> Vec<ToolCall> {
        let mut announced = Vec::new();
        environment.release_instructions();
        for part in answer.parts {
            match part {
                AnswerPart::Message(body) => turn.emit(*body).await,
                AnswerPart::Call(tool_use) if run => announced.push(ToolCall::announce(turn, environment, tool_use).await),
                AnswerPart::Call(_) => {}
            }
        }
        announced
    }

    /// Runs announced calls concurrently, after the checks that precede the first edit. A failed
    /// call does not affect the others. Returns the round for the detection of repetitions.
    async fn run_tools(
        &self,
        turn: &Turn,
        environment: &Arc<SessionEnvironment>,
        verification: &mut Verification,
        announced: Vec<ToolCall>,
    ) -> Result<Option<Round>> {
        verification.precedes_edits(turn, environment, &announced).await?;
        let at_once = environment.loaded.settings.tools.max_concurrency.max(1);
        let calls = announced.into_iter().enumerate().map(async |(index, call)| Ok((index, call.finish(turn).await?)));
        let mut ended: Vec<(usize, EndedCall)> = stream::iter(calls).buffer_unordered(at_once).try_collect().await?;
        ended.sort_by_key(|(index, _)| *index);
        for message in ended.iter_mut().flat_map(|(_, call)| std::mem::take(&mut call.messages)) {
            turn.commit(hooks::message_notice(message)).await?;
        }
        Ok(Round::of(ended.into_iter().map(|(_, call)| call)))
    }

    /// Returns the environment for the session's current directories, and builds it if necessary.
    /// Reports ignored project settings when the environment is built.
    async fn current_environment(&self, turn: &Turn) -> Result<Arc<SessionEnvironment>> {
        let (cwd, directories) = turn.log.state(|state| (state.cwd.clone(), state.additional_directories.clone()));
        let kept = self.environment.lock().clone();
        let (environment, built) = match kept {
            Some(environment) if environment.is_for(&cwd, &directories) => (environment, false),
            before => {
                let environment = self.new_environment(cwd, directories, before).await?;
                *self.environment.lock() = Some(environment.clone());
                (environment, true)
            }
        };
        environment.tools.set_subset(turn.log.state(|state| state.tools.clone()));
        if let Some((title, description)) = environment.loaded.ignored_notice(environment.cwd()).filter(|_| built) {
            turn.emit(Body::notice(Severity::Warning, title, description)).await;
        }
        for path in environment.dropped.iter().filter(|_| built) {
            let description = format!("{} is not used: a symlink of the project leads to it", path.display());
            turn.emit(Body::notice(Severity::Warning, "A directory of sandbox.writable is ignored", description)).await;
        }
        Ok(environment)
    }

    /// Builds the environment for these directories, which reads files.
    async fn new_environment(
        &self,
        cwd: PathBuf,
        directories: Vec<PathBuf>,
        before: Option<Arc<SessionEnvironment>>,
    ) -> Result<Arc<SessionEnvironment>> {
        let (services, session, parent) = (self.services.clone(), self.session.clone(), self.parent.clone());
        let build = move || {
            SessionEnvironment::new(services, Some(&session), parent.as_ref(), cwd, directories, before.as_deref()).map(Arc::new)
        };
        task::blocking("building the environment", build).await?
    }

    /// Returns the model of the turn. Reports once if the model's server offers no tools.
    async fn current_model(&self, turn: &Turn, environment: &SessionEnvironment) -> Result<Arc<dyn Model>> {
        let (id, model, known) = self.open_model(&turn.log, environment).await?;
        if let Some(base_url) = self.services.models.found_at(&id).filter(|_| !known) {
            let description =
                format!("no model is set and no API key was found; the local server at {base_url} provides this model");
            turn.emit(Body::notice(Severity::Info, format!("Using {id}"), description)).await;
        }
        *self.model.lock() = Some((id, model.clone()));
        model.prepare().await;
        let reported = std::mem::replace(&mut *self.without_tools.lock(), !model.supports_tools());
        if !model.supports_tools() && !reported {
            let description = "the requests contain no tools, because its chat template (or the setting abilities) has none: \
                               choose another model, or start the server with another chat template";
            turn.emit(Body::notice(Severity::Warning, format!("{} cannot call tools", model.id()), description)).await;
        }
        Ok(model)
    }

    /// Returns the session's model with its id in the settings, and whether it is the last used
    /// one.
    async fn open_model(&self, log: &SessionLog, environment: &SessionEnvironment) -> Result<(String, Arc<dyn Model>, bool)> {
        let chosen = log.state(|state| state.model.clone());
        let id = match chosen {
            Some(id) => id,
            None => self.services.models.default_id(&environment.loaded.settings).await.map_err(model_error)?,
        };
        let last = self.model.lock().clone();
        if let Some(model) = last.and_then(|(last, model)| (last == id).then_some(model)) {
            return Ok((id, model, true));
        }
        let model = self.services.models.open(&id, &environment.loaded.settings).await.map_err(model_error)?;
        Ok((id, model, false))
    }

    fn request(&self, log: &SessionLog, environment: &SessionEnvironment, system: &str) -> Request {
        let (messages, thinking) = log.state(|state| (state.history.messages(), state.thinking.clone()));
        let thinking = thinking.or(self.services.overrides.thinking.map(OptionValue::Known));
        Request {
            system: system.into(),
            messages,
            tools: environment.tools.table().specs(),
            thinking: thinking.and_then(|level| level.known()).unwrap_or_default(),
            cache_key: log.id.to_string(),
        }
    }
}
