//! A session's workspace: its working directory, its roots and the files below them. This module
//! reports whether a path is inside a root; permission rules decide about access outside the roots.

mod file;
mod file_search;
mod ignores;
mod linked;
mod media;
mod new_file;
mod private;
mod repository;
mod roots;
mod strict;
mod transaction;
mod walk;

use std::path::{Path, PathBuf};

pub use file::open;
pub(crate) use file::{decoded, is_read_only, open_regular, read_bounded, read_resolved, read_small, read_small_text};
pub(crate) use file_search::FileSearch;
pub(crate) use linked::linked_git_dirs;
pub(crate) use media::{image_type, is_zip, media_type};
pub(crate) use new_file::{create_first, replace_file};
pub(crate) use private::{create_private, create_private_dir, lock_files, read_private, replace_private, write_private};
pub(crate) use roots::{leads_out, real as followed_path, real_writable};
pub(crate) use transaction::{ChangeFailure, create_parents};
pub use transaction::{FileChange, commit};
pub(crate) use walk::{PathFilter, Walk};

/// Returns a path without symlinks, or unchanged if it does not exist.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.into())
}

/// The directories of a session, free of symlinks.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Base directory for relative paths.
    pub cwd: PathBuf,
    /// `cwd`, the additional directories and the allowed directories.
    pub roots: Vec<PathBuf>,
    /// The roots that the client, a flag or the user's settings name. A program that is confined to
    /// the project can write only below these.
    pub named_roots: Vec<PathBuf>,
    /// The session's artifacts: readable, although not a root.
    pub artifacts: PathBuf,
    /// The session's attachments: readable, although not a root.
    pub attachments: Option<PathBuf>,
    /// Directories of the user's skills: readable, although no roots.
    pub skills: Vec<PathBuf>,
    /// nuncio's own files. Writing them requires permission even inside a root.
    pub protected: Vec<PathBuf>,
    /// nuncio's own directories, which sandboxed commands cannot read.
    pub private: Vec<PathBuf>,
    /// The user's global git ignore file (`core.excludesFile`).
    pub excludes: Option<PathBuf>,
    /// The home directory, which replaces `~` in paths.
    pub home: Option<PathBuf>,
    /// Paths for which permission was checked, each with the result of resolving it.
    resolved: Vec<(String, ResolvedPath)>,
}

/// A resolved path, as [`Workspace::resolve`] returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Absolute, without `.` and `..`. For display.
    pub path: PathBuf,
    /// The path without symlinks, as far as it exists. For permission checks and for opening.
    pub real: PathBuf,
    /// True if `real` is a root or below a root.
    pub inside: bool,
    /// True if `real` is in the session's artifacts or attachments, or in a skill of the user.
    pub artifact: bool,
}

