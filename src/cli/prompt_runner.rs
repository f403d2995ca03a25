//! Runs prompts in a session and shows its events, for `run` and `demo`.

mod elsewhere;
mod questions;
pub(super) mod runner_output;
mod waiting;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::Either;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::elsewhere::EndedTurn;
use self::questions::TerminalQuestions;
use self::runner_output::RunnerOutput;
use super::errors::{CHECKS_FAILED, DENIED, exit_code, report, stop_code};
use super::terminal::activity::{CurrentWork, TurnActivity};
use super::terminal::ask::Approver;
use super::terminal::input_queue::{InputLine, InputQueue};
use super::terminal::output::{print_event, print_question, print_rendered, print_stderr};
use super::terminal::remarks::hosted_agent;
use super::terminal::status_line::{StatusLine, WORK_SHOWN};
use crate::api::{GetSession, Prompt, PromptParams, SessionParams, turn_end};
use crate::client::{SessionClient, SessionEvents};
use crate::content::{BudgetLimits, Part, StopReason};
use crate::error::Result;
use crate::event::{Actor, Body, Event, PermissionDecision};
use crate::id::{Seq, SessionId};
use crate::runtime::StartingServers;
use crate::transcript::{Transcript, TranscriptBlock, TurnEndReason};

/// Runs prompts in a session and shows its events.
pub(crate) struct PromptRunner {
    client: SessionClient,
    session: SessionId,
    events: SessionEvents,
    output: RunnerOutput,
    transcript: Transcript,
    questions: TerminalQuestions,
    interrupted: CancellationToken,
    denied: bool,
    /// Git was denied what no prompt asks for.
    unasked: bool,
    /// The project's checks failed when they ran last.
    checks_failed: bool,
    /// A permission request got no answer in time, which ended the turn.
    unanswered: bool,
    /// Events that arrived since a question was asked at the terminal; shown when it is resolved.
    deferred: VecDeque<Arc<Event>>,
    status: StatusLine,
    activity: TurnActivity,
    /// The line with the model, the mode and the session was not printed yet.
    header_due: bool,
    /// The MCP servers that the turn waits for.
    starting: watch::Receiver<Option<StartingServers>>,
    /// Ends that wait when the user presses Enter.
    skipping: Option<AbortOnDropHandle<()>>,
    /// Exit code of the turns that no prompt of this command started.
    unprompted: Option<u8>,
    /// Limits of the turn of each prompt.
    budget: BudgetLimits,
    /// Content that is added to the next prompt.
    attached: Vec<Part>,
    /// The newest turn that has ended, and the result of its prompt.
    ended: watch::Sender<Option<EndedTurn>>,
}

impl PromptRunner {
    /// Sets limits of the turn of each prompt.
    pub(crate) fn with_budget(self, budget: BudgetLimits) -> PromptRunner {
        PromptRunner { budget, ..self }
    }

    /// Sets content that is added to the next prompt, after its text.
    pub(crate) fn with_attached(self, attached: Vec<Part>) -> PromptRunner {
        PromptRunner { attached, ..self }
    }

    /// Creates a runner that shows the session's events after sequence number `after`. A signal
    /// cancels `interrupted`, which cancels the turn.
    pub(crate) async fn new(
        client: SessionClient,
        (session, after): (SessionId, Seq),
        mut output: RunnerOutput,
        approver: Approver,
        interrupted: CancellationToken,
    ) -> Result<PromptRunner> {
        if output.is_kept {
            output.renderer.hint = format!(": nuncio sessions show {session}");
        }
        let events = client.follow(&session, after, approver.responder()).await?;
        Ok(PromptRunner {
            questions: TerminalQuestions::new(&client, &session, approver),
            starting: client.app().services.mcp_wait.watch(),
            skipping: None,
            status: StatusLine::new(output.status_line),
            activity: TurnActivity::default(),
            header_due: output.watched,
            client,
            session,
            events,
            output,
            transcript: Transcript::default(),
            interrupted,
            denied: false,
            unasked: false,
            checks_failed: false,
            unanswered: false,
            deferred: VecDeque::new(),
            unprompted: None,
            budget: BudgetLimits::default(),
            attached: Vec::new(),
            ended: watch::Sender::default(),
        })
    }

    /// Returns whether a tool call was denied, by the user or by a rule.
    pub(crate) fn denied(&self) -> bool {
        self.denied
    }

