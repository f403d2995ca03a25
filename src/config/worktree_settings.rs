//! Settings of workspaces (`[worktree]`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The preparation of new git worktrees (docs/WORKSPACES.md). `copy` and `setup` have an effect
/// only in a trusted repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorktreeSettings {
    /// Files that git does not track and that are copied to a new worktree, relative to the
    /// repository: `[".env"]`.
    pub copy: Vec<String>,
    /// Commands that run in this order in a new worktree: `["npm ci"]`.
    pub setup: Vec<String>,
    /// Days after its last use when a worktree is deleted, if it has no uncommitted changes, no
    /// commits of a detached HEAD, and nothing runs in it. 0: never.
    pub retention_days: u64,
}
