//! The sessions above the session of a subagent.

use std::sync::Arc;

use tokio::time::Instant;

use super::broker::Broker;
use super::log::SessionLog;
use super::running_children::RunningChildren;
use crate::content::BudgetLimits;
use crate::event::SessionParent;
use crate::id::{ToolCallId, TurnId};

/// A session above the session of a running subagent: its parent, or a session above the parent.
#[derive(Clone)]
pub struct Ancestor {
    pub(super) log: Arc<SessionLog>,
    /// Clients of the session answer the permission requests of its subagents, too.
    pub(super) broker: Arc<Broker>,
    /// The turn that called `task`, and its prompt.
    pub(super) turn: TurnId,
    pub(super) prompt: Arc<str>,
    pub(super) tool_call_id: ToolCallId,
    /// The subagents of the session, with the amounts that the session has used.
    pub(super) children: Arc<RunningChildren>,
    /// The limits that a client gave for the turn.
    pub(super) budget: BudgetLimits,
    /// Permission requests wait until this time for clients of other processes.
    pub(super) responders_wait_until: Option<Instant>,
}

impl Ancestor {
    /// Returns the ID of the turn that called `task`, while that turn runs. A subagent in the
    /// background may outlast it.
    pub(super) fn running_turn(&self) -> Option<TurnId> {
        self.log.state(|state| state.turn.clone()).filter(|running| *running == self.turn)
    }

    /// Returns the name of the agent that works in the session; `None` for an agent without a
    /// definition.
    pub(super) fn agent(&self) -> Option<String> {
        self.log.state(|state| agent_of(state.parent.as_deref()))
    }
}

/// Returns the name of the agent definition of a child session, if it has one.
pub(super) fn agent_of(parent: Option<&SessionParent>) -> Option<String> {
    parent.and_then(|parent| parent.agent.clone())
}
