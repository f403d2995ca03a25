//! The budget of a turn and of its session: when a limit is reached, asks whether to continue.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::environment::SessionEnvironment;
use crate::content::{
    BudgetLimit, BudgetLimits, PermissionOption, PermissionOptionKind, Resource, StopReason, ToolCategory, ToolContent, ToolLabel,
};
use crate::error::Result;
use crate::event::{Body, PermissionOutcome, Severity};
use crate::id::ToolCallId;
use crate::limits::SUBAGENT_REQUESTS_MAX;
use crate::session::turns::TurnRecord;
use crate::session::{Spending, Turn, TurnQuestion, now_ms};

/// Code of the notice about a budget that is used up.
const CODE: &str = "budget";

/// The limits that are checked before each model request.
const BEFORE_REQUESTS: [BudgetLimit; 6] = [
    BudgetLimit { resource: Resource::Requests, session: false },
    BudgetLimit { resource: Resource::Tokens, session: false },
    BudgetLimit { resource: Resource::Cost, session: false },
    BudgetLimit { resource: Resource::Requests, session: true },
    BudgetLimit { resource: Resource::Tokens, session: true },
    BudgetLimit { resource: Resource::Cost, session: true },
];

/// The limits that are checked all the time.
const TIMES: [BudgetLimit; 2] =
    [BudgetLimit { resource: Resource::Time, session: false }, BudgetLimit { resource: Resource::Time, session: true }];

/// The budget of a running turn. The used amounts are computed from the session's events, so they
/// survive a restart, except those of subagents that a kill interrupted: their end has no amounts.
pub(crate) struct TurnBudget<'a> {
    turn: &'a Turn,
    /// The limits of the settings.
    settings: BudgetLimits,
    /// Time limit for the answer to the question whether to continue.
    timeout: Duration,
    /// A time limit was reached, and the work was cancelled.
    stops_work: AtomicBool,
}