    /// Runs prompts in order and stops at the first failure. Returns the exit code.
    pub(crate) async fn prompts(&mut self, prompts: VecDeque<String>) -> Result<u8> {
        for prompt in prompts {
            let code = match stop_code(self.prompt(prompt, &mut InputQueue::closed()).await?) {
                0 if self.checks_failed => CHECKS_FAILED,
                _ if self.unanswered => DENIED,
                code => code,
            };
            if code != 0 {
                // The next prompt may depend on this prompt, which did not complete.
                return Ok(code);
            }
        }
        if self.unasked && self.output.answers {
            print_stderr("A commit that no prompt asks for was refused; --allow-commit allows it.\n");
        }
        Ok(if self.denied { DENIED } else { 0 })
    }

    /// Handles messages and interrupts from standard input. A message that arrives during a turn is
    /// queued. Returns the exit code.
    pub(crate) async fn lines(&mut self, mut input: InputQueue) -> Result<u8> {
        let mut code = 0;
        while let Some(message) = input.message().await {
            (self.checks_failed, self.unanswered) = (false, false);
            match self.prompt(message?, &mut input).await {
                Ok(_) if self.interrupted.is_cancelled() => return Ok(130),
                Ok(_) if self.unanswered => code = DENIED,
                Ok(_) if self.checks_failed => code = CHECKS_FAILED,
                Ok(_) => {}
                // A failed turn does not prevent the next message from being sent.
                Err(error) => {
                    report(&error);
                    code = exit_code(&error);
                }
            }
        }
        Ok(code)
    }

    /// Runs one prompt to the end of its turn.
    async fn prompt(&mut self, prompt: String, input: &mut InputQueue) -> Result<StopReason> {
        let (client, cancel) = (self.client.clone(), self.interrupted.child_token());
        let mut parts = vec![Part::text(prompt)];
        parts.append(&mut self.attached);
        let budget = (self.budget != BudgetLimits::default()).then(|| json!(self.budget));
        let params = PromptParams { budget, ..PromptParams::new(&self.session, parts) };
        let turn = match client.server() {
            None => Either::Left(client.call_until::<Prompt>(params, cancel.clone())),
            Some(_) => Either::Right(elsewhere::prompt(&client, params, cancel.clone(), self.ended.subscribe())),
        };
        let end = self.show_until(turn, input, &cancel).await?;
        // The turn has ended, so an open question is void.
        self.questions.withdraw();
        self.show_deferred().await?;
        Ok(end?.stop_reason)
    }

    /// Shows events until `work` completes, and the events that are committed then. An interrupt in
    /// the input cancels `cancel`.
    async fn show_until<T>(
        &mut self,
        work: impl Future<Output = T>,
        input: &mut InputQueue,
        cancel: &CancellationToken,
    ) -> Result<T> {
        let mut work = pin!(work);
        let ended = loop {
            let asking = self.questions.are_open();
            tokio::select! {
                biased;
                events = self.events.next() => for event in events? { self.event(event).await?; },
                ended = &mut work => break ended,
                form = self.questions.form_changed() => match form {
                    Some(form) => {
                        self.status.erase();
                        self.questions.show(form);
                    }
                    None => self.show_deferred().await?,
                },
                Ok(()) = self.starting.changed() => self.show_starting(),
                // A question is on the last line.
                () = self.status.tick(), if !asking && !self.output.renderer.is_mid_line() => self.status.write(),
                line = input.line() => match line {
                    Ok(InputLine::Interrupt {}) => cancel.cancel(),
                    Ok(InputLine::Message { content }) => input.push(content),
                    Err(error) => { cancel.cancel(); report(&error); }
                },
            }
        };
        for event in self.events.committed().await? {
            self.event(event).await?;
        }
        self.skipping = None;
        self.status.stop();
        Ok(ended)
    }

    /// Shows which MCP servers the turn waits for. Enter ends the wait.
    fn show_starting(&mut self) {
        let Some(wait) = self.starting.borrow_and_update().clone() else {
            self.skipping = None;
            return self.status.stop();
        };
        let what = format!("waiting for MCP server {}:", wait.names.join(", "));
        match (self.questions.lines(), self.status.enabled) {
            (Some(_), true) => self.status.count_down(wait.until_ms, what, "Enter continues without it"),
            (None, true) => self.status.count_down(wait.until_ms, what, "Ctrl+C to cancel"),
            (_, false) => print_stderr(format!("{what} at most {} s\n", wait.seconds_left())),
        }
        self.skipping = self.questions.lines().map(|lines| {
            let app = self.client.app().clone();
            AbortOnDropHandle::new(crate::task::spawn(async move {
                let mut lines = lines.lock().await;
                while lines.key().await.is_some_and(|key| !matches!(key, '\n' | '\r')) {}
                app.services.mcp_wait.skip();
            }))
        });
    }

