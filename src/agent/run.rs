//! Runs a turn: request an answer from the model, run its tool calls, repeat.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::answer::{AnswerPart, ModelAnswer};
use super::context_window::ContextWindow;
use super::fallback::Fallback;
use super::native_agent::NativeAgent;
use super::plan_approval::PlanApproval;
use super::repetition::{CallPattern, RepeatedText, Repetition, RepetitionGuard};
use super::step::{REPEATED, Steps, empty_twice};
use super::title;
use crate::agent::bundle;
use crate::agent::local_commands;
use crate::content::{StepOutcome, StopReason};
use crate::error::Result;
use crate::runtime::calls::budget::TurnBudget;
use crate::runtime::calls::execute::{EndedCall, ToolCall};
use crate::runtime::calls::hooks;
use crate::runtime::checks::review;
use crate::runtime::checks::verify::{self, Verification};
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::session::{Turn, claims};

/// Tool calls of one answer that take longer than this do not count as a repetition: they may wait
/// for something.
const REPEATED_ROUND_TIME: Duration = Duration::from_secs(10);

/// Runs a turn within its budget. The checks and the review of changes enclose the model's work.
pub(in crate::agent) async fn run(agent: &NativeAgent, turn: &Turn) -> Result<StopReason> {
    agent.services.check_depth()?;
    let environment = agent.current_environment(turn).await?;
    let budget = TurnBudget::new(turn, &environment.loaded.settings, agent.parent.is_some());
    let work = async {
        agent.update_servers(turn, &environment).await?;
        verify::check_clean(turn, &environment).await?;
        environment.changes.begin(review::is_on(&environment), verify::is_active(&environment));
        let ended = TurnRun::answer(agent, turn, &environment, &budget).await;
        review::review_changes(turn, &environment, budget.stops_work()).await?;
        ended
    };
    title::beside(turn, &environment, &budget, pin!(budget.limit_time(work))).await
}

/// A running turn, from its first model request to its stop reason.
struct TurnRun<'a> {
    agent: &'a NativeAgent,
    turn: &'a Turn,
    environment: &'a Arc<SessionEnvironment>,
    budget: &'a TurnBudget<'a>,
    window: ContextWindow<'a>,
    steps: Steps<'a>,
    guard: RepetitionGuard,
    verification: Verification<'a>,
    approval: PlanApproval,
    /// The model made a call in the turn.
    has_calls: bool,
}

impl<'a> TurnRun<'a> {
    /// Opens the model, and runs the local command that the prompt consists of, or the loop.
    async fn answer(
        agent: &'a NativeAgent,
        turn: &'a Turn,
        environment: &'a Arc<SessionEnvironment>,
        budget: &'a TurnBudget<'a>,
    ) -> Result<StopReason> {
        let model = tokio::select! {
            biased;
            () = turn.cancel.cancelled() => return Ok(StopReason::Cancelled),
            model = agent.current_model(turn, environment) => model?,
        };
        environment.set_model(model.clone());
        let system = agent.prompt.text(turn, environment, model.id()).await?;
        let window = ContextWindow::new(turn, environment, system, &*model);
        let fallback = Fallback::new(&agent.services, &environment.loaded.settings, model.id());
        let mut steps = Steps::new(turn, model, fallback, budget.given_cost()).await?;
        if let Some(command) = turn.log.state(|state| state.history.local_command().cloned()) {
            return Box::pin(local_commands::run(command, turn, &window, &mut steps)).await;
        }
        bundle::add(turn, environment).await?;
        let (guard, verification) = (RepetitionGuard::default(), Verification::new(turn, environment));
        let approval = PlanApproval::new(turn);
        let run = TurnRun { agent, turn, environment, budget, window, steps, guard, verification, approval, has_calls: false };
        run.run().await
    }

    /// Sends requests to the model and runs the tool calls of its answers, until the model or a
    /// limit ends the turn.
    async fn run(mut self) -> Result<StopReason> {
        loop {
            self.steer().await?;
            if !self.budget.allows_request(&self.turn.cancel).await? {
                return Ok(StopReason::MaxTurnRequests);
            }
            let answer = self.window.ask(&mut self.steps).await?;
            let mut round = Round::announce(self.turn, self.environment, answer).await;
            self.steps.end(round.outcome, round.repeated.map(|_| REPEATED.into())).await;
            self.has_calls |= round.has_calls();
            let calls = round.run_calls(self.turn, self.environment, &mut self.verification).await?;
            if self.turn.cancel.is_cancelled() {
                return Ok(StopReason::Cancelled);
            }
            match round.repetition(&mut self.guard, calls) {
                Some(Repetition::Note(notice)) => drop(self.turn.commit(notice).await?),
                Some(Repetition::Stop(notice)) => {
                    self.turn.emit(notice).await;
                    return Ok(if round.has_calls() { StopReason::MaxTurnRequests } else { round.stop });
                }
                None if !round.has_calls() && self.ends(&round).await? => return Ok(round.stop),
                None => {}
            }
        }
    }

    /// Adds the queued steering messages to the turn, between two model requests. Returns whether
    /// there were any.
    async fn steer(&mut self) -> Result<bool> {
        let any = self.turn.steer().await?;
        if any {
            self.guard = RepetitionGuard::default();
        }
        Ok(any)
    }

