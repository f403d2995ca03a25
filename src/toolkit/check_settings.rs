//! The project's check commands, as the context of tool calls has them.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{DataPaths, Trust, VerifySettings};
use crate::context::check_commands;
use crate::limits;

/// The check commands that the settings name, and how commands are run.
#[derive(Clone, Debug)]
pub struct CheckSettings {
    pub commands: Arc<[String]>,
    /// True if the directory is trusted, so that AGENTS.md may declare commands.
    pub trusted: bool,
    /// Time limit of each command.
    pub timeout: Duration,
    /// The commands of the project when the session began, or when the directory was trusted.
    pub initial: Arc<[String]>,
}

/// The confinement of checks that nuncio runs by itself, in addition to the sandbox of the call.
#[derive(Clone, Debug)]
pub struct CheckConfinement {
    /// Environment variables.
    pub variables: Vec<(&'static str, OsString)>,
    /// A sentence for the text about failures.
    pub hint: String,
}

impl Default for CheckSettings {
    fn default() -> CheckSettings {
        let commands: Arc<[String]> = Arc::new([]);
        CheckSettings { initial: commands.clone(), commands, trusted: false, timeout: limits::VERIFY_TIMEOUT }
    }
}

impl CheckSettings {
    /// Creates the settings of a session in `cwd`; see [`CheckSettings::started`].
    pub(crate) fn new(verify: &VerifySettings, places: &DataPaths, cwd: &Path, before: Option<&CheckSettings>) -> CheckSettings {
        let (trust, timeout) = (Trust::load(places), Duration::from_secs(verify.timeout_s.max(1)));
        let trusted = trust.covers(cwd);
        let settings = CheckSettings { commands: verify.commands.as_slice().into(), trusted, timeout, ..CheckSettings::default() };
        settings.started(cwd, before, &trust.trusted_checks(places, cwd))
    }

    /// Finds the commands of the project in `cwd`, of those that AGENTS.md declares only the ones
    /// that were trusted. Those of `before` remain, unless its directory has been trusted since
    /// then.
    fn started(self, cwd: &Path, before: Option<&CheckSettings>, trusted: &[String]) -> CheckSettings {
        let initial = match before.filter(|before| before.trusted == self.trusted) {
            Some(before) => before.initial.clone(),
            None => {
                let undeclared = check_commands::find(cwd, false);
                let mut commands = check_commands::find(cwd, self.trusted);
                commands.retain(|one| undeclared.contains(one) || trusted.contains(one));
                commands.into()
            }
        };
        CheckSettings { initial, ..self }
    }

    /// Returns the commands that nuncio runs by itself: the commands of the settings, else the
    /// commands that the project had at the start, followed by commands that were added to the
    /// project since then. The model may have written the added commands; the returned flag tells
    /// whether there are any.
    pub(crate) fn automatic(&self, cwd: &Path) -> (Vec<String>, bool) {
        if !self.commands.is_empty() {
            return (self.commands.to_vec(), false);
        }
        let mut commands = self.initial.to_vec();
        commands.extend(check_commands::find(cwd, self.trusted).into_iter().filter(|command| !self.initial.contains(command)));
        let changed = commands.len() > self.initial.len();
        (commands, changed)
    }

    /// Returns the check commands that are known in `cwd`: the commands of the settings, else the
    /// commands of the project.
    pub(crate) fn known(&self, cwd: &Path) -> Vec<String> {
        if self.commands.is_empty() { check_commands::find(cwd, self.trusted) } else { self.commands.to_vec() }
    }
}
