//! The budget of a turn and of its session: when a limit is reached, asks whether to continue.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::content::{
    BudgetLimit, BudgetLimits, PermissionOption, PermissionOptionKind, Resource, StopReason, ToolCategory, ToolContent, ToolLabel,
};
use crate::error::Result;
use crate::event::{Body, PermissionOutcome, Severity};
use crate::id::ToolCallId;
use crate::session::turn::budget_owner::{BudgetOwner, BudgetQuestion};
use crate::session::{Turn, TurnQuestion};
use crate::task;

/// Maximum number of model requests per turn of a subagent.
const SUBAGENT_REQUESTS_MAX: u64 = 100;

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

/// The limits that are checked continuously.
const TIMES: [BudgetLimit; 2] =
    [BudgetLimit { resource: Resource::Time, session: false }, BudgetLimit { resource: Resource::Time, session: true }];

/// The budget of a running turn, which its subagents share. The used amounts are computed from the
/// events of the sessions, so they survive a restart. Exception: a subagent that a kill interrupted
/// has no amounts.
pub(crate) struct TurnBudget<'a> {
    turn: &'a Turn,
    /// The limits of the settings, which apply to the outermost session.
    settings: BudgetLimits,
    /// The limits of the settings that apply to the session of the turn.
    own: BudgetLimits,
    /// Time limit for the answer to the permission request to continue.
    timeout: Duration,
    /// True if a time limit was reached and the work was cancelled.
    stops_work: AtomicBool,
}

