//! API keys that `nuncio login` stored: in the user's keyring (Secret Service of freedesktop.org)
//! if the program `secret-tool` reaches one, else in a file with mode 0600.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use crate::config::Environment;
use crate::error::{Error, Result};
use crate::process::{Command, ProcessLauncher, find_program};
use crate::workspace::{lock_files, read_small_text, replace_private};

/// The program that stores secrets in the keyring.
const SECRET_TOOL: &str = "secret-tool";
/// How long the user has to unlock the keyring.
const KEYRING: Duration = Duration::from_secs(60);

/// The stored keys, by provider.
pub(crate) struct StoredKeys {
    file: PathBuf,
    launcher: ProcessLauncher,
    /// The desktop has a session bus, and `secret-tool` is installed.
    has_keyring: bool,
}

/// Where the key of each provider is stored.
pub(crate) type KeyPlaces = BTreeMap<String, StoredKey>;

/// Where a key is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredKey {
    /// In the file itself.
    Key(String),
    /// In the user's keyring.
    Keyring,
}

impl StoredKeys {
    pub(crate) fn new(data: &Path, launcher: ProcessLauncher, environment: &Environment) -> StoredKeys {
        let path = environment.get("PATH").unwrap_or_default();
        let has_bus = environment.get("DBUS_SESSION_BUS_ADDRESS").is_some();
        let has_keyring = has_bus && find_program(SECRET_TOOL, path, Path::new("/")).is_some();
        StoredKeys { file: data.join("keys.json"), launcher, has_keyring }
    }

    /// Returns the providers with a stored key, and where it is. A file that cannot be read counts
    /// as empty; [`StoredKeys::store`] reports it.
    pub(crate) fn list(&self) -> KeyPlaces {
        self.read().unwrap_or_default()
    }

    /// Describes where the key of a provider is stored.
    pub(crate) fn place(&self, key: &StoredKey) -> String {
        match key {
            StoredKey::Key(_) => self.file.display().to_string(),
            StoredKey::Keyring => "the keyring".into(),
        }
    }

    pub(crate) async fn get(&self, provider: &str) -> Result<Option<String>> {
        self.get_from(&self.list(), provider).await
    }

    /// Returns the key of a provider, which is at its place in `stored`.
    pub(super) async fn get_from(&self, stored: &KeyPlaces, provider: &str) -> Result<Option<String>> {
        match stored.get(provider) {
            None => Ok(None),
            Some(StoredKey::Key(key)) => Ok(Some(key.clone())),
            Some(StoredKey::Keyring) => {
                let printed = self.launcher.printed(&self.secret_tool("lookup", provider)).await;
                let failed =
                    |why| Error::invalid_params(format!("reading the key of {provider} from the keyring: {SECRET_TOOL} {why}"));
                printed.map(Some).map_err(|why| failed(why).hint(format!("unlock the keyring, or: nuncio login {provider}")))
            }
        }
    }

    /// Stores the key of a provider, in the keyring if `keyring` is true and there is one. Returns
    /// where it is.
    pub(crate) async fn store(&self, provider: &str, key: &str, keyring: bool) -> Result<StoredKey> {
        // A file that cannot be read is reported before the keyring changes.
        self.read()?;
        let stored = match keyring && self.has_keyring && self.store_in_keyring(provider, key).await {
            true => StoredKey::Keyring,
            false => StoredKey::Key(key.into()),
        };
        let before = self.change(|keys| keys.insert(provider.into(), stored.clone()))?;
        if before == Some(StoredKey::Keyring) && stored != StoredKey::Keyring {
            self.clear(provider).await;
        }
        Ok(stored)
    }

    /// Removes the key of a provider. Returns whether there was one.
    pub(crate) async fn remove(&self, provider: &str) -> Result<bool> {
        if !self.read()?.contains_key(provider) {
            return Ok(false);
        }
        let removed = self.change(|keys| keys.remove(provider))?;
        if removed == Some(StoredKey::Keyring) {
            self.clear(provider).await;
        }
        Ok(removed.is_some())
    }

    /// Stores a key in the keyring. Returns false if the keyring cannot be used.
    async fn store_in_keyring(&self, provider: &str, key: &str) -> bool {
        let Ok((mut child, mut input)) = self.launcher.spawn_piped(&self.secret_tool("store", provider)) else { return false };
        let stored = async {
            input.write_all(key.as_bytes()).await?;
            drop(input);
            Ok::<_, io::Error>(child.wait().await.is_ok_and(|status| status.code == 0))
        };
        let stored = tokio::time::timeout(KEYRING, stored).await;
        matches!(stored, Ok(Ok(true)))
    }

    /// Removes a key from the keyring, which may be locked.
    async fn clear(&self, provider: &str) {
        // Prints nothing, which is an error to `printed`.
        let _ = self.launcher.printed(&self.secret_tool("clear", provider)).await;
    }

    fn secret_tool(&self, action: &str, provider: &str) -> Command {
        let label = format!("--label=nuncio: {provider}");
        let file = self.file.to_string_lossy();
        let label = (action == "store").then_some(label.as_str());
        let words =
            [SECRET_TOOL, action].into_iter().chain(label).chain(["application", "nuncio", "file", &file, "provider", provider]);
        Command::program(words, "/")
    }

    fn read(&self) -> Result<KeyPlaces> {
        let doing = || format!("reading {}", self.file.display());
        match read_small_text(&self.file) {
            // The message of a parser may quote a key.
            Ok(text) => serde_json::from_str(&text).map_err(|_| {
                Error::invalid_params(format!("{}: the content is invalid", doing())).hint("remove the file, and log in again")
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(Error::io(doing(), error)),
        }
    }

    /// Changes the file. Other processes wait while it is read and written.
    fn change<T>(&self, change: impl FnOnce(&mut KeyPlaces) -> T) -> Result<T> {
        let _lock = self.file.parent().map(lock_files).transpose()?;
        let mut keys = self.read()?;
        let changed = change(&mut keys);
        let text = serde_json::to_string_pretty(&keys).map_err(|error| Error::internal(format!("writing keys: {error}")))?;
        let written = replace_private(&self.file, text.as_bytes());
        written.map(|()| changed).map_err(|error| Error::io(format_args!("writing {}", self.file.display()), error))
    }
}
