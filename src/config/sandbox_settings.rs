//! The section `[sandbox]`: confinement of commands.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Confinement of the commands that nuncio runs (Linux, with Landlock and seccomp).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSettings {
    /// Default: `workspace-write` in the session mode `auto`, `off` in the other modes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SandboxMode>,
    /// Allow commands to use TCP and UDP. Unix sockets are always blocked.
    pub network: bool,
    /// Directories that commands may write to with `workspace-write`, in addition to the roots.
    pub writable: Vec<PathBuf>,
    /// Allow commands to change git's configuration, hooks, and the references between git
    /// directories and working trees. These files decide which programs your own git runs.
    pub git_config: bool,
}

/// Modes of the sandbox, from the least to the most restrictive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Commands are not confined.
    Off,
    /// Commands can write below the roots and in a private temporary directory.
    WorkspaceWrite,
    /// Commands can write only in a private temporary directory.
    ReadOnly,
}