impl<'a> TurnBudget<'a> {
    /// Creates the budget of `turn`. A subagent has at most [`SUBAGENT_REQUESTS_MAX`] requests per
    /// turn; it shares the other limits of the settings with its parent sessions.
    pub(crate) fn new(turn: &'a Turn, settings: &Settings, subagent: bool) -> TurnBudget<'a> {
        let mut budget = TurnBudget::with_limits(turn, settings, settings.budget.limits());
        let own = &mut budget.own;
        if subagent {
            let requests = own.max_requests.filter(|requests| *requests > 0).unwrap_or(SUBAGENT_REQUESTS_MAX);
            own.max_requests = Some(requests.min(SUBAGENT_REQUESTS_MAX));
        }
        budget
    }

    /// Creates the budget of a turn whose session has these limits, unless it is nested.
    pub(crate) fn with_limits(turn: &'a Turn, settings: &Settings, limits: BudgetLimits) -> TurnBudget<'a> {
        let own = if turn.is_nested() { BudgetLimits::default() } else { limits };
        let timeout = Duration::from_secs(settings.permissions.timeout_s);
        TurnBudget { turn, settings: settings.budget.limits(), own, timeout, stops_work: AtomicBool::new(false) }
    }

    /// Returns whether the work was cancelled because a time limit was reached.
    pub(crate) fn stops_work(&self) -> bool {
        self.stops_work.load(Ordering::Relaxed)
    }

    /// Returns the time left of the turn and of its session, as the limit of a child session that
    /// may outlast the turn. At least 1 second is left.
    fn time_left(&self) -> BudgetLimits {
        let Some(own) = self.turn.budget_owners().pop() else { return BudgetLimits::default() };
        let left = |limit| Some(self.limit(&own, limit)?.0.saturating_sub(own.spent(limit)).max(1));
        BudgetLimits { session_max_wall_s: TIMES.into_iter().filter_map(left).min(), ..BudgetLimits::default() }
    }

    /// Returns the current amount of a limit, and the amount by which an answer raises it. `None`
    /// if there is no limit.
    fn limit(&self, owner: &BudgetOwner<'_>, limit: BudgetLimit) -> Option<(u64, u64)> {
        let (given, raised) = owner.limits();
        let settings = match owner.level {
            0 => self.own,
            _ => self.settings,
        };
        let base = given.or(settings).get(limit).filter(|amount| *amount > 0)?;
        Some((raised.get(limit).unwrap_or_default().max(base), base))
    }

    /// Returns whether the turn or its session has a limit of this resource.
    pub(crate) fn has_limit(&self, resource: Resource) -> bool {
        let owners = self.turn.budget_owners();
        let limits = [false, true].map(|session| BudgetLimit { resource, session });
        owners.iter().any(|owner| limits.iter().any(|limit| self.limit(owner, *limit).is_some()))
    }

    /// Returns the limit of cost that a client gave, for a model whose price is unknown.
    pub(crate) fn given_cost(&self) -> Option<BudgetLimit> {
        let given = |limit: BudgetLimit| {
            let owners = self.turn.budget_owners();
            owners.iter().any(|owner| owner.limits().0.get(limit).is_some_and(|amount| amount > 0))
        };
        BEFORE_REQUESTS.into_iter().find(|limit| limit.resource == Resource::Cost && given(*limit))
    }

    /// Returns whether the turn may send another model request, which then counts. If a limit is
    /// reached, asks whether to raise it, until `cancel`. Reports the limit that stops the turn.
    pub(crate) async fn allows_request(&self, cancel: &CancellationToken) -> Result<bool> {
        while let Some(reached) = self.reserve() {
            if !self.extend(reached, cancel).await? {
                return Ok(false);
            }
        }
        if let Some(subagents) = &self.turn.subagents {
            subagents.set_budget(self.time_left());
        }
        Ok(true)
    }

    /// Counts a request in all sessions whose budgets limit the turn, or returns the limit that is
    /// reached.
    fn reserve(&self) -> Option<ReachedLimit> {
        self.turn.reserve_request(|| self.reached(|_| true))
    }

    /// Returns the first limit of these resources that is reached.
    fn reached(&self, is_limited: impl Fn(Resource) -> bool) -> Option<ReachedLimit> {
        self.turn.budget_owners().iter().find_map(|owner| {
            BEFORE_REQUESTS.into_iter().filter(|limit| is_limited(limit.resource)).find_map(|limit| {
                let (amount, _) = self.limit(owner, limit)?;
                (owner.spent(limit) >= amount).then_some(ReachedLimit { level: owner.level, limit, amount })
            })
        })
    }

    /// Awaits the work of the turn, as [`TurnBudget::limit_reported`] does without reports.
    pub(crate) async fn limit_time(&self, work: impl Future<Output = Result<StopReason>>) -> Result<StopReason> {
        self.limit_reported(work, &[], &Notify::new()).await
    }

    /// Awaits the work of the turn of an agent that reports its use of `resources`; `reports`
    /// receives a notification for each report. When a limit of time or of these resources is
    /// reached, asks whether to raise it while the work continues. Cancels the work if the limit is
    /// not raised.
    pub(crate) async fn limit_reported(
        &self,
        work: impl Future<Output = Result<StopReason>>,
        resources: &[Resource],
        reports: &Notify,
    ) -> Result<StopReason> {
        let mut work = pin!(work);
        loop {
            let reached = tokio::select! {
                biased;
                result = &mut work => return result,
                reached = self.next_reached(resources, reports) => reached,
            };
            let ended = self.turn.cancel.child_token();
            let mut question = pin!(self.extend(reached, &ended));
            let extended = tokio::select! {
                biased;
                result = &mut work => {
                    // Withdraw the permission request: the work has ended.
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

    /// Waits until a limit of time or of these resources is reached.
    async fn next_reached(&self, resources: &[Resource], reports: &Notify) -> ReachedLimit {
        loop {
            if let Some(reached) = self.reached(|resource| resources.contains(&resource)) {
                return reached;
            }
            let first = self.next_time_limit();
            // Times that cannot be represented are never reached.
            let due = match &first {
                Some((reached, left)) if left.is_zero() => return *reached,
                Some((_, left)) => Instant::now().checked_add(*left),
                None => None,
            };
            tokio::select! {
                biased;
                // Waiting for an answer took none of the time.
                () = task::passed(due) => {}
                () = reports.notified() => {}
            }
        }
    }

    /// Returns the time limit that the turn reaches first, and the time left until then.
    fn next_time_limit(&self) -> Option<(ReachedLimit, Duration)> {
        let own = self.turn.budget_owners().pop()?;
        let left = |limit| {
            let (amount, _) = self.limit(&own, limit)?;
            Some((ReachedLimit { level: 0, limit, amount }, own.time_left(limit, amount)))
        };
        TIMES.into_iter().filter_map(left).min_by_key(|(_, left)| *left)
    }

    /// Asks whether to raise a limit by its original amount, and raises it. Otherwise reports that
    /// the turn stops. `cancel` withdraws the permission request. If another turn that shares the
    /// limit asks first, its answer applies.
    async fn extend(&self, reached: ReachedLimit, cancel: &CancellationToken) -> Result<bool> {
        let ReachedLimit { level, limit, amount } = reached;
        let owners = self.turn.budget_owners();
        let Some(owner) = owners.iter().find(|owner| owner.level == level) else { return Ok(true) };
        let mut question = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(false),
            question = owner.question() => question,
        };
        let Some((max, more)) = self.limit(owner, limit).filter(|(max, _)| *max == amount) else { return Ok(true) };
        if question.is_open(limit, max) {
            let outcome = self.ask(owner, &question, limit, (max, more), cancel).await;
            if outcome.allows() {
                let mut limits = BudgetLimits::default();
                limits.set(limit, owner.spent(limit).max(max).saturating_add(more));
                owner.raise(limits).await?;
                return Ok(true);
            }
            if outcome == PermissionOutcome::Cancelled {
                return Ok(false);
            }
            question.refuse(limit, max);
        }
        self.report(owner, limit, max).await;
        Ok(false)
    }

    async fn ask(
        &self,
        owner: &BudgetOwner<'_>,
        question: &BudgetQuestion<'_>,
        limit: BudgetLimit,
        (max, more): (u64, u64),
        cancel: &CancellationToken,
    ) -> PermissionOutcome {
        let (used_up, more) = (limit.resource.show(max), limit.resource.show(more));
        let whose = match (owner.level, self.turn.is_nested(), limit.session) {
            (0, true, _) => "subagent",
            (_, _, true) => "session",
            (_, _, false) => "turn",
        };
        let title = format!("{more} more (the budget of this {whose}, {used_up}, is used up)");
        let option = |id: &str, name: String, kind| PermissionOption { option_id: id.into(), name, kind };
        let options = vec![
            option("allow_once", format!("Continue with {more} more"), PermissionOptionKind::AllowOnce),
            option("reject_once", "Stop".into(), PermissionOptionKind::RejectOnce),
        ];
        let asked = TurnQuestion {
            tool_call_id: ToolCallId::new(),
            tool: ToolLabel { name: "budget".into(), title, category: Some(ToolCategory::Other) },
            content: vec![ToolContent::text(summary(owner))],
            options,
            timeout: self.timeout,
            ends_turn: false,
            cancel: cancel.clone(),
            review: None,
        };
        question.ask(asked).await.outcome
    }

    /// Reports in the session of the turn that a limit stops the turn.
    async fn report(&self, owner: &BudgetOwner<'_>, limit: BudgetLimit, max: u64) {
        let whose = match (owner.level, self.turn.is_nested(), limit.session) {
            (0, true, _) => "this subagent",
            (0, false, true) => "this session",
            (0, false, false) => "this turn",
            (_, _, true) => "the session that started this subagent",
            (_, _, false) => "the turn that started this subagent",
        };
        let raise = match owner.limits().0.get(limit) {
            // The limit of a subagent is fixed, or that of its definition.
            _ if owner.level == 0 && self.turn.is_nested() => String::new(),
            Some(_) => format!(", or raise {}", limit.parameter()),
            None => format!(", or raise {} in [budget]", limit.name()),
        };
        let description = format!(
            "{whose} has used {} of {} ({}): send a message to continue{raise}",
            limit.resource.number(owner.spent(limit)),
            limit.resource.show(max),
            limit.name()
        );
        self.turn.emit(Body::notice_about(CODE, Severity::Warning, "The budget is used up", description)).await;
    }
}

/// A limit that is reached, and its amount then.
#[derive(Clone, Copy)]
struct ReachedLimit {
    /// Number of levels between the session of the turn and the session whose limit it is.
    level: usize,
    limit: BudgetLimit,
    amount: u64,
}

/// Describes the amounts that the turn and the session of a budget have used.
fn summary(owner: &BudgetOwner<'_>) -> String {
    let shown = |session| {
        let amounts = [Resource::Requests, Resource::Tokens, Resource::Cost, Resource::Time];
        let shown = amounts.map(|resource| resource.show(owner.spent(BudgetLimit { resource, session })));
        shown.join(", ")
    };
    format!("This turn: {}\nThis session: {}", shown(false), shown(true))
}
