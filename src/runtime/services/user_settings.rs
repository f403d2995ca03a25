//! The user's settings in this process: as they were read when it started, and after each change
//! that it made to them itself.

use std::ops::Deref;
use std::sync::OnceLock;

use crate::config::LoadedSettings;

/// The user's settings. Sessions use those that are current when they read them.
pub struct UserSettings {
    first: SettingsVersion,
}

/// Earlier versions stay in memory, because they may be in use.
struct SettingsVersion {
    loaded: LoadedSettings,
    next: OnceLock<Box<SettingsVersion>>,
}

impl UserSettings {
    pub(super) fn new(loaded: LoadedSettings) -> UserSettings {
        UserSettings { first: SettingsVersion { loaded, next: OnceLock::new() } }
    }

    fn last(&self) -> &SettingsVersion {
        let mut version = &self.first;
        while let Some(next) = version.next.get() {
            version = next;
        }
        version
    }

    /// Replaces the settings from now on.
    pub(super) fn replace(&self, loaded: LoadedSettings) {
        let mut added = Box::new(SettingsVersion { loaded, next: OnceLock::new() });
        while let Err(refused) = self.last().next.set(added) {
            added = refused;
        }
    }
}

impl Deref for UserSettings {
    type Target = LoadedSettings;

    fn deref(&self) -> &LoadedSettings {
        &self.last().loaded
    }
}
