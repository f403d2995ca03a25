//! The status of an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The activity of an agent in a session. The order is that of urgency: the status of a directory
/// is the greatest status of its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// No process runs the session.
    #[default]
    None,
    /// No turn runs.
    Idle,
    /// A turn runs.
    Busy,
    /// The agent waits for the user, for example for the answer to a permission request.
    Waiting,
}

impl AgentStatus {
    /// Returns the name in JSON.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            AgentStatus::None => "none",
            AgentStatus::Idle => "idle",
            AgentStatus::Busy => "busy",
            AgentStatus::Waiting => "waiting",
        }
    }

    /// Determines the status of a session with a live owner. `turn` is true if a turn runs,
    /// `permission` if a permission request is open.
    pub(crate) fn new(turn: bool, permission: bool) -> AgentStatus {
        match (turn, permission) {
            (_, true) => AgentStatus::Waiting,
            (true, false) => AgentStatus::Busy,
            (false, false) => AgentStatus::Idle,
        }
    }
}
