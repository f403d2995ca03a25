//! The language servers of a session: chooses the server for a file and queries the file's
//! diagnostics.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::client::LanguageClient;
use super::detect::{self, ServerChoice};
use super::diagnostic::{self, Diagnostic, DiagnosticSeverity};
use super::documents::FileDiagnostics;
use super::server::{Confinement, Launch, Server};
use super::servers::Servers;
use crate::config::{DataPaths, LanguageServer, Trust};
use crate::process::Sandbox;
use crate::task;
use crate::workspace;

/// How long an edit waits for diagnostics.
const LSP_EDIT_WAIT: Duration = Duration::from_secs(2);
/// How long the `diagnostics` tool waits for diagnostics.
const LSP_ASK_WAIT: Duration = Duration::from_secs(10);
/// Maximum size of a file that is sent to a language server, in bytes.
const LSP_DOCUMENT_BYTES_MAX: u64 = 1 << 20;

/// The language servers of one session. Keeps the servers that the session has used alive.
pub struct Languages {
    servers: Arc<Servers>,
    config: LanguageConfig,
    used: Mutex<HashMap<Launch, ServerUse>>,
}

/// Returns the confinement of the server with a name and a command. The sandbox is that of the
/// session's commands, if they have one.
pub(crate) type Confine = Box<dyn Fn(&str, &Launch, Option<&Sandbox>) -> Confinement + Send + Sync>;

/// Configuration that determines the servers of a session.
#[derive(Default)]
pub(crate) struct LanguageConfig {
    /// The settings `[lsp.NAME]`, by name.
    pub settings: BTreeMap<String, LanguageServer>,
    /// Value of the environment variable PATH, in which servers are looked up.
    pub search: String,
    /// Data paths, from which the list of trusted directories is read. In other directories, only
    /// servers named in the settings are started.
    pub places: Option<DataPaths>,
    /// Roots of the session, without symlinks.
    pub roots: Vec<PathBuf>,
    pub confine: Option<Confine>,
}

/// How a server that must be started is confined.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerLimits<'a> {
    /// The sandbox of the session's commands.
    pub sandbox: Option<&'a Sandbox>,
    /// True if the model writes without a permission request, so that it may have written any file
    /// of the project.
    pub unasked: bool,
}

struct ServerUse {
    server: Arc<Server>,
    /// True if the server's failure was reported to the session.
    failure_reported: bool,
}

/// Result of checking a file after an edit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EditDiagnostics {
    /// The diagnostics that the edit added. If `first` is true, nothing was reported for the file
    /// before, and `new` contains all errors in the file.
    Diagnostics { new: Vec<Diagnostic>, first: bool },
    /// The server failed. Returned once per server.
    Broken(String),
}

impl Languages {
    /// Creates the language servers of a session without starting any.
    pub(crate) fn new(servers: Arc<Servers>, config: LanguageConfig) -> Languages {
        Languages { servers, config, used: Mutex::default() }
    }

    /// Checks `path` after an edit. Returns `None` if the file has no server or the server
    /// published nothing within [`LSP_EDIT_WAIT`].
    pub(crate) async fn after_edit(&self, path: &Path, server_limits: ServerLimits<'_>) -> Option<EditDiagnostics> {
        let until = Instant::now() + LSP_EDIT_WAIT;
        let choice = self.choose(path, server_limits).ok()?;
        let server = self.server(&choice).ok()?;
        let client = match server.client(until).await {
            Ok(client) => client?,
            Err(failure) => {
                // Do not report a server that was found on PATH and never worked.
                let report = (choice.configured || failure.worked) && self.mark_reported(&choice);
                return report.then(|| {
                    EditDiagnostics::Broken(format!("the language server {} does not work: {}", choice.name, failure.why))
                });
            }
        };
        let now = check(&client, path, until).await.ok()??;
        let before = client.documents.lock().record(path, now.diagnostics.clone());
        let mut new = match &before {
            Some(before) => diagnostic::new_since(before, &now.diagnostics),
            None => now.diagnostics.into_iter().filter(|diagnostic| diagnostic.severity == DiagnosticSeverity::Error).collect(),
        };
        if let (Some(before), true) = (&before, now.working) {
            diagnostic::remove_stale(before, &mut new);
        }
        Some(EditDiagnostics::Diagnostics { new, first: before.is_none() })
    }

