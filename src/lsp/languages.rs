//! A session's view of the language servers: which one a file has, and what it says of the file.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::Servers;
use super::client::Client;
use super::detect::{self, Choice};
use super::diagnostic::{self, Diagnostic, Severity};
use super::documents::Known;
use super::server::{Launch, Server};
use crate::config::{LanguageServer, Places, Trust};
use crate::limits;
use crate::process::Sandbox;
use crate::workspace;

/// The language servers of one session, which holds those that it used.
pub struct Languages {
    servers: Arc<Servers>,
    terms: Terms,
    used: Mutex<HashMap<Launch, Used>>,
}

/// What decides which servers a session has.
#[derive(Default)]
pub struct Terms {
    /// `[lsp.NAME]`.
    pub settings: BTreeMap<String, LanguageServer>,
    /// The variable PATH.
    pub search: String,
    /// Knows which directories are trusted: elsewhere, nothing is started that the user's settings do not name.
    pub places: Option<Places>,
    /// Without symlinks.
    pub roots: Vec<PathBuf>,
}

struct Used {
    server: Arc<Server>,
    /// It was told that it does not work any more.
    mourned: bool,
}

/// What an edit brought.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Not there before; where nothing was known of the file before, all errors in it.
    Diagnostics { new: Vec<Diagnostic>, first: bool },
    /// A server that should work does not; told once.
    Broken(String),
}

impl Languages {
    pub fn new(servers: Arc<Servers>, terms: Terms) -> Languages {
        Languages { servers, terms, used: Mutex::default() }
    }

    /// What an edit of `path` brought; a server that it needs is confined to `sandbox`. None: there is no server for it, or it said nothing within [`limits::LSP_EDIT_WAIT`].
    pub async fn after_edit(&self, path: &Path, sandbox: Option<&Sandbox>) -> Option<News> {
        let until = Instant::now() + limits::LSP_EDIT_WAIT;
        let choice = self.choose(path, sandbox).ok()?;
        let server = self.server(&choice).ok()?;
        let client = match server.client(until).await {
            Ok(client) => client?,
            Err(given_up) => {
                // One that was only found, and never worked, is as good as not there.
                let missed = (choice.configured || given_up.worked) && self.mourn(&choice);
                return missed
                    .then(|| News::Broken(format!("the language server {} does not work: {}", choice.name, given_up.why)));
            }
        };
        let now = check(&client, path, until).await.ok()??;
        let before = client.documents().tell(path, now.diagnostics.clone());
        let mut new = match &before {
            Some(before) => diagnostic::new_since(before, &now.diagnostics),
            None => now.diagnostics.into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error).collect(),
        };
        if let (Some(before), true) = (&before, now.working) {
            diagnostic::leave_out_stale(before, &mut new);
        }
        Some(News::Diagnostics { new, first: before.is_none() })
    }

    /// All that is wrong with `path` now, as far as it is known within [`limits::LSP_ASK_WAIT`]. The error says why it is not. A server
    /// that it needs is confined to `sandbox`.
    pub async fn diagnose(&self, path: &Path, sandbox: Option<&Sandbox>) -> Result<Vec<Diagnostic>, String> {
        let until = Instant::now() + limits::LSP_ASK_WAIT;
        let choice = self.choose(path, sandbox)?;
        let Choice { name, .. } = &choice;
        let server = self.server(&choice)?;
        let client =
            server.client(until).await.map_err(|given_up| format!("the language server {name} does not work: {}", given_up.why))?;
        let client = client.ok_or_else(|| format!("the language server {name} is still starting; call again later"))?;
        let now = check(&client, path, until).await?;
        let now = now.ok_or_else(|| format!("the language server {name} said nothing of the file; call again later"))?;
        client.documents().tell(path, now.diagnostics.clone());
        Ok(now.diagnostics)
    }

    /// What the servers that this session used have said so far, of files in its roots.
    pub fn known(&self) -> Vec<Diagnostic> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let clients = used.values().filter_map(|used| used.server.client_now());
        let all = clients.flat_map(|client| client.documents().all());
        all.filter(|diagnostic| self.terms.roots.iter().any(|root| diagnostic.file_path.starts_with(root))).collect()
    }

    fn choose(&self, path: &Path, sandbox: Option<&Sandbox>) -> Result<Choice, String> {
        let root = self
            .terms
            .roots
            .iter()
            .find(|root| path.starts_with(root))
            .ok_or("language servers look at files in the roots only")?;
        let mut choice = detect::choose(&self.terms.settings, &self.terms.search, root, path)?;
        let trusted = || self.terms.places.as_ref().is_some_and(|places| Trust::load(places).covers(&choice.launch.root));
        if !choice.configured && !trusted() {
            let (command, root) = (&choice.launch.command[0], choice.launch.root.display());
            return Err(format!(
                "{command} is not started here, as it may run code of the project; the user can allow it with `nuncio trust {root}`"
            ));
        }
        choice.launch.sandbox = sandbox.cloned();
        Ok(choice)
    }

    fn server(&self, choice: &Choice) -> Result<Arc<Server>, String> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = used.get(&choice.launch) {
            return Ok(used.server.clone());
        }
        let server = self.servers.server(&choice.launch)?;
        used.insert(choice.launch.clone(), Used { server: server.clone(), mourned: false });
        Ok(server)
    }

    /// False: it was told already.
    fn mourn(&self, choice: &Choice) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.get_mut(&choice.launch).is_some_and(|used| !std::mem::replace(&mut used.mourned, true))
    }
}

/// Has the server look at `path` as it is on the disk, and first at what else it holds open and changed there.
async fn check(client: &Client, path: &Path, until: Instant) -> Result<Option<Known>, String> {
    let (open, wanted) = (client.documents().open(), path.to_owned());
    let looked = tokio::task::spawn_blocking(move || {
        let others = open.into_iter().filter(|(path, _)| *path != wanted);
        let changed = others.filter_map(|(path, known)| match read(&path) {
            Ok(text) if *text == *known => None,
            read => Some((path, read.ok())),
        });
        (changed.collect::<Vec<_>>(), read(&wanted))
    });
    let (changed, text) = looked.await.map_err(|_| "looking at the file broke".to_string())?;
    for (path, text) in changed {
        client.refresh(&path, text.as_deref())?;
    }
    client.check(path, &text?, until).await
}

fn read(path: &Path) -> Result<String, String> {
    let read = || {
        let mut text = String::new();
        workspace::open(path)?.take(limits::LSP_DOCUMENT_BYTES_MAX + 1).read_to_string(&mut text).map(|_| text)
    };
    match read() {
        Ok(text) if text.len() as u64 > limits::LSP_DOCUMENT_BYTES_MAX => {
            Err(format!("the file has more than {} MiB", limits::LSP_DOCUMENT_BYTES_MAX >> 20))
        }
        Ok(text) => Ok(text),
        Err(error) => Err(format!("reading the file: {error}")),
    }
}
