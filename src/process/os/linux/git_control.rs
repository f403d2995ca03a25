//! Control files: files of a git repository that decide which programs git runs
//! (gitrepository-layout(5)), and the directory of a project's settings. Sandboxed commands must
//! not change them, because the user's next git command would run what they name.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, linkat, openat};

use super::masked;
use super::snapshot::CONTROL_FILES_BYTES_MAX;
use crate::limits;

/// Maximum nesting of submodules whose control files are protected; deeper ones are read-only.
const GIT_MODULES_DEPTH_MAX: usize = 5;
/// Longest wait for another process that locks a git directory.
const GIT_LOCK: Duration = Duration::from_secs(1);
/// Pause between two attempts to lock a git directory.
const GIT_LOCK_RETRY: Duration = Duration::from_millis(1);

/// Directory with the settings of a project.
const SETTINGS: &str = ".nuncio";

/// A file or directory that is created while a command runs, because a path that does not exist
/// cannot be mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    /// The file exists, or its absence is harmless.
    No,
    Directory,
    Text(&'static str),
}

/// A path that commands must not change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ControlFile {
    path: PathBuf,
    placeholder: Placeholder,
}

/// The control files below the directories that a command may write to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::process) struct ControlFiles {
    /// Directories below which the command may write.
    tops: Vec<PathBuf>,
    files: Vec<ControlFile>,
    /// The git directories that may need placeholders.
    git_dirs: Vec<PathBuf>,
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

impl ControlFiles {
    /// Finds the control files below `tops`: with `settings`, those of a project's settings; with
    /// `git`, those of the repositories whose working tree or git directory is one of `tops`.
    pub(super) fn find(tops: &[PathBuf], settings: bool, git: bool) -> ControlFiles {
        let mut found = ControlFiles { tops: tops.to_vec(), ..ControlFiles::default() };
        for top in tops {
            let directory = top.join(SETTINGS);
            if settings && directory.symlink_metadata().is_ok() {
                found.add(directory, Placeholder::No);
            }
            if !git {
                continue;
            }
            let reference = top.join(".git");
            match reference.symlink_metadata() {
                Ok(kind) if kind.is_dir() => found.add_git_dir(&reference, GIT_MODULES_DEPTH_MAX),
                Ok(kind) if kind.is_symlink() => {
                    let real = reference.canonicalize().ok().filter(|real| tops.iter().any(|top| real.starts_with(top)));
                    real.into_iter().for_each(|real| found.add_git_dir(&real, GIT_MODULES_DEPTH_MAX));
                    found.add(reference, Placeholder::No);
                }
                Ok(_) => found.add(reference, Placeholder::No),
                Err(_) => {}
            }
            if top.join("HEAD").is_file() {
                found.add_git_dir(top, GIT_MODULES_DEPTH_MAX);
            }
        }
        found
    }

    /// Returns whether a repository has its working tree or its git directory at one of `tops`.
    pub(super) fn has_repository(tops: &[PathBuf]) -> bool {
        tops.iter().any(|top| top.join(".git").symlink_metadata().is_ok() || top.join("HEAD").is_file())
    }

    /// Returns whether a path exists below a writable directory.
    fn is_writable(&self, path: &Path) -> bool {
        self.tops.iter().any(|top| path.starts_with(top)) && path.symlink_metadata().is_ok()
    }

    fn add(&mut self, path: PathBuf, placeholder: Placeholder) {
        if !self.files.iter().any(|known| known.path == path) {
            self.files.push(ControlFile { path, placeholder });
        }
    }

    fn add_all(&mut self, git_dir: &Path, files: &[(&str, Placeholder)]) {
        self.git_dirs.push(git_dir.to_owned());
        files.iter().for_each(|(name, placeholder)| self.add(git_dir.join(name), *placeholder));
    }

    /// Adds the control files of a git directory, its linked worktrees and its submodules.
    fn add_git_dir(&mut self, git_dir: &Path, depth: usize) {
        if git_dir.join("objects").is_dir() {
            self.add_all(git_dir, &SHARED);
        } else if git_dir.join("commondir").is_file() {
            self.add_all(git_dir, &LINKED);
        }
        for worktree in entries(&git_dir.join("worktrees")) {
            let named = read(&worktree.join("gitdir"));
            match named.and_then(|named| real(&worktree.join(named.trim_end()))).filter(|tree| self.is_writable(tree)) {
                Some(reference) => {
                    self.add_all(&worktree, &LINKED);
                    self.add(reference, Placeholder::No);
                }
                // The command cannot work in this worktree.
                None => self.add(worktree, Placeholder::No),
            }
        }
        self.add_modules(&git_dir.join("modules"), depth);
    }

    /// Adds the submodules below `directory`. The name of a submodule may contain slashes.
    fn add_modules(&mut self, directory: &Path, depth: usize) {
        for module in entries(directory) {
            match depth.checked_sub(1) {
                None => self.add(module, Placeholder::No),
                Some(depth) if module.join("HEAD").is_file() => {
                    self.add_git_dir(&module, depth);
                    let reference = working_tree(&module).and_then(|tree| real(&tree.join(".git")));
                    if let Some(reference) = reference.filter(|path| self.is_writable(path)) {
                        self.add(reference, Placeholder::No);
                    }
                }
                Some(depth) => self.add_modules(&module, depth),
            }
        }
    }

