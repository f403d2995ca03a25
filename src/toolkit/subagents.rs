//! Subagents as tools see them. The session layer starts and runs them.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::output::{Progress, ToolError};
use crate::content::BudgetLimits;
use crate::context::agent_definitions::SubagentProfile;
use crate::event::ChildEnd;
use crate::id::{SessionId, ToolCallId, TurnId};
use crate::options::Mode;

/// Runs subagents in child sessions.
pub(crate) trait Spawner: Send + Sync {
    /// Starts a subagent for a call in `turn` of `session`, whose prompt is `prompt`. Unless the
    /// request is for the background, waits for the end of the subagent.
    fn spawn<'a>(
        &'a self,
        session: &'a SessionId,
        turn: &'a TurnId,
        prompt: &'a str,
        request: SubagentRequest,
    ) -> BoxFuture<'a, Result<Subagent, ToolError>>;
}

/// Starts subagents for the calls of one turn.
#[derive(Clone)]
pub struct Subagents {
    pub(crate) spawner: Weak<dyn Spawner>,
    pub(crate) session: SessionId,
    pub(crate) turn: TurnId,
    /// The text of the turn's prompt.
    pub(crate) prompt: Arc<str>,
    /// Limits of a subagent that starts now.
    pub(crate) budget: Arc<Mutex<BudgetLimits>>,
}

impl Subagents {
    /// Sets the limits of later subagents.
    pub(crate) fn set_budget(&self, budget: BudgetLimits) {
        *self.budget.lock() = budget;
    }

    /// Starts a subagent with the current limits; see [`Spawner::spawn`].
    pub(crate) async fn spawn(&self, mut request: SubagentRequest) -> Result<Subagent, ToolError> {
        request.budget = *self.budget.lock();
        let spawner = self.spawner.upgrade().ok_or_else(ToolError::cancelled)?;
        spawner.spawn(&self.session, &self.turn, &self.prompt, request).await
    }
}

/// A subagent to start. The child session has the directories of its parent.
pub(crate) struct SubagentRequest {
    pub call_id: ToolCallId,
    pub prompt: String,
    pub title: String,
    pub profile: SubagentProfile,
    /// The mode, if it is stricter than the mode of the parent.
    pub mode: Option<Mode>,
    /// True to return at once; the result is sent to the parent as a message.
    pub background: bool,
    /// Limits of the child session. Set by [`Subagents::spawn`].
    pub budget: BudgetLimits,
    /// Number of parent sessions of the child session.
    pub depth: u32,
    pub cancel: CancellationToken,
    pub progress: Progress,
}

/// A started subagent. `end` and `answer` are set if the subagent has ended.
pub(crate) struct Subagent {
    pub session: SessionId,
    pub end: Option<ChildEnd>,
    /// The text of the last answer.
    pub answer: String,
}
