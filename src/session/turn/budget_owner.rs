//! The sessions whose budgets limit the model requests of a turn: the session of the turn, and the
//! parent sessions of a subagent. A request counts in each of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::MutexGuard;

use super::running_children::{RefusedBudget, RunningChildren};
use crate::content::{BudgetLimit, BudgetLimits, Resource};
use crate::error::Result;
use crate::event::Body;
use crate::id::TurnId;
use crate::session::clock::now_ms;
use crate::session::events::log::SessionLog;
use crate::session::permissions::broker::PermissionAnswer;
use crate::session::turn::Turn;
use crate::session::turn::request::TurnQuestion;

/// A session whose budget limits the model requests of a turn.
pub(crate) struct BudgetOwner<'a> {
    asks: &'a Turn,
    log: &'a Arc<SessionLog>,
    children: &'a RunningChildren,
    /// The turn of the session whose budget applies.
    turn: &'a TurnId,
    /// The limits that a client gave for the turn when it started the subagent.
    given: BudgetLimits,
    /// Distance to the session of the requesting turn, in levels.
    pub level: usize,
}

impl Turn {
    /// Returns the sessions whose budgets limit the turn, outermost first: a shared limit is
    /// reported before the limit of a subagent.
    pub(crate) fn budget_owners(&self) -> Vec<BudgetOwner<'_>> {
        let (log, children, turn, given) = (&self.log, &*self.children, &self.id, BudgetLimits::default());
        let own = BudgetOwner { asks: self, log, children, turn, given, level: 0 };
        let above = self.ancestors.iter().enumerate().map(|(index, ancestor)| BudgetOwner {
            asks: self,
            log: &ancestor.log,
            children: &ancestor.children,
            turn: &ancestor.turn,
            given: ancestor.budget,
            level: index + 1,
        });
        let mut owners: Vec<_> = std::iter::once(own).chain(above).collect();
        owners.reverse();
        owners
    }

    /// Returns whether the turn belongs to a subagent whose parent is open.
    pub(crate) fn is_nested(&self) -> bool {
        !self.ancestors.is_empty()
    }

    /// Counts a model request in all sessions whose budgets limit it, unless `reached` returns a
    /// limit. No other request of these sessions is counted in between.
    pub(crate) fn reserve_request<T>(&self, reached: impl FnOnce() -> Option<T>) -> Option<T> {
        let outermost = self.ancestors.last().map_or(&self.children, |ancestor| &ancestor.children);
        let _reserving = outermost.reserving.lock();
        let reached = reached();
        if reached.is_none() {
            self.children.reserve(&self.log, &self.id);
        }
        reached
    }
}

impl BudgetOwner<'_> {
    /// Returns the limits that a client gave, and the limits that answers raised.
    pub(crate) fn limits(&self) -> (BudgetLimits, BudgetLimits) {
        let (given, raised) = self.log.state(|state| (state.budget.given(), state.budget.raised()));
        match self.is_newest() {
            true => (given, raised),
            false => (self.given.of_turn().or(given.of_session()), raised.of_session()),
        }
    }

    /// Returns whether the budget's turn is the newest one. A subagent in the background may
    /// outlast it.
    fn is_newest(&self) -> bool {
        self.log.state(|state| state.turns.last().is_some_and(|last| last.turn.turn_id == *self.turn))
    }

    /// Returns the amount of a limited resource that was used.
    pub(crate) fn spent(&self, limit: BudgetLimit) -> u64 {
        let turn = (!limit.session).then_some(self.turn);
        if limit.resource == Resource::Time {
            return self.time_ms(turn) / 1000;
        }
        let spent = self.children.spent(self.log, turn);
        match limit.resource {
            Resource::Requests => spent.requests,
            Resource::Tokens => spent.tokens,
            Resource::Cost | Resource::Time => spent.nano_dollars,
        }
    }

    /// Returns the time left of a limit of `amount` seconds.
    pub(crate) fn time_left(&self, limit: BudgetLimit, amount: u64) -> Duration {
        let spent = Duration::from_millis(self.time_ms((!limit.session).then_some(self.turn)));
        Duration::from_secs(amount).saturating_sub(spent)
    }

    /// Returns the time in which `turn`, or without `turn` any turn, worked.
    fn time_ms(&self, turn: Option<&TurnId>) -> u64 {
        let now = now_ms();
        self.log.state(|state| match turn {
            Some(turn) => state.turns.get(turn).map_or(0, |turn| state.turns.worked_ms(turn, now)),
            None => state.turns.after(0).iter().map(|turn| state.turns.worked_ms(turn, now)).sum(),
        })
    }

    /// Waits until no question about the budget is open. The guard holds the last refusal.
    pub(crate) async fn question(&self) -> BudgetQuestion<'_> {
        BudgetQuestion { owner: self, refused: self.children.refused.lock().await }
    }

    pub(crate) async fn raise(&self, limits: BudgetLimits) -> Result<()> {
        let running = self.log.state(|state| state.turn.clone()).filter(|turn| turn == self.turn);
        self.log.commit(running, Body::BudgetRaised { limits }).await.map(drop)
    }
}

/// The right to ask about a budget. Other requests that the budget limits wait for the answer.
pub(crate) struct BudgetQuestion<'a> {
    owner: &'a BudgetOwner<'a>,
    refused: MutexGuard<'a, Option<RefusedBudget>>,
}

impl BudgetQuestion<'_> {
    /// Returns whether it makes sense to ask whether to raise a limit of this amount: the user has
    /// not refused that in this turn, and the turn can still be continued.
    pub(crate) fn is_open(&self, limit: BudgetLimit, amount: u64) -> bool {
        let refused = self.refused.as_ref() == Some(&self.key(limit, amount));
        !refused && (limit.session || self.owner.is_newest())
    }

    /// Asks in the session that owns the budget.
    pub(crate) async fn ask(&self, question: TurnQuestion) -> PermissionAnswer {
        let asks = self.owner.asks;
        if self.owner.level > 0 {
            return asks.ask_above(self.owner.level, question).await;
        }
        let (tool_call_id, tool) = (question.tool_call_id.clone(), question.tool.clone());
        let (permission_id, answer) = asks.ask(question).await;
        if permission_id.is_some() {
            asks.emit(Body::PermissionResolved(answer.decision(permission_id, &tool_call_id, &tool))).await;
        }
        answer
    }

    /// Records that the limit is not raised.
    pub(crate) fn refuse(&mut self, limit: BudgetLimit, amount: u64) {
        *self.refused = Some(self.key(limit, amount));
    }

    fn key(&self, limit: BudgetLimit, amount: u64) -> RefusedBudget {
        RefusedBudget { turn: self.owner.turn.clone(), limit, amount }
    }
}
