//! State of the connection to a language server: the open documents with their versions, and the
//! published diagnostics. This module performs no I/O: the caller sends the changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diagnostic::{self, Diagnostic};

/// Maximum number of documents that are open in one language server.
const LSP_DOCUMENTS_OPEN_MAX: usize = 16;
/// Maximum number of files whose diagnostics are kept.
const LSP_FILES_MAX: usize = 500;
/// Maximum number of diagnostics that are kept for one file.
const LSP_FILE_DIAGNOSTICS_MAX: usize = 100;
/// Maximum number of concurrent progress reports that are tracked for one language server.
const LSP_WORKS_MAX: usize = 64;

/// Open documents and published diagnostics of one server.
#[derive(Default)]
pub(crate) struct Documents {
    /// Open documents; the most recently used is last.
    open: Vec<Document>,
    published: HashMap<PathBuf, PublishedDiagnostics>,
    /// Logical time at which each work item reported by the server began, by progress token.
    working: HashMap<String, u64>,
    /// Logical clock: increases with every change, publication and progress report.
    clock: u64,
}

struct Document {
    path: PathBuf,
    /// Increases with every change, even if the document is closed and opened again.
    version: i32,
    text: Arc<str>,
    /// Logical time of the last change to the content.
    changed: u64,
    /// The diagnostics that were last reported to the session.
    reported: Option<Vec<Diagnostic>>,
}

struct PublishedDiagnostics {
    diagnostics: Vec<Diagnostic>,
    version: Option<i32>,
    clock: u64,
}

/// A change that must be sent to the server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DocumentChange {
    Open { path: PathBuf, version: i32, text: Arc<str> },
    Edit { path: PathBuf, version: i32, text: Arc<str> },
    Close { path: PathBuf },
}

/// The diagnostics of a file at one point in time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileDiagnostics {
    /// Sorted by severity and position.
    pub diagnostics: Vec<Diagnostic>,
    /// Logical time of their publication.
    pub clock: u64,
    /// True if the server started work after the file changed, e.g. a build, and may publish more
    /// diagnostics.
    pub working: bool,
}

impl Documents {
    /// Sets the content of `path` and returns the changes to send: none if the content is the same.
    pub(crate) fn set_content(&mut self, path: &Path, text: &str) -> Vec<DocumentChange> {
        self.clock += 1;
        let (changed, version) = (self.clock, i32::try_from(self.clock).unwrap_or(i32::MAX));
        let path = path.to_owned();
        if let Some(place) = self.open.iter().position(|document| document.path == path) {
            let mut document = self.open.remove(place);
            let same = *document.text == *text;
            if !same {
                (document.version, document.text, document.changed) = (version, text.into(), changed);
            }
            let text = document.text.clone();
            self.open.push(document);
            return if same { Vec::new() } else { vec![DocumentChange::Edit { path, version, text }] };
        }
        let mut changes = Vec::new();
        if self.open.len() == LSP_DOCUMENTS_OPEN_MAX {
            changes.extend(self.close_at(0));
        }
        let text: Arc<str> = text.into();
        self.open.push(Document { path: path.clone(), version, text: text.clone(), changed, reported: None });
        changes.push(DocumentChange::Open { path, version, text });
        changes
    }

    /// Closes the document of `path`, if it is open.
    pub(crate) fn close(&mut self, path: &Path) -> Option<DocumentChange> {
        let place = self.open.iter().position(|document| document.path == path)?;
        self.close_at(place)
    }

    fn close_at(&mut self, place: usize) -> Option<DocumentChange> {
        let path = self.open.remove(place).path;
        self.published.remove(&path);
        Some(DocumentChange::Close { path })
    }

    /// Returns the open documents with the content that was sent to the server.
    pub(crate) fn open(&self) -> Vec<(PathBuf, Arc<str>)> {
        self.open.iter().map(|document| (document.path.clone(), document.text.clone())).collect()
    }

    /// Records the diagnostics of a file and replaces earlier ones. Ignores files and diagnostics
    /// beyond the limits.
    pub(crate) fn publish(&mut self, path: PathBuf, version: Option<i32>, diagnostics: Vec<lsp_types::Diagnostic>) {
        self.clock += 1;
        let document = self.open.iter().find(|document| document.path == path);
        if diagnostics.is_empty() && document.is_none() {
            self.published.remove(&path);
            return;
        }
        if document.is_none() && !self.published.contains_key(&path) && self.published.len() >= LSP_FILES_MAX {
            return;
        }
        let lines: Vec<&str> = document.iter().flat_map(|document| document.text.lines()).collect();
        let mut diagnostics: Vec<Diagnostic> =
            diagnostics.into_iter().filter_map(|raw| Diagnostic::read(&path, &lines, raw)).collect();
        diagnostic::sort(&mut diagnostics);
        diagnostics.truncate(LSP_FILE_DIAGNOSTICS_MAX);
        self.published.insert(path, PublishedDiagnostics { diagnostics, version, clock: self.clock });
    }

    /// Returns the diagnostics for the current content of an open file, or `None` if there are none
    /// so far. Diagnostics without a version count as current if they were published after the last
    /// change.
    pub(crate) fn current(&self, path: &Path) -> Option<FileDiagnostics> {
        let document = self.open.iter().find(|document| document.path == path)?;
        let published = self.published.get(path)?;
        let current = published.version.map_or(published.clock > document.changed, |version| version >= document.version);
        let working = self.working.values().any(|began| *began > document.changed);
        current.then(|| FileDiagnostics { diagnostics: published.diagnostics.clone(), clock: published.clock, working })
    }

    /// Records that the server began or ended the work item with this progress token.
    pub(crate) fn progress(&mut self, token: String, begins: bool) {
        self.clock += 1;
        if !begins {
            self.working.remove(&token);
        } else if self.working.len() < LSP_WORKS_MAX {
            self.working.insert(token, self.clock);
        }
    }

    /// Records `now` as reported for the file. Returns the diagnostics reported before.
    pub(crate) fn record(&mut self, path: &Path, now: Vec<Diagnostic>) -> Option<Vec<Diagnostic>> {
        self.open.iter_mut().find(|document| document.path == path)?.reported.replace(now)
    }

    /// Returns all published diagnostics of all files.
    pub(crate) fn all(&self) -> Vec<Diagnostic> {
        self.published.values().flat_map(|published| published.diagnostics.iter().cloned()).collect()
    }
}
