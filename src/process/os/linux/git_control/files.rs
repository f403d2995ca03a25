//! Finds control files: which directory is one of git is decided by its name, and by what names it.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::super::entry::{CONTROL_FILES_BYTES_MAX, open_file};
use super::memory;
use super::placeholder::Placeholder;
use crate::limits;
use crate::process::Sandbox;

/// Maximum nesting of submodules whose control files are protected; deeper ones are read-only.
const GIT_MODULES_DEPTH_MAX: usize = 5;

/// Directory with the settings of a project.
pub(super) const SETTINGS: &str = ".nuncio";

/// Names below a root that are git directories, or name one, in every state.
const GIT_NAMES: [&str; 2] = [".git", ".bare"];

/// Directories of other version control systems in a root, and the files in them that decide which
/// programs those run: Mercurial (hgrc(5)), Jujutsu.
const OTHERS: [(&str, &[&str]); 2] =
    [(".hg", &["hgrc", "hgrc-not-shared", "requires", "sharedpath"]), (".jj", &["repo/config.toml", "workspace-config.toml"])];

/// A path that commands must not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ControlFile {
    pub path: PathBuf,
    pub placeholder: Placeholder,
    pub extent: Extent,
}

/// The part of a directory that is read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// A file, or a directory with all that it contains.
    All,
    /// Like [`Extent::All`], for a directory that is not a complete git directory.
    Incomplete,
    /// A directory without the directories in it that are writable roots.
    ExceptRoots,
}

/// The control files below the directories that a command may write to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::process::os::linux) struct ControlFiles {
    /// Directories below which the command may write.
    pub(super) tops: Vec<PathBuf>,
    pub(super) files: Vec<ControlFile>,
    /// Directories by which git recognizes a repository. They can be written to, but not renamed.
    pub(super) kept: Vec<PathBuf>,
    /// The complete git directories, which may need placeholders.
    pub(super) git_dirs: Vec<PathBuf>,
    /// Directories in which control files can appear or be replaced, and whether every name in the
    /// directory can be one.
    pub(super) watched: Vec<(PathBuf, bool)>,
    /// Paths that name a repository or settings and do not exist.
    pub(super) absent: Vec<PathBuf>,
    /// The reason why the state of a path is not known: the command must not run.
    pub(super) unknown: Option<String>,
}

/// Names of the control files of a repository's own git directory. A `commondir` that names the
/// directory itself changes nothing for git.
const SHARED: [(&str, Placeholder); 4] = [
    ("config", Placeholder::Text("")),
    ("config.worktree", Placeholder::Text("")),
    ("hooks", Placeholder::Directory),
    ("commondir", Placeholder::Text(".\n")),
];

/// Names of the control files in `worktrees/ID`, the git directory of a linked worktree.
const LINKED: [(&str, Placeholder); 3] =
    [("commondir", Placeholder::No), ("gitdir", Placeholder::No), ("config.worktree", Placeholder::Text(""))];

/// The state of a directory that is, or was, a git directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GitDirState {
    /// A repository's own directory.
    Shared,
    /// The directory of a linked worktree, `worktrees/ID`.
    Linked,
    /// Git does not recognize it, or it cannot be read.
    Incomplete,
}

impl ControlFiles {
    /// Finds the control files of a sandbox: of a project's settings, and of the repositories whose
    /// working tree or git directory is a writable directory, or was one before. `named` are
    /// directories that variables of the command name as git directories.
    pub(super) fn find(sandbox: &Sandbox, named: &[PathBuf]) -> ControlFiles {
        let mut found = ControlFiles { tops: sandbox.writable.clone(), ..ControlFiles::default() };
        if sandbox.settings && sandbox.git_config {
            return found;
        }
        for top in &sandbox.writable {
            if !sandbox.settings {
                found.add_settings(top.join(SETTINGS));
            }
            if !sandbox.git_config {
                found.watched.push((top.clone(), false));
                GIT_NAMES.iter().for_each(|name| found.add_reference(&top.join(name)));
                if is_git_dir(top) {
                    found.add_git_dir(top, GIT_MODULES_DEPTH_MAX);
                }
                OTHERS.iter().for_each(|(name, files)| found.add_other(&top.join(name), files));
            }
        }
        if !sandbox.git_config {
            let remembered = sandbox.private.first().map(|data| memory::read(data)).unwrap_or_default();
            // The git directory of a removed worktree or submodule can be created again.
            let remembered = remembered.iter().filter(|directory| !is_absent(directory));
            for directory in named.iter().chain(remembered) {
                found.add_named(directory);
            }
        }
        found
    }

    /// Returns whether a repository has its working tree or its git directory at one of `tops`.
    pub(in crate::process::os::linux) fn has_repository(tops: &[PathBuf]) -> bool {
        let names = |top: &Path| GIT_NAMES.iter().any(|name| !is_absent(&top.join(name)));
        tops.iter().any(|top| names(top) || is_git_dir(top))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.unknown.is_none()
    }

