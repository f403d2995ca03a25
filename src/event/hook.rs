//! Hooks in events: when they run, and the result of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::Location;

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum HookEvent {
    /// Before the permission check of a tool call. May change the input or block the call.
    #[serde(rename = "tool.execute.before")]
    ToolExecuteBefore,
    /// After a tool call. May change the output.
    #[serde(rename = "tool.execute.after")]
    ToolExecuteAfter,
    /// After the hooks of `tool.execute.after`. May add messages to the next model request.
    #[serde(rename = "tool.result.validate")]
    ToolResultValidate,
    /// When the system prompt is new or differs from the last one. May change what is sent.
    #[serde(rename = "prompt.system.transform")]
    PromptSystemTransform,
    /// Before each model request. May change the messages that are sent.
    #[serde(rename = "prompt.messages.transform")]
    PromptMessagesTransform,
    /// Before the conversation is summarized. May change the prompt for the summary.
    #[serde(rename = "session.compacting")]
    SessionCompacting,
}

impl HookEvent {
    /// Returns whether the hook runs for a tool call, so that it is matched by the tool's name.
    pub fn is_about_tools(self) -> bool {
        match self {
            HookEvent::ToolExecuteBefore | HookEvent::ToolExecuteAfter | HookEvent::ToolResultValidate => true,
            HookEvent::PromptSystemTransform | HookEvent::PromptMessagesTransform | HookEvent::SessionCompacting => false,
        }
    }
}

/// How a run of a hook ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookOutcome {
    /// The hook had no effect.
    Unchanged,
    /// The hook changed the input, the output, the prompt or the messages.
    Changed,
    /// The hook blocked the call, its result or the request.
    Blocked,
    /// The hook added messages to the next model request.
    Messages,
    /// The hook failed.
    Failed,
    /// The hook took longer than its timeout.
    TimedOut,
}

/// A tool call whose input a hook changed. The fields replace those of `tool.started`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ChangedCall {
    /// One line for users.
    pub title: String,
    /// The changed arguments.
    pub input: Value,
    /// Files that the call works on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
}