    /// Mounts the files read-only for this process and its descendants. `in_namespace` is true if
    /// the process is in its own mount namespace already. Returns locks to keep open while the
    /// command runs, and the paths that are not mounted.
    pub(super) fn protect(&self, in_namespace: bool) -> Result<(Vec<File>, Vec<PathBuf>), String> {
        if self.files.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        if !in_namespace && masked::enter_namespace().is_err() {
            return Ok((Vec::new(), self.files.iter().map(|file| file.path.clone()).collect()));
        }
        let locks = self.create_placeholders()?;
        // The directories between a writable one and a file, the outermost first: if they could be
        // renamed, others could take their place.
        let above = |file: &ControlFile| file.path.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>();
        let is_below = |directory: &PathBuf| self.tops.iter().any(|top| directory != top && directory.starts_with(top));
        let directories: BTreeSet<PathBuf> = self.files.iter().flat_map(above).filter(is_below).collect();
        let failed: Vec<&PathBuf> = directories.iter().filter(|directory| masked::bind(directory).is_err()).collect();
        let is_open = |file: &&ControlFile| {
            let in_failed = failed.iter().any(|directory| file.path.starts_with(directory));
            let is_link = file.path.symlink_metadata().is_ok_and(|kind| kind.is_symlink());
            in_failed || is_link || masked::bind_read_only(&file.path).is_err()
        };
        let open = self.files.iter().filter(is_open).map(|file| file.path.clone()).collect();
        Ok((locks, open))
    }

    /// Creates the files that must exist to be mounted. Returns locks on the git directories: no
    /// process removes placeholders while they are open. Fails if a lock is not free within
    /// [`GIT_LOCK`].
    fn create_placeholders(&self) -> Result<Vec<File>, String> {
        let is_missing = |file: &&ControlFile| file.placeholder != Placeholder::No && file.path.symlink_metadata().is_err();
        let mut locks = Vec::new();
        for git_dir in &self.git_dirs {
            let locked = lock(git_dir, FlockOperation::NonBlockingLockShared, GIT_LOCK);
            locks.push(locked.ok_or_else(|| format!("{} cannot be locked, or another process holds the lock", git_dir.display()))?);
        }
        for file in self.files.iter().filter(is_missing) {
            // If this fails, the mount fails, and the file is restored after the command.
            let _ = match file.placeholder {
                Placeholder::No => Ok(()),
                Placeholder::Directory => fs::DirBuilder::new().mode(0o755).create(&file.path),
                Placeholder::Text(text) => create_complete(&file.path, text),
            };
        }
        Ok(locks)
    }

    /// Removes the placeholders that no running command needs. Must be called outside of the mount
    /// namespaces of commands.
    pub(in crate::process) fn remove_placeholders(&self) {
        for git_dir in &self.git_dirs {
            let Some(_lock) = lock(git_dir, FlockOperation::NonBlockingLockExclusive, Duration::ZERO) else { continue };
            for file in self.files.iter().filter(|file| file.path.parent() == Some(git_dir)) {
                let _ = match file.placeholder {
                    // Fails for a directory with hooks.
                    Placeholder::Directory => fs::remove_dir(&file.path),
                    Placeholder::Text(text) if is_placeholder(&file.path, text) => fs::remove_file(&file.path),
                    Placeholder::No | Placeholder::Text(_) => Ok(()),
                };
            }
        }
    }
}

/// Creates a file that exists only with its text: git ends if it finds `commondir` empty.
fn create_complete(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    let mode = Mode::from_raw_mode(0o644);
    let Ok(unnamed) = openat(CWD, directory, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode) else {
        // The file system has no unnamed files.
        return fs::write(path, text);
    };
    let mut file = File::from(unnamed);
    file.write_all(text.as_bytes())?;
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, name, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Returns whether a file has the text of a placeholder. An empty `config` is not removed, because
/// a repository without this file would be a different one for git.
fn is_placeholder(path: &Path, text: &str) -> bool {
    let file = path.symlink_metadata().is_ok_and(|kind| kind.is_file() && kind.len() == text.len() as u64);
    file && !path.ends_with("config") && fs::read(path).is_ok_and(|content| content == text.as_bytes())
}

fn lock(directory: &Path, operation: FlockOperation, wait: Duration) -> Option<File> {
    let opened = File::open(directory).ok()?;
    let until = Instant::now() + wait;
    loop {
        match flock(&opened, operation) {
            Ok(()) => return Some(opened),
            Err(_) if Instant::now() < until => std::thread::sleep(GIT_LOCK_RETRY),
            Err(_) => return None,
        }
    }
}

/// Returns the directories in `directory`, at most [`limits::GIT_ENTRIES_MAX`].
fn entries(directory: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = read.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.take(limits::GIT_ENTRIES_MAX).map(|entry| entry.path()).collect()
}

/// Returns the working tree that the configuration of a submodule names (`core.worktree`).
fn working_tree(git_dir: &Path) -> Option<PathBuf> {
    let config = read(&git_dir.join("config"))?;
    let value = config.lines().find_map(|line| line.trim().strip_prefix("worktree")?.trim_start().strip_prefix('='))?;
    git_dir.join(value.trim().trim_matches('"')).canonicalize().ok()
}

/// Reads a file of at most [`CONTROL_FILES_BYTES_MAX`] as text.
fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(CONTROL_FILES_BYTES_MAX as u64).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Resolves the symlinks in the directory of `path`, but not in its last component. `None` if the
/// directory does not exist.
fn real(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}
