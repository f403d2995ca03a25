//! Notices in events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How serious a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// No action is needed.
    Info,
    /// The work continues, with a restriction.
    Warning,
    /// Something failed.
    Error,
}

/// Code of the notice about a hook whose failure has no effect.
pub(crate) const HOOK_FAILED: &str = "hook_failed";

/// Code of the notice whose note describes the repository for the model.
pub(crate) const REPOSITORY: &str = "repository";
