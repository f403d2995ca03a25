//! What a server was shown and what it said: the open documents with their versions, and diagnostics by file. Pure: the caller
//! sends what changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diagnostic::{self, Diagnostic};
use crate::limits;

#[derive(Default)]
pub struct Documents {
    /// The one that was shown last stands last.
    open: Vec<Document>,
    said: HashMap<PathBuf, Said>,
    /// What the server says it works at, with the clock when that began.
    working: HashMap<String, u64>,
    /// Counts what is shown and what is said; never goes back.
    clock: u64,
}

struct Document {
    path: PathBuf,
    /// Rises over closing and opening.
    version: i32,
    text: Arc<str>,
    /// The clock when it was shown.
    shown: u64,
    /// What was last told of it.
    told: Option<Vec<Diagnostic>>,
}

struct Said {
    diagnostics: Vec<Diagnostic>,
    version: Option<i32>,
    clock: u64,
}

/// What the server has to be told.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Open { path: PathBuf, version: i32, text: Arc<str> },
    Edit { path: PathBuf, version: i32, text: Arc<str> },
    Close { path: PathBuf },
}

/// Diagnostics with their place in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub diagnostics: Vec<Diagnostic>,
    pub clock: u64,
    /// The server began some work since the file was shown, a build of it perhaps, and more may come of that.
    pub working: bool,
}

impl Documents {
    /// Makes `text` the content of `path`; nothing changes when it is already.
    pub fn show(&mut self, path: &Path, text: &str) -> Vec<Change> {
        self.clock += 1;
        let (shown, version) = (self.clock, i32::try_from(self.clock).unwrap_or(i32::MAX));
        let path = path.to_owned();
        if let Some(place) = self.open.iter().position(|document| document.path == path) {
            let mut document = self.open.remove(place);
            let same = *document.text == *text;
            if !same {
                (document.version, document.text, document.shown) = (version, text.into(), shown);
            }
            let text = document.text.clone();
            self.open.push(document);
            return if same { Vec::new() } else { vec![Change::Edit { path, version, text }] };
        }
        let mut changes = Vec::new();
        if self.open.len() == limits::LSP_DOCUMENTS_OPEN_MAX {
            changes.extend(self.hide_at(0));
        }
        let text: Arc<str> = text.into();
        self.open.push(Document { path: path.clone(), version, text: text.clone(), shown, told: None });
        changes.push(Change::Open { path, version, text });
        changes
    }

    /// The file is gone.
    pub fn hide(&mut self, path: &Path) -> Option<Change> {
        let place = self.open.iter().position(|document| document.path == path)?;
        self.hide_at(place)
    }

    fn hide_at(&mut self, place: usize) -> Option<Change> {
        let path = self.open.remove(place).path;
        self.said.remove(&path);
        Some(Change::Close { path })
    }

    /// Those that are open, with the content that the server knows.
    pub fn open(&self) -> Vec<(PathBuf, Arc<str>)> {
        self.open.iter().map(|document| (document.path.clone(), document.text.clone())).collect()
    }

    /// Takes what the server says of a file; the last word counts. Of too many files, or of too much in one, the rest is left out.
    pub fn say(&mut self, path: PathBuf, version: Option<i32>, said: Vec<lsp_types::Diagnostic>) {
        self.clock += 1;
        let document = self.open.iter().find(|document| document.path == path);
        if said.is_empty() && document.is_none() {
            self.said.remove(&path);
            return;
        }
        if document.is_none() && !self.said.contains_key(&path) && self.said.len() >= limits::LSP_FILES_MAX {
            return;
        }
        let lines: Vec<&str> = document.iter().flat_map(|document| document.text.lines()).collect();
        let mut diagnostics: Vec<Diagnostic> = said.into_iter().filter_map(|said| Diagnostic::read(&path, &lines, said)).collect();
        diagnostic::sort(&mut diagnostics);
        diagnostics.truncate(limits::LSP_FILE_DIAGNOSTICS_MAX);
        self.said.insert(path, Said { diagnostics, version, clock: self.clock });
    }

    /// What was said of an open file as it is now; none: nothing yet. A server that names no version is taken to speak of the last one.
    pub fn current(&self, path: &Path) -> Option<Known> {
        let document = self.open.iter().find(|document| document.path == path)?;
        let said = self.said.get(path)?;
        let fits = said.version.map_or(said.clock > document.shown, |version| version >= document.version);
        let working = self.working.values().any(|began| *began > document.shown);
        fits.then(|| Known { diagnostics: said.diagnostics.clone(), clock: said.clock, working })
    }

    /// The server begins or ends some work, by a token of its own.
    pub fn work(&mut self, token: String, begins: bool) {
        self.clock += 1;
        if !begins {
            self.working.remove(&token);
        } else if self.working.len() < limits::LSP_WORKS_MAX {
            self.working.insert(token, self.clock);
        }
    }

    /// Notes that `now` was told of the file; gives what was told before.
    pub fn tell(&mut self, path: &Path, now: Vec<Diagnostic>) -> Option<Vec<Diagnostic>> {
        self.open.iter_mut().find(|document| document.path == path)?.told.replace(now)
    }

    /// All that is known, of whatever file.
    pub fn all(&self) -> Vec<Diagnostic> {
        self.said.values().flat_map(|said| said.diagnostics.iter().cloned()).collect()
    }
}
