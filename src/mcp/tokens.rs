//! The OAuth tokens of MCP servers: a file for each URL, which the processes of nuncio share.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::workspace::{create_private_dir, read_small_text, replace_private};

/// Maximum time to wait until another process has refreshed the tokens of an MCP server.
const MCP_TOKEN_LOCK: Duration = Duration::from_secs(30);
/// Interval of the attempts to lock the tokens of an MCP server.
const MCP_TOKEN_LOCK_POLL: Duration = Duration::from_millis(20);

/// The tokens of all servers.
#[derive(Clone)]
pub struct McpTokens(PathBuf);

/// The tokens of the server at one URL.
#[derive(Clone)]
pub(crate) struct UrlTokens {
    pub(super) url: String,
    file: PathBuf,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct TokenFile {
    url: String,
    credentials: StoredCredentials,
}

impl McpTokens {
    /// Creates the store of the tokens in a directory, which need not exist.
    pub fn new(directory: &Path) -> McpTokens {
        McpTokens(directory.into())
    }

    pub(crate) fn for_url(&self, url: &str) -> UrlTokens {
        let name: String = digest(&SHA256, url.as_bytes()).as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        UrlTokens { url: url.into(), file: self.0.join(name + ".json") }
    }
}

impl UrlTokens {
    /// Returns whether the user has signed in to the server.
    pub(crate) fn exist(&self) -> bool {
        self.file.is_file()
    }

    /// Returns when the tokens were written; `None` if there are none.
    pub(super) fn modified_at(&self) -> Option<SystemTime> {
        self.file.metadata().and_then(|metadata| metadata.modified()).ok()
    }

    /// Removes the tokens. Returns false if there are none.
    pub(crate) fn remove(&self) -> std::io::Result<bool> {
        self.forget_wanted_scopes();
        match std::fs::remove_file(&self.file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the scopes that the next sign-in requests: the granted scopes and the scopes that a
    /// refused request required. Empty if no request was refused.
    pub(super) fn wanted_scopes(&self) -> Vec<String> {
        let Ok(text) = read_small_text(&self.wanted_file()) else { return Vec::new() };
        let granted = self.read().ok().flatten().map(|credentials| credentials.granted_scopes).unwrap_or_default();
        let mut scopes: Vec<String> = Vec::new();
        for scope in granted.into_iter().chain(text.split_whitespace().map(String::from)) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        scopes
    }

    /// Stores a scope, several with blanks between them, for the next sign-in.
    pub(super) fn want(&self, scope: &str) -> Result<(), String> {
        let file = self.wanted_file();
        create_private_dir(file.parent().ok_or("the file has no directory")?).map_err(|error| error.to_string())?;
        let before = read_small_text(&file).unwrap_or_default();
        let new = scope.split_whitespace().filter(|scope| !before.split_whitespace().any(|known| known == *scope));
        let text = before.split_whitespace().chain(new).collect::<Vec<_>>().join(" ");
        replace_private(&file, text.as_bytes()).map_err(|error| error.to_string())
    }

    /// Removes the scopes that [`UrlTokens::want`] stored.
    pub(super) fn forget_wanted_scopes(&self) {
        // Ignore an error: the file may not exist.
        let _ = std::fs::remove_file(self.wanted_file());
    }

    fn wanted_file(&self) -> PathBuf {
        self.file.with_extension("scope")
    }

    fn read(&self) -> Result<Option<StoredCredentials>, String> {
        let text = match read_small_text(&self.file) {
            Ok(text) => text,
            Err(_) if !self.exist() => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let stored: TokenFile = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Ok(Some(stored.credentials).filter(|_| stored.url == self.url))
    }

    fn write(&self, credentials: StoredCredentials) -> Result<(), String> {
        let directory = self.file.parent().ok_or("the file has no directory")?;
        create_private_dir(directory).map_err(|error| error.to_string())?;
        let stored = TokenFile { url: self.url.clone(), credentials };
        let text = serde_json::to_string(&stored).map_err(|error| error.to_string())?;
        replace_private(&self.file, text.as_bytes()).map_err(|error| error.to_string())
    }

    /// Locks the tokens against a refresh by another process, because a refresh token can often be
    /// used only once.
    pub(crate) async fn lock(&self) -> Result<File, String> {
        create_private_dir(self.file.parent().ok_or("the file has no directory")?).map_err(|error| error.to_string())?;
        let file = File::create(self.file.with_extension("lock")).map_err(|error| error.to_string())?;
        let until = Instant::now() + MCP_TOKEN_LOCK;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => sleep(MCP_TOKEN_LOCK_POLL).await,
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn error(&self, doing: &str, why: String) -> AuthError {
        AuthError::CredentialStoreError(format!("{doing} {}: {why}", self.file.display()))
    }
}

impl CredentialStore for UrlTokens {
    fn load<'a, 'f>(&'a self) -> BoxFuture<'f, Result<Option<StoredCredentials>, AuthError>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async { self.read().map_err(|why| self.error("reading", why)) })
    }

    fn save<'a, 'f>(&'a self, credentials: StoredCredentials) -> BoxFuture<'f, Result<(), AuthError>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async { self.write(credentials).map_err(|why| self.error("writing", why)) })
    }

    fn clear<'a, 'f>(&'a self) -> BoxFuture<'f, Result<(), AuthError>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async { self.remove().map(drop).map_err(|error| self.error("removing", error.to_string())) })
    }

    fn acquire_refresh_guard<'a, 'f>(&'a self) -> BoxFuture<'f, Result<Option<CredentialRefreshGuard>, AuthError>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async {
            let locked = self.lock().await.map_err(|why| self.error("locking", why))?;
            Ok(Some(CredentialRefreshGuard::new(locked)))
        })
    }
}
