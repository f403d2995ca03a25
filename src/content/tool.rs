//! Tool calls: kind, status, files and content for users.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Part;

/// The kind of a tool call (ACP `ToolKind`), from which clients choose an icon. Permissions and
/// [`ToolCategory`] use `permission::Access` instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolKind {
    /// Reads files or data.
    Read,
    /// Changes files.
    Edit,
    /// Searches files or pages.
    Search,
    /// Runs a command.
    Execute,
    /// Plans, without an effect outside of the session.
    Think,
    /// Requests data from the network.
    Fetch,
    /// Any other kind.
    Other,
}

/// The resources that a tool call accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolCategory {
    /// Runs a command.
    Command,
    /// Reads, lists or writes files.
    File,
    /// Connects to a host.
    Network,
    /// Calls a tool of an MCP server.
    Mcp,
    /// Accesses none of these, for example a plan, or has an invalid input.
    Other,
}

/// The tool of a call, as in the call's `tool.started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ToolLabel {
    /// The name that the model used.
    pub name: String,
    /// One line for users.
    pub title: String,
    /// Missing in events of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<ToolCategory>,
}

/// The effect of a tool call, as a permission request shows it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallDetails {
    /// From which clients choose an icon.
    pub kind: ToolKind,
    /// The arguments; null for a request about a budget, which has no call.
    pub input: Value,
    /// Files that the call works on.
    pub locations: Vec<Location>,
    /// The change or command to approve.
    pub content: Vec<ToolContent>,
}

/// The status of a tool call (ACP `ToolCallStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolStatus {
    /// Announced. The call waits, for example for a permission.
    Pending,
    /// The call runs.
    InProgress,
    /// The call ended with a result.
    Completed,
    /// The call ended with an error, or did not run.
    Failed,
}

/// A file, and optionally a line, that a tool call works on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Location {
    /// Absolute path.
    pub path: PathBuf,
    /// Line number, starting at 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Content of a tool call that is shown to users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ToolContent {
    /// Text or media.
    Content {
        /// The text or the media.
        content: Part,
    },
    /// A change of a file.
    Diff {
        /// Absolute path.
        path: PathBuf,
        /// The text before the change; missing for a new file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old_text: Option<String>,
        /// The text after the change; empty for a deleted file.
        new_text: String,
    },
    /// A command in a terminal of a client. The id is valid only for that client.
    Terminal {
        /// The client that has the terminal.
        client: String,
        /// The client's id of the terminal.
        terminal_id: String,
        /// Output of the command so far, if known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
    },
}

impl ToolContent {
    /// Creates text content.
    pub(crate) fn text(text: impl Into<String>) -> ToolContent {
        ToolContent::Content { content: Part::text(text) }
    }
}
