//! Changes of the user's settings file by clients.

#[cfg(feature = "cli")]
use std::path::Path;

use super::Services;
#[cfg(feature = "cli")]
use crate::config::load_user;
use crate::config::{LoadedSettings, McpServer, Rule};
use crate::error::{Error, Result};

/// A change of the user's settings file.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) enum SettingsChange {
    /// Sets the default model; `None` removes it.
    Model(Option<String>),
    AddServer(String, Box<McpServer>),
    RemoveServer(String),
    AddRule(Rule),
    RemoveRule(Rule),
}

impl Services {
    /// Returns whether the user's settings are in a file that this process can change.
    pub(crate) fn can_change_settings(&self) -> bool {
        self.user_rules.can_change()
    }

    /// Changes the user's settings file, and uses the new settings from now on. A change with which
    /// sessions would fail is undone. Blocks.
    pub(crate) fn change_settings(&self, change: SettingsChange) -> Result<()> {
        if !self.can_change_settings() {
            return Err(Error::invalid_params("this process has no settings file that it can change"));
        }
        let mut loaded = write(self, change)?;
        loaded.settings.store = self.user.settings.store.clone();
        self.user_rules.replace(&loaded.settings.permissions.rules);
        self.user.replace(loaded);
        Ok(())
    }
}

#[cfg(feature = "cli")]
fn write(services: &Services, change: SettingsChange) -> Result<LoadedSettings> {
    use crate::config::settings_file::{replace_if, text};
    let file = &services.places.file;
    let before = text(file)?.unwrap_or_default();
    apply(services, change)?;
    let read = || {
        let loaded = load_user(&services.places, false, &services.environment, &services.overrides)?;
        loaded.check_tools(&services.tools.known(), &services.places, Path::new("/"))?;
        Ok(loaded)
    };
    read().inspect_err(|_| {
        let undone = text(file).and_then(|after| replace_if(file, after.as_deref(), &before));
        if let Err(error) = undone {
            tracing::warn!(%error, "a change of the settings was not undone");
        }
    })
}

#[cfg(feature = "cli")]
fn apply(services: &Services, change: SettingsChange) -> Result<()> {
    use crate::config::server_file::{add_server, remove_server};
    use crate::config::settings_file::{SettingsFile, add_rule, remove_rule};
    let file = &services.places.file;
    match change {
        SettingsChange::Model(model) => {
            let mut settings = SettingsFile::read(file)?;
            match model {
                Some(model) => settings.set("model", model.into()),
                None => settings.unset("model").and_then(|_| settings.save()),
            }
        }
        SettingsChange::AddServer(name, server) => add_server(file, &name, &server),
        SettingsChange::RemoveServer(name) => remove_server(file, &name),
        SettingsChange::AddRule(rule) => add_rule(file, &rule),
        SettingsChange::RemoveRule(rule) => match remove_rule(file, &rule, &services.places)? {
            true => Ok(()),
            false => Err(Error::not_found(format!("{} does not have this rule", file.display()))),
        },
    }
}

#[cfg(not(feature = "cli"))]
fn write(_: &Services, _: SettingsChange) -> Result<LoadedSettings> {
    Err(Error::invalid_params("this build cannot change settings"))
}
