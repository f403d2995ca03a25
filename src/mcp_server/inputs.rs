//! The inputs of the tools for hosted agents. The doc comments are descriptions for the model.

#![expect(dead_code, reason = "only the schemas are used")]

use schemars::JsonSchema;
use serde_json::{Map, Value};

/// Lists the workspaces (git worktrees) of this repository with their branches, changes, metadata
/// and sessions.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusInput {}

/// Returns a workspace with its changes, metadata and sessions. Without workspaceId, it is the
/// workspace in which you work; outside of a workspace, your session is returned: its title,
/// directory, mode and status.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MetadataInput {
    /// An id from `workspace_status`.
    workspace_id: Option<String>,
}

/// Changes the metadata of a workspace, for example its title and notes. Returns all its metadata.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SetMetadataInput {
    /// An id from `workspace_status`; the workspace in which you work when it is missing.
    workspace_id: Option<String>,
    /// The values to set, by name; null removes a value.
    metadata: Map<String, Value>,
}

/// Returns what the deletion of a workspace would lose, and deletes nothing. To delete it, ask the
/// user to run: nuncio workspaces delete NAME.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeleteInput {
    /// An id from `workspace_status`.
    workspace_id: String,
}

/// Runs a command line in the directory of your session and returns its output. The rules, the mode
/// and the sandbox of the session apply; the user may be asked for permission.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExecuteInput {
    /// A command line for bash.
    command: String,
    /// Milliseconds after which the command is ended.
    timeout_ms: Option<u64>,
}
