//! The result of a check command (`verify`).

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A check command that ended.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CheckResult {
    /// The command line.
    pub command: String,
    /// The command exited with 0.
    pub passed: bool,
    /// Absent if the command was ended because it exceeded the time limit.
    pub exit_code: Option<i32>,
    /// How long the command ran, in milliseconds.
    pub duration_ms: u64,
    /// The file with the whole output; absent without output.
    pub artifact: Option<PathBuf>,
}
