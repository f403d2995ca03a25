//! The types of the events about the size of the context: pruning and compaction.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::ToolCallId;

/// A tool output that later requests leave out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PrunedOutput {
    /// The call that had the output.
    pub tool_call_id: ToolCallId,
    /// Number of characters of the output.
    pub chars: u64,
    /// A file with the output as the model saw it; missing if the file could not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<PathBuf>,
}

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionReason {
    /// A user asked for it.
    Manual,
    /// The next request would exceed the setting `context.compact_at`.
    Threshold,
    /// The provider rejected a request, because it exceeds the model's context window.
    Overflow,
}

/// How a compaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionOutcome {
    /// A summary replaces the earlier messages.
    Completed,
    /// The conversation is unchanged, as after the following outcomes.
    Failed,
    /// The turn or the call was cancelled.
    Cancelled,
    /// The process that compacted the conversation died.
    Interrupted,
}
