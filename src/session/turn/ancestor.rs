//! The parent sessions of a subagent.

use std::sync::Arc;

use tokio::time::Instant;

use super::running_children::RunningChildren;
use crate::content::BudgetLimits;
use crate::event::SessionParent;
use crate::id::{ToolCallId, TurnId};
use crate::session::events::log::SessionLog;
use crate::session::permissions::broker::Broker;
use crate::session::turn::asking_turn::AskingTurn;

/// An ancestor of a running subagent's session: its parent, or a parent of the parent.
#[derive(Clone)]
pub struct Ancestor {
    pub(in crate::session) log: Arc<SessionLog>,
    /// Clients of the session, who also answer the permission requests of its subagents.
    pub(in crate::session) broker: Arc<Broker>,
    /// The turn that called `task`, and its prompt.
    pub(in crate::session) turn: TurnId,
    pub(in crate::session) prompt: Arc<str>,
    pub(in crate::session) tool_call_id: ToolCallId,
    /// The subagents of the session, with the amounts that the session has used.
    pub(in crate::session) children: Arc<RunningChildren>,
    /// The limits that a client gave for the turn.
    pub(in crate::session) budget: BudgetLimits,
    /// The turn, if it was running when the subagent started.
    pub(in crate::session) asking: Option<Arc<AskingTurn>>,
    /// Permission requests wait until this time for clients of other processes.
    pub(in crate::session) responders_wait_until: Option<Instant>,
}

impl Ancestor {
    /// Returns the ID of the turn that called `task`, while that turn runs. A subagent in the
    /// background may outlast it.
    pub(in crate::session) fn running_turn(&self) -> Option<TurnId> {
        self.log.state(|state| state.turn.clone()).filter(|running| *running == self.turn)
    }

    /// Returns the name of the agent that works in the session; `None` for an agent without a
    /// definition.
    pub(in crate::session) fn agent(&self) -> Option<String> {
        self.log.state(|state| agent_of(state.parent.as_deref()))
    }
}

/// Returns the name of the agent definition of a child session, if it has one.
pub(in crate::session) fn agent_of(parent: Option<&SessionParent>) -> Option<String> {
    parent.and_then(|parent| parent.call.agent.clone())
}