impl Workspace {
    /// Creates a workspace. `cwd` and `roots` are made absolute, and symlinks in them are resolved
    /// as far as they exist.
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
            named_roots: all.clone(),
            roots: all,
            artifacts: roots::real(artifacts),
            attachments: None,
            skills: Vec::new(),
            protected: Vec::new(),
            private: Vec::new(),
            excludes: None,
            home: None,
            resolved: Vec::new(),
        }
    }

    /// Returns `cwd` and `directories` without symlinks: the roots that the client named.
    pub(crate) fn roots_of(&self, directories: &[PathBuf]) -> Vec<PathBuf> {
        std::iter::once(self.cwd.clone()).chain(directories.iter().map(|path| roots::real(&self.cwd.join(path)))).collect()
    }

    /// Restricts the named roots to `cwd` and those `directories` that are roots.
    pub(crate) fn named_roots(mut self, directories: &[PathBuf]) -> Workspace {
        let named = self.roots_of(directories);
        self.named_roots.retain(|root| named.contains(root));
        self
    }

    /// Sets the directory of the session's attachments.
    pub(crate) fn attachments(mut self, directory: &Path) -> Workspace {
        self.attachments = Some(roots::real(directory));
        self
    }

    /// Adds directories whose files tools may read.
    pub(crate) fn readable(mut self, directories: Vec<PathBuf>) -> Workspace {
        self.skills.extend(directories.into_iter().map(|directory| roots::real(&directory)));
        self
    }

    /// Adds files or directories whose modification requires permission.
    pub(crate) fn protect(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Workspace {
        self.protected.extend(directories.into_iter().map(|directory| roots::real(&directory)));
        self
    }

    /// Adds directories that sandboxed commands cannot read.
    pub(crate) fn private(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Workspace {
        self.private.extend(directories.into_iter().map(|directory| roots::real(&directory)));
        self
    }

    /// Sets the user's global git ignore file.
    pub(crate) fn excludes(mut self, file: Option<PathBuf>) -> Workspace {
        self.excludes = file;
        self
    }

    /// Returns whether `real` affects permissions or is executed implicitly: nuncio's settings, and
    /// git's hooks and settings.
    pub(crate) fn is_protected(&self, real: &Path) -> bool {
        let root = self.roots.iter().filter_map(|root| real.strip_prefix(root).ok()).min_by_key(|rest| rest.components().count());
        let protected = |part: std::path::Component<'_>| {
            [".nuncio", ".git", ".hg", ".jj"].iter().any(|name| part.as_os_str().eq_ignore_ascii_case(name))
        };
        // nuncio's worktrees can lie below the directory of its settings.
        let is_root_below =
            |own: &Path| self.roots.iter().any(|root| root != own && root.starts_with(own) && real.starts_with(root));
        let own = self.protected.iter().any(|own| real.starts_with(own) && !is_root_below(own));
        let in_git_dir = || self.roots.iter().any(|root| repository::is_part_of_git_dir(root, real));
        own || root.is_some_and(|rest| rest.components().any(protected)) || in_git_dir()
    }

    /// Returns whether a root is itself a git directory.
    pub(crate) fn has_bare_root(&self) -> bool {
        self.roots.iter().any(|root| repository::git_dir(root).as_ref() == Some(root))
    }

    /// Returns whether git, started in `directory`, uses a repository of the session, one of its
    /// worktrees or submodules, or none.
    pub(crate) fn has_own_repository(&self, directory: &Path) -> bool {
        let Some(found) = repository::git_dir(directory) else { return true };
        let own = self.roots.iter().filter_map(|root| repository::git_dir(root)).map(|git_dir| repository::common_dir(&git_dir));
        own.into_iter().any(|own| found.starts_with(own))
    }

    /// Sets the home directory.
    pub fn home(mut self, home: Option<PathBuf>) -> Workspace {
        self.home = home;
        self
    }

    /// Fixes the resolution of `paths` for one tool call, so that a symlink created after the
    /// permission check cannot redirect them.
    pub(crate) fn with_resolved(mut self, paths: impl IntoIterator<Item = (String, ResolvedPath)>) -> Workspace {
        self.resolved = paths.into_iter().collect();
        self
    }

    /// Resolves `path`: relative to `cwd`, with `~` for the home directory. The path need not
    /// exist.
    pub fn resolve(&self, path: &str) -> ResolvedPath {
        if let Some((_, resolved)) = self.resolved.iter().find(|(known, _)| known == path) {
            return resolved.clone();
        }
        let written = match (&self.home, path.strip_prefix('~')) {
            (Some(home), Some("")) => home.clone(),
            (Some(home), Some(rest)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => self.cwd.join(path),
        };
        let roots::LinkTarget { path, real, complete } = roots::follow(&written);
        let inside = complete && self.roots.iter().any(|root| real.starts_with(root));
        let own = |directory: &PathBuf| real.starts_with(directory);
        let artifact = complete && (own(&self.artifacts) || self.attachments.iter().chain(&self.skills).any(own));
        ResolvedPath { path, real, inside, artifact }
    }

    /// Formats a path for people and models: relative to `cwd` if the path is below `cwd`, with `~`
    /// if it is below the home directory, on one line ([`one_line`]).
    pub fn show(&self, path: &Path) -> String {
        one_line(self.shortened(path))
    }

    fn shortened(&self, path: &Path) -> String {
        if let Ok(rest) = path.strip_prefix(&self.cwd) {
            return if rest.as_os_str().is_empty() { ".".into() } else { rest.display().to_string() };
        }
        match self.home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
            Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
            _ => path.display().to_string(),
        }
    }
}

/// Quotes and escapes a name or path that contains control characters, as Rust's `Debug` does, so
/// that it stays on one line. Other names are returned unchanged.
pub(crate) fn one_line(name: String) -> String {
    if name.contains(char::is_control) { format!("{name:?}") } else { name }
}