    /// Returns whether `path` is below a writable directory, or is one.
    fn is_writable(&self, path: &Path) -> bool {
        self.tops.iter().any(|top| path.starts_with(top))
    }

    fn add(&mut self, path: PathBuf, placeholder: Placeholder, extent: Extent) {
        if self.files.iter().any(|known| known.path == path) {
            return;
        }
        // A link cannot be mounted. Its target decides what it means.
        if path.is_symlink()
            && let Ok(target) = path.canonicalize()
            && self.is_writable(&target)
        {
            self.add(target, Placeholder::No, Extent::All);
        }
        self.files.push(ControlFile { path, placeholder, extent });
    }

    fn add_settings(&mut self, path: PathBuf) {
        match is_absent(&path) {
            // A linked worktree writes in directories of its repository.
            true if path.ancestors().skip(1).any(is_git_dir) => {}
            true => self.absent.push(path),
            false => self.add(path, Placeholder::No, Extent::All),
        }
    }

    /// Adds what the name of a git directory in a root stands for: the directory, or a file or link
    /// that names another one.
    fn add_reference(&mut self, path: &Path) {
        match path.symlink_metadata() {
            Ok(kind) if kind.is_dir() => self.add_git_dir(path, GIT_MODULES_DEPTH_MAX),
            Ok(kind) => {
                let target = match kind.is_symlink() {
                    true => fs::read_link(path).ok(),
                    false => read(path).and_then(|text| Some(PathBuf::from(text.strip_prefix("gitdir: ")?.trim_end()))),
                };
                if let (Some(target), Some(directory)) = (target, path.parent()) {
                    self.add_named(&directory.join(target));
                }
                self.add(path.to_owned(), Placeholder::No, Extent::All);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => self.absent.push(path.to_owned()),
            Err(error) => self.unknown = Some(format!("{} cannot be examined: {error}", path.display())),
        }
    }

    /// Adds the control files of another version control system. One that does not exist is removed
    /// if the command creates it.
    fn add_other(&mut self, directory: &Path, files: &[&str]) {
        if is_absent(directory) {
            return;
        }
        for file in files.iter().map(|name| directory.join(name)) {
            self.watched.extend(file.parent().map(|parent| (parent.to_owned(), false)));
            self.add(file, Placeholder::No, Extent::All);
        }
        self.add_named(&directory.join("repo/store/git"));
    }

    /// Adds a directory that is named as a git directory, in every state. If it does not exist, the
    /// command cannot create it.
    fn add_named(&mut self, path: &Path) {
        match path.canonicalize() {
            Ok(real) if !self.is_writable(&real) || self.git_dirs.contains(&real) => {}
            Ok(real) if real.is_dir() => self.add_git_dir(&real, GIT_MODULES_DEPTH_MAX),
            Ok(real) => self.add(real, Placeholder::No, Extent::All),
            Err(_) => {
                let existing = |path: &&Path| path.parent().is_some_and(|parent| parent.is_dir());
                let Some(first) = path.ancestors().find(existing).filter(|first| is_absent(first)) else { return };
                if let Some(first) = real(first).filter(|first| self.is_writable(first)) {
                    self.add(first, Placeholder::Directory, Extent::All);
                }
            }
        }
    }

    /// Adds the control files of a git directory, its linked worktrees and its submodules.
    fn add_git_dir(&mut self, git_dir: &Path, depth: usize) {
        let names: &[(&str, Placeholder)] = match GitDirState::new(git_dir) {
            GitDirState::Shared => &SHARED,
            GitDirState::Linked => &LINKED,
            GitDirState::Incomplete => {
                self.watched.push((git_dir.to_owned(), false));
                return self.add(git_dir.to_owned(), Placeholder::No, Extent::Incomplete);
            }
        };
        self.add_names(git_dir, names);
        if names == SHARED {
            self.kept.extend(["objects", "refs"].map(|name| git_dir.join(name)));
            self.add_worktrees(&git_dir.join("worktrees"));
        }
        self.add_modules(&git_dir.join("modules"), depth);
    }

    fn add_names(&mut self, git_dir: &Path, names: &[(&str, Placeholder)]) {
        self.git_dirs.push(git_dir.to_owned());
        self.watched.push((git_dir.to_owned(), false));
        names.iter().for_each(|(name, placeholder)| self.add(git_dir.join(name), *placeholder, Extent::All));
    }

    /// Adds the git directories of linked worktrees.
    fn add_worktrees(&mut self, directory: &Path) {
        let Some(all) = self.entries(directory) else { return };
        for entry in all {
            let named = read(&entry.join("gitdir")).and_then(|named| real(&entry.join(named.trim_end())));
            match named.filter(|tree| self.is_writable(tree) && !is_absent(tree)) {
                Some(reference) if GitDirState::new(&entry) == GitDirState::Linked => {
                    self.add_names(&entry, &LINKED);
                    self.add_modules(&entry.join("modules"), GIT_MODULES_DEPTH_MAX);
                    self.watched.extend(reference.parent().map(|tree| (tree.to_owned(), false)));
                    self.add(reference, Placeholder::No, Extent::All);
                }
                // The command cannot work in this worktree.
                _ => self.add(entry, Placeholder::No, Extent::Incomplete),
            }
        }
    }

    /// Adds the submodules below `directory`. The name of a submodule may contain slashes, so that
    /// a directory with directories only is a part of a name.
    fn add_modules(&mut self, directory: &Path, depth: usize) {
        let Some(all) = self.entries(directory) else { return };
        for module in all {
            let Some(depth) = depth.checked_sub(1) else {
                self.add(module, Placeholder::No, Extent::All);
                continue;
            };
            match has_only_directories(&module) {
                Some(true) => self.add_modules(&module, depth),
                Some(false) => {
                    self.add_git_dir(&module, depth);
                    let reference = working_tree(&module).and_then(|tree| real(&tree.join(".git")));
                    if let Some(reference) = reference.filter(|path| self.is_writable(path) && !is_absent(path)) {
                        self.add(reference, Placeholder::No, Extent::All);
                    }
                }
                None => self.add(module, Placeholder::No, Extent::Incomplete),
            }
        }
    }

    /// Returns the entries of a directory of git directories. `None` if there are none: the
    /// directory does not exist, or it is protected as a whole because it cannot be read or has
    /// more than [`limits::GIT_ENTRIES_MAX`] entries.
    fn entries(&mut self, directory: &Path) -> Option<Vec<PathBuf>> {
        if is_absent(directory) {
            return None;
        }
        self.watched.push((directory.to_owned(), true));
        let read = fs::read_dir(directory).and_then(|read| read.take(limits::GIT_ENTRIES_MAX + 1).collect::<Result<Vec<_>, _>>());
        match read {
            Ok(all) if all.len() <= limits::GIT_ENTRIES_MAX && !directory.is_symlink() => {
                Some(all.into_iter().map(|entry| entry.path()).collect())
            }
            Ok(_) => {
                self.add(directory.to_owned(), Placeholder::No, Extent::ExceptRoots);
                None
            }
            Err(_) => {
                self.add(directory.to_owned(), Placeholder::No, Extent::All);
                None
            }
        }
    }
}

impl GitDirState {
    fn new(directory: &Path) -> GitDirState {
        let is_dir = |name: &str| directory.join(name).is_dir();
        let is_file = |name: &str| directory.join(name).is_file();
        let has_head = is_file("HEAD") || directory.join("HEAD").is_symlink();
        if fs::read_dir(directory).is_err() || directory.is_symlink() || !has_head {
            GitDirState::Incomplete
        } else if is_dir("objects") && is_dir("refs") {
            GitDirState::Shared
        } else if is_file("commondir") && is_file("gitdir") && !is_initializing(directory) {
            GitDirState::Linked
        } else {
            GitDirState::Incomplete
        }
    }
}

/// Returns whether git is creating a linked worktree: git writes this word into the file first.
fn is_initializing(entry: &Path) -> bool {
    read(&entry.join("locked")).is_some_and(|text| text.starts_with("initializing"))
}

/// Returns whether a root is itself a git directory, also if one of the files by which git
/// recognizes it is missing. The others cannot be renamed while a command runs.
fn is_git_dir(top: &Path) -> bool {
    let is_dir = |name: &str| top.join(name).is_dir();
    let is_file = |name: &str| top.join(name).is_file();
    let shared = is_dir("objects") && is_dir("refs") && (is_file("HEAD") || is_file("config"));
    shared || is_file("commondir") && (is_file("gitdir") || is_file("HEAD"))
}

/// Returns whether a path does not exist. A path that cannot be examined may exist.
pub(super) fn is_absent(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Returns whether a directory has only directories in it; `None` if that is not known, or if it is
/// no directory.
fn has_only_directories(path: &Path) -> Option<bool> {
    let kind = path.symlink_metadata().ok()?;
    let entries = fs::read_dir(path).ok().filter(|_| kind.is_dir())?;
    let is_dir = |entry: std::io::Result<fs::DirEntry>| entry.and_then(|entry| entry.file_type()).is_ok_and(|kind| kind.is_dir());
    Some(entries.into_iter().all(is_dir))
}

/// Returns the working tree that the configuration of a submodule names (`core.worktree`).
fn working_tree(git_dir: &Path) -> Option<PathBuf> {
    let config = read(&git_dir.join("config"))?;
    let value = config.lines().find_map(|line| line.trim().strip_prefix("worktree")?.trim_start().strip_prefix('='))?;
    git_dir.join(value.trim().trim_matches('"')).canonicalize().ok()
}

/// Reads a file of at most [`CONTROL_FILES_BYTES_MAX`] as text.
pub(super) fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    open_file(path).ok()?.take(CONTROL_FILES_BYTES_MAX as u64).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Resolves the symlinks in the directory of `path`, but not in its last component. `None` if the
/// directory does not exist.
fn real(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}
