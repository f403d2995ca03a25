//! Subagents in events: the link from a child session to its parent, and its start and end in the
//! parent's log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::content::{Cost, StopReason, Usage, WorkProblems};
use crate::id::{SessionId, ToolCallId, TurnId};

/// The tool call that created the session of a subagent.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ParentView")]
#[non_exhaustive]
pub struct ParentCall {
    /// The parent session.
    pub session_id: SessionId,
    /// The turn of the parent.
    pub turn_id: TurnId,
    /// The call that created the child.
    pub tool_call_id: ToolCallId,
    /// Name of the agent definition; missing for a subagent without one.
    pub agent: Option<String>,
}

/// The tool call that created a child session, and what the child inherited.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionParent {
    /// The call.
    #[serde(flatten)]
    pub call: ParentCall,
    /// Number of sessions above this one, including those of the processes that started nuncio.
    pub depth: u32,
    /// The tools that the subagent may use: names, `PREFIX*`, and `!NAME` for a tool that it may
    /// not use; missing: all tools.
    pub tools: Option<Vec<String>>,
    /// Permission rules that the parent had remembered when the child was created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Value>,
}

/// A child session and the tool call that it works for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChildLabel {
    /// The child session.
    pub child_session_id: SessionId,
    /// The call in the parent session.
    pub tool_call_id: ToolCallId,
    /// Name of the agent definition; missing for a subagent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The task in one line, for users.
    pub title: String,
}

/// How the work of a child session ended.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChildEnd {
    /// How the work ended.
    pub status: ChildStatus,
    /// Present if the child's last turn completed.
    pub stop_reason: Option<StopReason>,
    /// Total usage of the model requests of the child and of its subagents; missing if there was
    /// none.
    pub usage: Option<Usage>,
    /// Cost of the requests whose price is known.
    pub cost: Option<Cost>,
    /// Number of model requests of the child and of its subagents.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// Changes that the user rejected, and failing checks, whatever the child's answer says.
    pub unresolved: Option<Box<WorkProblems>>,
    /// Why the child failed.
    pub error: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Status of a child session at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChildStatus {
    /// The child's last turn completed.
    Completed,
    /// The child's last turn failed, or the child could not start.
    Failed,
    /// The child was cancelled.
    Cancelled,
    /// The process that ran the child died.
    Interrupted,
}
