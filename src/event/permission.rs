//! The outcomes of permission requests, also for their turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
