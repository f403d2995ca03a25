//! The limits of a session and of its running turn: a fold over the session's events.

use crate::content::BudgetLimits;
use crate::event::{Body, Event, ignored};

/// The limits that clients gave, and the limits that answers raised.
#[derive(Clone, Copy, Debug, Default)]
pub struct BudgetState {
    session: BudgetLimits,
    /// Limits of the last turn.
    turn: BudgetLimits,
    raised: BudgetLimits,
}

impl BudgetState {
    /// Adds an event. Events must be added in the order of the log.
    pub(in crate::session) fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::SessionCreated { change, .. } | Body::SessionUpdated { change } => {
                self.session = change.budget.unwrap_or_default().or(self.session);
            }
            Body::SessionGranted { change, raised, .. } => {
                self.session = change.budget.unwrap_or_default();
                self.raised = raised.as_deref().copied().unwrap_or_default();
            }
            Body::TurnStarted { budget, .. } => {
                self.turn = budget.unwrap_or_default();
                self.raised = self.raised.of_session();
            }
            Body::BudgetRaised { limits } => self.raised = limits.or(self.raised),
            Body::SessionClosed {}
            | Body::SessionDeleted {}
            | Body::TurnCompleted { .. }
            | Body::TurnFailed { .. }
            | Body::TurnCancelled { .. }
            | Body::TurnInterrupted {}
            | Body::Unknown(_)
            | ignored!(Step | Message | Replacement | Queue | Tool | Permission | Verify | Plan | Usage | Pruning)
            | ignored!(Compaction | Child | Agent | Hook | Mode | Notice) => {}
        }
    }

    /// Returns the limits that clients gave: for each limit, the value of the turn, else the value
    /// of the session.
    pub(crate) fn given(&self) -> BudgetLimits {
        self.turn.or(self.session)
    }

    /// Returns the limits that clients gave for the session.
    pub(crate) fn of_session(&self) -> BudgetLimits {
        self.session
    }

    /// Returns the limits that answers to permission requests have raised.
    pub(crate) fn raised(&self) -> BudgetLimits {
        self.raised
    }
}
