//! The directories whose files nuncio adds to prompts: the session's directory and its parents up
//! to the repository's root. Also checks that such a file belongs to the project and to the user.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::workspace;

/// The directories of a project.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProjectDirs {
    /// From the repository's root down to the session's directory. Without a repository, only the
    /// session's directory.
    pub dirs: Vec<PathBuf>,
    /// The first of the directories, without symlinks. Empty if it does not exist.
    pub root: PathBuf,
    /// `.git` directories that were ignored because another user owns them.
    pub foreign: Vec<PathBuf>,
}

impl ProjectDirs {
    /// Finds the directories of `cwd`. The root is the nearest directory that contains `.git`.
    pub(crate) fn of(cwd: &Path) -> ProjectDirs {
        let mut foreign = Vec::new();
        let root = cwd.ancestors().find(|dir| {
            let git = dir.join(".git");
            let is_foreign = git.exists() && is_foreign(dir, &git);
            if is_foreign {
                foreign.push(git.clone());
            }
            git.exists() && !is_foreign
        });
        let root = root.unwrap_or(cwd);
        let Ok(real) = root.canonicalize() else { return ProjectDirs { foreign, ..ProjectDirs::default() } };
        let mut dirs: Vec<PathBuf> = cwd.ancestors().take_while(|dir| dir.starts_with(root)).map(PathBuf::from).collect();
        dirs.reverse();
        ProjectDirs { dirs, root: real, foreign }
    }

    /// Returns the real path of a file in `dir`. `None` if the file does not exist or symlinks lead
    /// out of the repository.
    pub(crate) fn inside(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok().filter(|real| real.starts_with(&self.root))
    }

    /// Returns whether another user owns the file `path` in `dir`, or its target `real`.
    pub(crate) fn is_foreign(&self, dir: &Path, path: &Path, real: &Path) -> bool {
        is_foreign(dir, path) || is_foreign(&self.root, real)
    }
}

/// Returns whether `path`, or a directory between it and `top`, is owned by another user (not root)
/// and lies in a world-writable directory.
pub(super) fn is_foreign(top: &Path, path: &Path) -> bool {
    let below = path.ancestors().take_while(|part| part.starts_with(top) && *part != top);
    let pairs = below.filter_map(|part| Some((part.symlink_metadata().ok()?, part.parent()?.metadata().ok()?)));
    let known = [0, geteuid().as_raw()];
    pairs.into_iter().any(|(part, parent)| !known.contains(&part.uid()) && parent.mode() & 0o002 != 0)
}

/// Reads a regular file as text, without following symlinks. A longer file is truncated, and a note
/// in its text says so. `None` if the file cannot be read or is blank.
pub(crate) fn read(real: &Path, bytes_max: usize) -> Option<String> {
    let file = workspace::open(real).ok()?;
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() > bytes_max;
    bytes.truncate(bytes_max);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if cut {
        text.push_str("\n[truncated: the file exceeds the size limit of instruction files]");
    }
    (!text.trim().is_empty()).then_some(text)
}
