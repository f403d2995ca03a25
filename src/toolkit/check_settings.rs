//! The project's check commands, as the context of tool calls has them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::context::check_commands;
use crate::limits;

/// The check commands that the settings name, and how commands are run.
#[derive(Clone, Debug)]
pub struct CheckSettings {
    pub commands: Arc<[String]>,
    /// The directory is trusted, so AGENTS.md may declare commands.
    pub trusted: bool,
    /// Time limit of each command.
    pub timeout: Duration,
}

impl Default for CheckSettings {
    fn default() -> CheckSettings {
        CheckSettings { commands: Arc::new([]), trusted: false, timeout: limits::VERIFY_TIMEOUT }
    }
}

impl CheckSettings {
    /// The check commands that are known in `cwd`: those of the settings, else those of the
    /// project.
    pub(crate) fn known(&self, cwd: &Path) -> Vec<String> {
        if self.commands.is_empty() { check_commands::find(cwd, self.trusted) } else { self.commands.to_vec() }
    }
}
