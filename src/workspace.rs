//! Where a session works: its directory, its roots, and the files in them. Says what is inside; who may go outside is decided above.

mod file;
mod ignores;
mod media;
mod roots;
mod transaction;
mod walk;

use std::path::{Path, PathBuf};

pub use file::{open, read_small, read_small_text};
pub use media::{image_type, media_type};
pub use transaction::{FileChange, NotChanged, commit, create_parents};
pub use walk::{Entry, Except, Walk};

/// The directories of a session, without symlinks. Cheap to share, never changes.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// What relative paths are relative to.
    pub cwd: PathBuf,
    /// `cwd`, additional and allowed directories.
    pub roots: Vec<PathBuf>,
    /// The session's own artifacts: readable, although no root.
    pub artifacts: PathBuf,
    /// Its attachments: likewise.
    pub attachments: Option<PathBuf>,
    /// Nuncio's own files: inside a root or not, nobody writes them unasked.
    pub protected: Vec<PathBuf>,
    /// Nuncio's own directories: confined commands read nothing of them.
    pub private: Vec<PathBuf>,
    /// The user's own ignore file of git.
    pub excludes: Option<PathBuf>,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// Paths that were judged already: they lead where they led then.
    judged: Vec<(String, Placed)>,
}

/// Where a path that a model wrote leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Absolute, without `.` and `..`: for showing.
    pub path: PathBuf,
    /// The same without symlinks, as far as it exists: for judging and for opening.
    pub real: PathBuf,
    /// `real` is a root or below one.
    pub inside: bool,
    /// `real` is below the session's artifacts or its attachments.
    pub artifact: bool,
}

impl Workspace {
    /// `cwd` and `roots` are made absolute and free of symlinks as far as they exist.
    pub fn new(cwd: &Path, roots: impl IntoIterator<Item = PathBuf>, artifacts: &Path) -> Workspace {
        let cwd = roots::real(cwd);
        let mut all = vec![cwd.clone()];
        for root in roots {
            let root = roots::real(&cwd.join(root));
            if !all.contains(&root) {
                all.push(root);
            }
        }
        Workspace {
            cwd,
            roots: all,
            artifacts: roots::real(artifacts),
            attachments: None,
            protected: Vec::new(),
            private: Vec::new(),
            excludes: None,
            home: None,
            judged: Vec::new(),
        }
    }

    /// `cwd` and `directories` without symlinks: the roots that the client named.
    pub(crate) fn roots_of(&self, directories: &[PathBuf]) -> Vec<PathBuf> {
        std::iter::once(self.cwd.clone()).chain(directories.iter().map(|path| roots::real(&self.cwd.join(path)))).collect()
    }

    pub fn attachments(mut self, directory: &Path) -> Workspace {
        self.attachments = Some(roots::real(directory));
        self
    }

    pub fn protect(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Workspace {
        self.protected.extend(directories.into_iter().map(|directory| roots::real(&directory)));
        self
    }

    pub fn private(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Workspace {
        self.private.extend(directories.into_iter().map(|directory| roots::real(&directory)));
        self
    }

    pub fn excludes(mut self, file: Option<PathBuf>) -> Workspace {
        self.excludes = file;
        self
    }

    /// Whether a file decides what may be done or is run later unseen: settings of nuncio, hooks and settings of git.
    pub fn is_protected(&self, real: &Path) -> bool {
        let root = self.roots.iter().filter_map(|root| real.strip_prefix(root).ok()).min_by_key(|rest| rest.components().count());
        let kept =
            |part: std::path::Component<'_>| [".nuncio", ".git"].iter().any(|name| part.as_os_str().eq_ignore_ascii_case(name));
        self.protected.iter().any(|own| real.starts_with(own)) || root.is_some_and(|rest| rest.components().any(kept))
    }

    pub fn home(mut self, home: Option<PathBuf>) -> Workspace {
        self.home = home;
        self
    }

    /// The same for one call whose paths were judged: whatever links come in between, it goes where it was allowed to, or nowhere.
    pub fn judged(mut self, paths: impl IntoIterator<Item = (String, Placed)>) -> Workspace {
        self.judged = paths.into_iter().collect();
        self
    }

    /// Where `path` leads: relative to `cwd`, `~` for the home directory. It need not exist.
    pub fn resolve(&self, path: &str) -> Placed {
        if let Some((_, placed)) = self.judged.iter().find(|(judged, _)| judged == path) {
            return placed.clone();
        }
        let written = match (&self.home, path.strip_prefix('~')) {
            (Some(home), Some("")) => home.clone(),
            (Some(home), Some(rest)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => self.cwd.join(path),
        };
        let roots::Followed { path, real, whole } = roots::follow(&written);
        let inside = whole && self.roots.iter().any(|root| real.starts_with(root));
        let own = |directory: &PathBuf| real.starts_with(directory);
        let artifact = whole && (own(&self.artifacts) || self.attachments.as_ref().is_some_and(own));
        Placed { path, real, inside, artifact }
    }

    /// The path as people and models read it: relative to `cwd` when it is below it, with `~` when it is below the home directory, in
    /// one line ([`one_line`]).
    pub fn show(&self, path: &Path) -> String {
        one_line(self.plain(path))
    }

    fn plain(&self, path: &Path) -> String {
        if let Ok(rest) = path.strip_prefix(&self.cwd) {
            return if rest.as_os_str().is_empty() { ".".into() } else { rest.display().to_string() };
        }
        match self.home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
            Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
            _ => path.display().to_string(),
        }
    }
}

/// A name or a path with control characters in it quoted and escaped as Rust does it, so that it stays one line; others as they are.
pub fn one_line(name: String) -> String {
    if name.contains(char::is_control) { format!("{name:?}") } else { name }
}