    /// Sends the next requests to the model of the mode, which can be another one than that of
    /// `plan`.
    async fn follow_mode(&mut self) -> Result<()> {
        let model = tokio::select! {
            biased;
            () = self.turn.cancel.cancelled() => return Ok(()),
            model = self.agent.current_model(self.turn, self.environment) => model?,
        };
        if model.id() == self.steps.model().id() {
            return Ok(());
        }
        self.environment.set_model(model.clone());
        let system = self.agent.prompt.text(self.turn, self.environment, model.id()).await?;
        self.window = ContextWindow::new(self.turn, self.environment, system, &*model);
        self.steps.fallback = Fallback::new(&self.agent.services, &self.environment.loaded.settings, model.id());
        self.steps.use_model(model).await.map(drop)
    }

    /// Returns whether an answer without calls ends the turn. A steering message that arrives
    /// before the turn ends continues it, and so do failed checks and an approved plan.
    async fn ends(&mut self, round: &Round) -> Result<bool> {
        if round.empty {
            return Err(empty_twice(self.steps.model().id()));
        }
        if round.stop != StopReason::EndTurn {
            return Ok(true);
        }
        let mut continues = self.steer().await? || self.verification.failure().await?.is_some();
        if !continues && self.approval.continues(self.turn, self.environment).await? {
            self.follow_mode().await?;
            continues = true;
        }
        if continues {
            self.guard = RepetitionGuard::default();
        } else if self.has_calls && self.environment.loaded.settings.verify.claims {
            // Without a call, the turn changed no file, and no claim is judged.
            claims::report(self.turn, &round.text).await?;
        }
        Ok(!continues)
    }
}

/// A recorded answer of the model and its announced calls.
struct Round {
    text: String,
    stop: StopReason,
    outcome: StepOutcome,
    /// True if the answer has neither text nor calls.
    empty: bool,
    /// The repeated text, if the answer was truncated because of it.
    repeated: Option<RepeatedText>,
    calls: Vec<ToolCall>,
}

impl Round {
    /// Records the messages of an answer and announces its calls, in order. Drops the calls of a
    /// truncated answer.
    async fn announce(turn: &Turn, environment: &Arc<SessionEnvironment>, answer: ModelAnswer) -> Round {
        let (stop, outcome, empty, repeated) = (answer.stop, answer.outcome(), answer.is_empty(), answer.repeated);
        let mut round = Round { text: answer.text(), stop, outcome, empty, repeated, calls: Vec::new() };
        environment.release_instructions();
        for part in answer.parts {
            match part {
                AnswerPart::Message(body) => turn.emit(*body).await,
                AnswerPart::Call(call) if round.has_calls() => round.calls.push(ToolCall::announce(turn, environment, call).await),
                AnswerPart::Call(_) => {}
            }
        }
        round
    }

    /// Returns whether the calls of the answer run.
    fn has_calls(&self) -> bool {
        self.outcome == StepOutcome::ToolCalls
    }

    /// Runs the calls, after the checks that precede the first edit: neighbours that change nothing
    /// at the same time, all others one after the other. A failed call does not affect the others.
    /// Returns the pattern of the calls, unless they may be repeated.
    async fn run_calls(
        &mut self,
        turn: &Turn,
        environment: &Arc<SessionEnvironment>,
        verification: &mut Verification<'_>,
    ) -> Result<Option<CallPattern>> {
        let started = Instant::now();
        verification.run_before_edits(&self.calls).await?;
        let at_once = environment.loaded.settings.tools.max_concurrency.max(1);
        let mut calls = std::mem::take(&mut self.calls).into_iter().peekable();
        let mut ended: Vec<EndedCall> = Vec::new();
        while let Some(call) = calls.next() {
            let mut group = vec![call];
            while calls.peek().is_some()
                && group[0].is_concurrent()
                && let Some(next) = calls.next_if(ToolCall::is_concurrent)
            {
                group.push(next);
            }
            let running = group.into_iter().enumerate().map(async |(index, call)| Ok((index, call.finish(turn).await?)));
            let mut together: Vec<(usize, EndedCall)> = stream::iter(running).buffer_unordered(at_once).try_collect().await?;
            together.sort_by_key(|(index, _)| *index);
            ended.extend(together.into_iter().map(|(_, call)| call));
        }
        for message in ended.iter_mut().flat_map(|call| std::mem::take(&mut call.messages)) {
            turn.commit(hooks::message_notice(message)).await?;
        }
        let pattern = CallPattern::new(ended.into_iter());
        // A call that waits, such as for another machine, may be repeated.
        Ok(pattern.filter(|_| started.elapsed() < REPEATED_ROUND_TIME))
    }

    /// Returns the consequence of a repetition: of the answer's text, or of the calls of earlier
    /// rounds.
    fn repetition(&self, guard: &mut RepetitionGuard, calls: Option<CallPattern>) -> Option<Repetition> {
        match self.repeated {
            Some(text) => Some(guard.text(text)),
            None if self.has_calls() => guard.calls(calls),
            None => None,
        }
    }
}