impl<'a> TurnBudget<'a> {
    /// The budget of `turn`. A subagent has at most [`SUBAGENT_REQUESTS_MAX`] requests per turn.
    pub(crate) fn new(turn: &'a Turn, environment: &SessionEnvironment, subagent: bool) -> TurnBudget<'a> {
        let settings = &environment.loaded.settings;
        let timeout = Duration::from_secs(settings.permissions.timeout_s);
        let mut limits = settings.budget.limits();
        if subagent {
            let requests = limits.max_requests.filter(|requests| *requests > 0).unwrap_or(SUBAGENT_REQUESTS_MAX);
            limits.max_requests = Some(requests.min(SUBAGENT_REQUESTS_MAX));
        }
        TurnBudget { turn, settings: limits, timeout, stops_work: AtomicBool::new(false) }
    }

    /// Returns whether the work was cancelled because a time limit was reached.
    pub(crate) fn stops_work(&self) -> bool {
        self.stops_work.load(Ordering::Relaxed)
    }

    /// The amounts left of the turn and of its session, as the session limits of a child session.
    /// At least 1 of each limited resource is left.
    fn left(&self) -> BudgetLimits {
        let mut left = BudgetLimits::default();
        for limit in BEFORE_REQUESTS.into_iter().chain(TIMES) {
            let in_child = BudgetLimit { session: true, ..limit };
            if let Some((max, _)) = self.limit(limit) {
                let amount = max.saturating_sub(self.spent(limit)).max(1);
                left.set(in_child, left.get(in_child).map_or(amount, |other| other.min(amount)));
            }
        }
        left
    }

    /// The amount of a limit, and the amount by which it is raised. `None` if there is no limit.
    fn limit(&self, limit: BudgetLimit) -> Option<(u64, u64)> {
        let (given, raised) = self.turn.log.state(|state| (state.budget.given(), state.budget.raised()));
        let base = given.or(self.settings).get(limit).filter(|amount| *amount > 0)?;
        Some((raised.get(limit).unwrap_or_default().max(base), base))
    }

    fn spent(&self, limit: BudgetLimit) -> u64 {
        let now = now_ms();
        let (recorded, time_ms) = self.turn.log.state(|state| {
            let turns = match limit.session {
                true => state.turns.after(0),
                false => state.turns.last().map(std::slice::from_ref).unwrap_or_default(),
            };
            let time_ms = |turn: &TurnRecord| {
                let ended_ms = if turn.last_seq == 0 { now } else { turn.ended_ms };
                ended_ms.saturating_sub(turn.started_ms)
            };
            (Spending::of(turns), turns.iter().map(time_ms).sum::<u64>())
        });
        // The log has the sums of the subagents that have ended.
        let running = Spending { requests: 0, ..self.turn.children.used_by_running() };
        let siblings = if limit.session { self.turn.used_by_siblings() } else { Spending::default() };
        let spent = recorded.plus(running).plus(siblings);
        match limit.resource {
            Resource::Requests => spent.requests,
            Resource::Tokens => spent.tokens,
            Resource::Cost => spent.nano_dollars,
            Resource::Time => time_ms / 1000,
        }
    }

    /// Returns whether the turn may send another model request. If a limit is reached, asks whether
    /// to raise it, until `cancel`. Reports the limit that stops the turn.
    pub(crate) async fn allows_request(&self, cancel: &CancellationToken) -> Result<bool> {
        for limit in BEFORE_REQUESTS {
            let reached = self.limit(limit).is_some_and(|(max, _)| self.spent(limit) >= max);
            if reached && !self.extend(limit, cancel).await? {
                return Ok(false);
            }
        }
        if let Some(subagents) = &self.turn.subagents {
            subagents.set_budget(self.left());
            self.turn.children.mark_budget();
        }
        Ok(true)
    }

    /// Awaits the work of the turn. When a time limit is reached, asks whether to raise it while
    /// the work continues. Cancels the work if the limit is not raised.
    pub(crate) async fn limit_time(&self, work: impl Future<Output = Result<StopReason>>) -> Result<StopReason> {
        let mut work = pin!(work);
        loop {
            let Some((limit, deadline)) = self.deadline() else { return work.await };
            tokio::select! {
                biased;
                result = &mut work => return result,
                () = tokio::time::sleep_until(deadline) => {}
            }
            let ended = self.turn.cancel.child_token();
            let mut question = pin!(self.extend(limit, &ended));
            let extended = tokio::select! {
                biased;
                result = &mut work => {
                    // The answer is not needed any more.
                    ended.cancel();
                    question.await?;
                    return result;
                }
                extended = &mut question => extended?,
            };
            if !extended {
                self.stops_work.store(true, Ordering::Relaxed);
                self.turn.cancel.cancel();
                return work.await.map(|stop| if stop == StopReason::Cancelled { StopReason::MaxTurnRequests } else { stop });
            }
        }
    }

    /// The time limit that is reached first, and when.
    fn deadline(&self) -> Option<(BudgetLimit, Instant)> {
        let left = |limit| Some((limit, Duration::from_secs(self.limit(limit)?.0.saturating_sub(self.spent(limit)))));
        let (limit, left) = TIMES.into_iter().filter_map(left).min_by_key(|(_, left)| *left)?;
        // Times that cannot be represented are never reached.
        Some((limit, Instant::now().checked_add(left)?))
    }

    /// Asks whether to raise a limit by its original amount, and raises it. Otherwise reports that
    /// the turn stops. `cancel` withdraws the question.
    async fn extend(&self, limit: BudgetLimit, cancel: &CancellationToken) -> Result<bool> {
        let Some((max, more)) = self.limit(limit) else { return Ok(true) };
        let (whose, resource) = (if limit.session { "session" } else { "turn" }, limit.resource);
        let (used_up, more_shown) = (resource.show(max), resource.show(more));
        let title = format!("{more_shown} more (the budget of this {whose}, {used_up}, is used up)");
        let label = ToolLabel { name: "budget".into(), title, category: Some(ToolCategory::Other) };
        let option = |id: &str, name: String, kind| PermissionOption { option_id: id.into(), name, kind };
        let options = vec![
            option("allow_once", format!("Continue with {more_shown} more"), PermissionOptionKind::AllowOnce),
            option("reject_once", "Stop".into(), PermissionOptionKind::RejectOnce),
        ];
        let (call, content) = (ToolCallId::new(), vec![ToolContent::text(self.summary())]);
        let (tool_call_id, tool, timeout) = (call.clone(), label.clone(), self.timeout);
        let question = TurnQuestion { tool_call_id, tool, content, options, timeout, cancel, review: None };
        let (permission_id, answer) = self.turn.ask(question).await;
        let (outcome, tool) = (answer.outcome, Some(label));
        if permission_id.is_some() {
            let (tool_call_id, reason, by) = (call, answer.reason, answer.by);
            self.turn.emit(Body::PermissionResolved { permission_id, tool_call_id, tool, outcome, reason, by, rule: None }).await;
        }
        if outcome.allows() {
            let mut limits = BudgetLimits::default();
            limits.set(limit, self.spent(limit).max(max).saturating_add(more));
            self.turn.commit(Body::BudgetRaised { limits }).await?;
            return Ok(true);
        }
        if outcome != PermissionOutcome::Cancelled {
            let description = format!(
                "this {whose} has used {} of {used_up} ({}): send a message to continue, or raise the limit in [budget]",
                resource.number(self.spent(limit)),
                limit.name()
            );
            let (severity, title) = (Severity::Warning, "The budget is used up".to_owned());
            let (code, description) = (Some(CODE.to_owned()), Some(description));
            self.turn.emit(Body::Notice { severity, title, description, code, note: None }).await;
        }
        Ok(false)
    }

    /// The amounts that the turn and the session have used.
    fn summary(&self) -> String {
        let shown = |session| {
            let amounts = [Resource::Requests, Resource::Tokens, Resource::Cost, Resource::Time];
            let shown = amounts.map(|resource| resource.show(self.spent(BudgetLimit { resource, session })));
            shown.join(", ")
        };
        format!("This turn: {}\nThis session: {}", shown(false), shown(true))
    }
}
