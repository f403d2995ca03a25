//! Settings of the project's checks (`[verify]`) and of the review of changes (`[review]`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;

/// Default number of runs of the check commands in one turn (`verify.max_rounds`).
const VERIFY_ROUNDS: u32 = 3;

/// The project's checks: the tool `verify`, and the checks after a turn that changed files
/// (docs/VERIFY.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VerifySettings {
    /// Run the check commands, in a sandbox, when the model ends a turn that changed files. If one
    /// fails, the model receives the failing part and continues. Has an effect only in a trusted
    /// directory.
    pub auto: bool,
    /// The check commands, which run in this order in the session's directory. Empty: the commands
    /// that AGENTS.md declares, else `make test` if the Makefile has this target.
    pub commands: Vec<String>,
    /// Also run the commands once before the first call of a turn that edits files or runs a
    /// command. Commands that failed then are named as such when they fail at the end of the turn.
    pub baseline: bool,
    /// Compare what an answer says about checks with the calls in the log, and show a notice about
    /// checks that did not run, ran only before the last change, or failed.
    pub claims: bool,
    /// Refuse to start a turn while the git working tree has uncommitted changes.
    pub require_clean: bool,
    /// Maximum number of runs of the commands in one turn.
    pub max_rounds: u32,
    /// Maximum duration of one command, in seconds.
    #[schemars(range(min = 1))]
    pub timeout_s: u64,
}

impl Default for VerifySettings {
    fn default() -> Self {
        let timeout_s = limits::VERIFY_TIMEOUT.as_secs();
        Self {
            auto: true,
            commands: Vec::new(),
            baseline: false,
            claims: true,
            require_clean: false,
            max_rounds: VERIFY_ROUNDS,
            timeout_s,
        }
    }
}

/// The review of the changes that a turn made to files (docs/VERIFY.md).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewSettings {
    pub mode: ReviewMode,
}

/// The treatment of a turn's changes at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewMode {
    /// Nothing.
    #[default]
    Off,
    /// The user accepts or rejects them: all, by file or by hunk.
    Request,
    /// They are recorded as one review and accepted.
    Auto,
}
