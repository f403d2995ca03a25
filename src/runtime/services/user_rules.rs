//! The permission rules of the user's settings, which answers to permission requests add to and
//! which users remove, also in other processes.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::config::{DataPaths, LoadedSettings, Overrides, Rule, exact_rules, retain_rules_for};
use crate::error::{Error, Result};

/// The rules of the user's settings as they are now.
pub(crate) struct UserRules {
    rules: Mutex<KnownRules>,
    /// The settings file and what it is relative to; `None` if the rules do not come from one.
    places: Option<DataPaths>,
}

struct KnownRules {
    rules: Arc<[Rule]>,
    /// Modification time and size of the settings file when its exact rules were compared.
    stamp: Option<(SystemTime, u64)>,
}

impl UserRules {
    pub(super) fn new(user: &LoadedSettings, places: &DataPaths, overrides: &Overrides) -> UserRules {
        let places = overrides.settings.is_none().then(|| places.clone());
        let rules = user.settings.permissions.rules.as_slice().into();
        UserRules { rules: Mutex::new(KnownRules { rules, stamp: None }), places }
    }

    /// Returns the rules for sessions in `cwd`.
    pub(crate) fn applying_in(&self, cwd: &Path) -> Vec<Rule> {
        self.refresh();
        let mut rules = self.rules.lock().rules.to_vec();
        retain_rules_for(&mut rules, cwd);
        rules
    }

    /// Returns whether rules can be added and removed.
    pub(crate) fn can_change(&self) -> bool {
        cfg!(feature = "cli") && self.places.is_some()
    }

    /// Adds a rule to the settings file, as the last one. Blocks.
    pub(crate) fn add(&self, rule: Rule) -> Result<()> {
        if self.rules.lock().rules.contains(&rule) {
            return Ok(());
        }
        add(&self.changeable()?.file, &rule)?;
        let mut known = self.rules.lock();
        known.rules = known.rules.iter().cloned().chain([rule]).collect();
        Ok(())
    }

    /// Replaces all rules by those of settings that were read again.
    pub(super) fn replace(&self, rules: &[Rule]) {
        *self.rules.lock() = KnownRules { rules: rules.into(), stamp: None };
    }

    /// Removes a rule for a directory from the settings file. Blocks.
    pub(crate) fn remove(&self, rule: &Rule) -> Result<()> {
        if rule.directory.is_none() {
            let hint = "change the other rules in the settings: nuncio config edit";
            return Err(Error::invalid_params("only rules for a directory can be removed").hint(hint));
        }
        let places = self.changeable()?;
        let was_known = self.drop_rules(|known| known == rule);
        match remove(&places.file, rule, places)? || was_known {
            true => Ok(()),
            false => Err(Error::not_found(format!("{} does not have this rule", places.file.display()))),
        }
    }

    /// Takes over the exact rules of the settings file if it has changed, because another process
    /// may have removed some. Nothing is read as long as there are none.
    fn refresh(&self) {
        let Some(places) = self.places.as_ref().filter(|_| self.rules.lock().rules.iter().any(Rule::is_exact)) else { return };
        let stamp = std::fs::metadata(&places.file).ok().and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())));
        if std::mem::replace(&mut self.rules.lock().stamp, stamp) == stamp && stamp.is_some() {
            return;
        }
        // A file that cannot be read has no rules: they allow.
        let kept = exact_rules(places).unwrap_or_default();
        let mut known = self.rules.lock();
        let others = known.rules.iter().filter(|rule| !rule.is_exact()).cloned();
        known.rules = others.chain(kept).collect();
    }

    /// Drops rules from memory. Returns whether there were any.
    fn drop_rules(&self, drops: impl Fn(&Rule) -> bool) -> bool {
        let mut known = self.rules.lock();
        let before = known.rules.len();
        known.rules = known.rules.iter().filter(|rule| !drops(rule)).cloned().collect();
        known.rules.len() < before
    }

    fn changeable(&self) -> Result<&DataPaths> {
        let given = || Error::invalid_params("the settings are given by the program, and cannot be changed");
        self.places.as_ref().ok_or_else(given)
    }
}

#[cfg(feature = "cli")]
use crate::config::settings_file::{add_rule as add, remove_rule as remove};

#[cfg(not(feature = "cli"))]
fn add(_: &Path, _: &Rule) -> Result<()> {
    Err(Error::invalid_params("this build cannot change settings"))
}

#[cfg(not(feature = "cli"))]
fn remove(_: &Path, _: &Rule, _: &DataPaths) -> Result<bool> {
    Err(Error::invalid_params("this build cannot change settings"))
}
