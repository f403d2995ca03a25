//! Permission requests and their outcomes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::actor::Actor;
use crate::content::{PermissionOption, ReviewOffer, ToolContent, ToolLabel};
use crate::id::{PermissionId, ToolCallId};

/// How a permission request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PermissionOutcome {
    /// The call may run.
    AllowOnce,
    /// The call may run, and so may later ones like it in the session.
    AllowAlways,
    /// The call does not run.
    RejectOnce,
    /// The call does not run, nor do later ones like it in the session.
    RejectAlways,
    /// The request timed out, or no client could answer it.
    Denied,
    /// The turn was cancelled while the request was open.
    Cancelled,
}

impl PermissionOutcome {
    /// Returns whether the tool call may run.
    pub(crate) fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }
}

/// Why a turn was cancelled, unless a client cancelled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CancelCause {
    /// A permission request got no answer before its deadline.
    Unanswered,
}

/// A question whether a tool call may run.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// Identifies the request in the answer.
    pub permission_id: PermissionId,
    /// The call.
    pub tool_call_id: ToolCallId,
    /// As in `tool.started`.
    #[serde(flatten)]
    pub tool: Option<ToolLabel>,
    /// The change or command to approve.
    pub content: Vec<ToolContent>,
    /// The possible answers.
    pub options: Vec<PermissionOption>,
    /// Milliseconds since the Unix epoch. The request is denied at this time. Missing while the
    /// request waits for a person.
    pub deadline_ms: Option<u64>,
    /// For a review of changes: the files and hunks that the answer may decide about.
    pub review: Option<ReviewOffer>,
}

/// The decision on a tool call, and its author.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[non_exhaustive]
pub struct PermissionDecision {
    /// The request; missing if there was none.
    pub permission_id: Option<PermissionId>,
    /// The call.
    pub tool_call_id: ToolCallId,
    /// As in `tool.started`.
    #[serde(flatten)]
    pub tool: Option<ToolLabel>,
    /// The decision.
    pub outcome: PermissionOutcome,
    /// The reason that the decision gives.
    pub reason: Option<String>,
    /// A principal, `rule`, `mode`, `deadline`, `disconnect`, `unasked` for a git command that
    /// no message asks for, or the setting `verify.auto`.
    pub by: Actor,
    /// The rule that decided, or the session rule that an "always" answer created.
    pub rule: Option<Value>,
}
