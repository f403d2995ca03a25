//! The plan of an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the tool that changes the plan. Clients show the plan instead of its calls.
pub(crate) const PLAN: &str = "plan";

/// A step of the agent's plan (ACP `PlanEntry`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PlanEntry {
    /// The work to do, in one line.
    pub content: String,
    /// How important the step is.
    pub priority: PlanPriority,
    /// How far the step is.
    pub status: PlanStatus,
}

// Models receive doc comments with the schema; for these two types, the names suffice.
/// The priority of a plan step.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanPriority {
    High,
    Medium,
    Low,
}

/// The status of a plan step.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}
