//! The permission rules of the user's settings, which answers to permission requests add to and
//! which users remove.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::config::{DataPaths, LoadedSettings, Overrides, Rule, retain_rules_for};
use crate::error::{Error, Result};

/// The rules of the user's settings as they are now.
pub(crate) struct UserRules {
    rules: RwLock<Arc<[Rule]>>,
    /// The settings file; `None` if the rules do not come from one.
    file: Option<PathBuf>,
}

impl UserRules {
    pub(super) fn new(user: &LoadedSettings, places: &DataPaths, overrides: &Overrides) -> UserRules {
        let file = overrides.settings.is_none().then(|| places.file.clone());
        UserRules { rules: RwLock::new(user.settings.permissions.rules.as_slice().into()), file }
    }

    /// Returns the rules for sessions in `cwd`.
    pub(crate) fn applying_in(&self, cwd: &Path) -> Vec<Rule> {
        let mut rules = self.rules.read().to_vec();
        retain_rules_for(&mut rules, cwd);
        rules
    }

    /// Returns whether rules can be added and removed.
    pub(crate) fn can_change(&self) -> bool {
        cfg!(feature = "cli") && self.file.is_some()
    }

    /// Adds a rule to the settings file, as the last one. Blocks.
    pub(crate) fn add(&self, rule: Rule) -> Result<()> {
        self.change(|file| add(file, &rule))?;
        let mut rules = self.rules.write();
        *rules = rules.iter().cloned().chain([rule]).collect();
        Ok(())
    }

    /// Removes a rule for a directory from the settings file. Blocks.
    pub(crate) fn remove(&self, rule: &Rule, places: &DataPaths) -> Result<()> {
        if rule.directory.is_none() {
            let hint = "change the other rules in the settings: nuncio config edit";
            return Err(Error::invalid_params("only rules for a directory can be removed").hint(hint));
        }
        self.change(|file| remove(file, rule, places))?;
        let mut rules = self.rules.write();
        *rules = rules.iter().filter(|known| *known != rule).cloned().collect();
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        match &self.file {
            Some(file) => change(file),
            None => Err(Error::invalid_params("the settings are given by the program, and cannot be changed")),
        }
    }
}

#[cfg(feature = "cli")]
use crate::config::settings_file::{add_rule as add, remove_rule as remove};

#[cfg(not(feature = "cli"))]
fn add(_: &Path, _: &Rule) -> Result<()> {
    Err(Error::invalid_params("this build cannot change settings"))
}

#[cfg(not(feature = "cli"))]
fn remove(_: &Path, _: &Rule, _: &DataPaths) -> Result<()> {
    Err(Error::invalid_params("this build cannot change settings"))
}