    /// Returns all diagnostics of `path`. Waits for them at most [`LSP_ASK_WAIT`]. The
    /// error contains the cause.
    pub(crate) async fn diagnose(&self, path: &Path, server_limits: ServerLimits<'_>) -> Result<Vec<Diagnostic>, String> {
        let until = Instant::now() + LSP_ASK_WAIT;
        let choice = self.choose(path, server_limits)?;
        let ServerChoice { name, .. } = &choice;
        let server = self.server(&choice)?;
        let client =
            server.client(until).await.map_err(|failure| format!("the language server {name} does not work: {}", failure.why))?;
        let client = client.ok_or_else(|| format!("the language server {name} is still starting; call again later"))?;
        let now = check(&client, path, until).await?;
        let now =
            now.ok_or_else(|| format!("the language server {name} reported nothing for the file in time; call again later"))?;
        client.documents.lock().record(path, now.diagnostics.clone());
        Ok(now.diagnostics)
    }

    /// Returns the diagnostics that this session's servers have published so far for files in the
    /// session's roots.
    pub(crate) fn known(&self) -> Vec<Diagnostic> {
        let used = self.used.lock();
        let clients = used.values().filter_map(|used| used.server.client_now());
        let all = clients.flat_map(|client| client.documents.lock().all());
        all.filter(|diagnostic| self.config.roots.iter().any(|root| diagnostic.file_path.starts_with(root))).collect()
    }

    /// Chooses the server for a file. It is confined if the project names it, in a directory that
    /// is not trusted, and in modes in which the model writes without a question.
    fn choose(&self, path: &Path, server_limits: ServerLimits<'_>) -> Result<ServerChoice, String> {
        let root = self
            .config
            .roots
            .iter()
            .find(|root| path.starts_with(root))
            .ok_or("the file is outside the session's directories; language servers check only files inside them")?;
        let mut choice = detect::choose(&self.config.settings, &self.config.search, root, path)?;
        let root = choice.launch.root.clone();
        // Read the list of trusted directories only if it decides: this runs after each edit.
        let trusted = || self.config.places.as_ref().is_some_and(|places| Trust::load(places).covers(&root));
        if !choice.configured && !trusted() {
            let (command, root) = (&choice.launch.command[0], root.display());
            return Err(format!(
                "{command} is not started here, as it may run code of the project; the user can allow it with `nuncio trust {root}`"
            ));
        }
        let ServerLimits { sandbox, unasked } = server_limits;
        let is_confined = sandbox.is_some() || choice.launch.project.is_some() || unasked || !trusted();
        let confine = self.config.confine.as_ref().filter(|_| is_confined);
        choice.launch.confinement = confine.map(|confine| confine(&choice.name, &choice.launch, sandbox));
        if choice.launch.confinement.is_some() && !Sandbox::is_available() {
            let command = &choice.launch.command[0];
            return Err(format!(
                "{command} is not started: this system cannot confine it, because its kernel has no Landlock, or it is turned off"
            ));
        }
        Ok(choice)
    }

    fn server(&self, choice: &ServerChoice) -> Result<Arc<Server>, String> {
        let mut used = self.used.lock();
        if let Some(used) = used.get(&choice.launch).filter(|used| !used.server.is_stopped()) {
            return Ok(used.server.clone());
        }
        used.retain(|_, used| !used.server.is_stopped());
        let server = self.servers.server(&choice.launch)?;
        used.insert(choice.launch.clone(), ServerUse { server: server.clone(), failure_reported: false });
        Ok(server)
    }

    /// Marks the failure of a server as reported. Returns false if it was reported before.
    fn mark_reported(&self, choice: &ServerChoice) -> bool {
        let mut used = self.used.lock();
        used.get_mut(&choice.launch).is_some_and(|used| !std::mem::replace(&mut used.failure_reported, true))
    }
}

/// Checks `path` with its content on disk. First sends the new content of other open documents that
/// changed on disk.
async fn check(client: &LanguageClient, path: &Path, until: Instant) -> Result<Option<FileDiagnostics>, String> {
    let (open, requested) = (client.documents.lock().open(), path.to_owned());
    let read_files = task::blocking("reading the file", move || {
        let others = open.into_iter().filter(|(path, _)| *path != requested);
        let changed = others.filter_map(|(path, known)| match read(&path) {
            Ok(text) if *text == *known => None,
            read => Some((path, read.ok())),
        });
        (changed.collect::<Vec<_>>(), read(&requested))
    });
    let (changed, text) = read_files.await.map_err(|error| error.message)?;
    for (path, text) in changed {
        client.refresh(&path, text.as_deref())?;
    }
    client.check(path, &text?, until).await
}

fn read(path: &Path) -> Result<String, String> {
    let read = || {
        let mut text = String::new();
        workspace::open(path)?.take(LSP_DOCUMENT_BYTES_MAX + 1).read_to_string(&mut text).map(|_| text)
    };
    match read() {
        Ok(text) if text.len() as u64 > LSP_DOCUMENT_BYTES_MAX => {
            Err(format!("the file has more than {} MiB", LSP_DOCUMENT_BYTES_MAX >> 20))
        }
        Ok(text) => Ok(text),
        Err(error) => Err(format!("reading the file: {error}")),
    }
}