    /// Shows an event, or defers it while a question is open at the terminal.
    async fn event(&mut self, event: Arc<Event>) -> Result<()> {
        if let Body::PermissionResolved(PermissionDecision { permission_id, outcome, by, .. }) = &event.body {
            let is_unasked = *by == Actor::Unasked;
            self.denied |= !outcome.allows() && !is_unasked;
            self.unasked |= is_unasked;
            permission_id.iter().for_each(|id| self.questions.resolved(id));
        }
        if let Body::TurnCancelled { cause: Some(_) } = &event.body {
            self.denied = true;
            self.unanswered = true;
        }
        if let Body::VerifyCompleted { round: 1.., passed, .. } = &event.body {
            self.checks_failed = !passed;
        }
        if let (Some(turn), Some(end)) = (&event.turn_id, turn_end(&event)) {
            self.ended.send_replace(Some((turn.clone(), end)));
        }
        self.deferred.push_back(event);
        self.show_deferred().await
    }

    async fn show_deferred(&mut self) -> Result<()> {
        while (self.output.json || !self.questions.are_open())
            && let Some(event) = self.deferred.pop_front()
        {
            self.show(&event).await?;
        }
        Ok(())
    }

    async fn show(&mut self, event: &Event) -> Result<()> {
        if self.output.json {
            print_event(event)?;
        }
        for block in self.transcript.apply(event) {
            self.show_status(&block).await;
            if !self.output.json {
                if matches!(block, TranscriptBlock::Denied(_)) {
                    let session = self.client.app().sessions_now().and_then(|sessions| sessions.opened(&self.session));
                    self.output.renderer.mode = session.and_then(|session| session.log.state(|state| state.mode.known()));
                }
                let mut rendered = self.output.renderer.render(&block);
                rendered.retain(|piece| self.output.answers || !piece.is_answer());
                if !rendered.is_empty() {
                    self.status.erase();
                }
                print_rendered(rendered, self.output.ascii)?;
            }
            if let TranscriptBlock::Question(question) = block {
                let resolved = |event: &Event| matches!(&event.body, Body::PermissionResolved(PermissionDecision { permission_id: Some(of), .. }) if of == question.id);
                if !self.deferred.iter().any(|event| resolved(event)) {
                    self.status.erase();
                    self.questions.ask(&question, &self.output).await;
                }
            }
        }
        Ok(())
    }

    /// Shows in the status line what the turn waits for. Records the end of a turn that no prompt
    /// of this command started.
    async fn show_status(&mut self, block: &TranscriptBlock<'_>) {
        self.activity.apply(block);
        match block {
            TranscriptBlock::TurnStart => self.show_header(None).await,
            TranscriptBlock::Request { model } => self.show_header(Some(model)).await,
            TranscriptBlock::Retry { at_ms } => self.status.count_down(*at_ms, "next attempt in".into(), "Ctrl+C to cancel"),
            TranscriptBlock::TurnEnd { reason, .. } if self.unprompted.is_some() => match reason {
                TurnEndReason::Failed { message, hint } => {
                    self.unprompted = Some(1);
                    print_stderr(super::errors::text(message, *hint));
                }
                TurnEndReason::Stopped(stop) => {
                    self.unprompted = self.unprompted.max(Some(stop_code(*stop)));
                }
                TurnEndReason::Unanswered => self.unprompted = Some(DENIED),
                TurnEndReason::Cancelled | TurnEndReason::Interrupted => {}
            },
            _ => {}
        }
        let mut work = self.activity.current();
        let line = self.output.renderer.last_line().trim_start();
        // A block of an answer is printed when it is complete.
        let is_shown = |work: &&mut CurrentWork| !line.is_empty() && work.since.elapsed() >= WORK_SHOWN;
        work.iter_mut().filter(is_shown).for_each(|work| work.output = vec![line.into()]);
        self.status.show_work(work);
    }

    /// Prints a line about the session once, when its model or its hosted agent is known.
    async fn show_header(&mut self, model: Option<&str>) {
        if !self.header_due {
            return;
        }
        let (agent, mode) = match self.client.app().sessions_now().and_then(|sessions| sessions.opened(&self.session)) {
            Some(session) => {
                let (agent, mode) = session.log.state(|state| (state.settings.agent.clone(), state.mode.clone()));
                (agent.map(|agent| hosted_agent(&agent, session.agent().own_rules(&session.log).is_some())), mode)
            }
            None => {
                let params = SessionParams { session_id: self.session.clone() };
                let Ok(view) = self.client.call::<GetSession>(params).await else { return };
                (view.activity.agent().map(|agent| hosted_agent(agent, view.agent_rules.is_some())), view.mode)
            }
        };
        let Some(name) = agent.as_deref().or(model) else { return };
        self.header_due = false;
        self.status.erase();
        print_question(vec![self.output.renderer.remark(&format!("{name} · mode {mode} · session {}", self.session))]);
    }
}
