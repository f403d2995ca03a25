//! The directory in a repository that a directory in one of nuncio's worktrees corresponds to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::workspace::{read_small, real_path};

/// A directory in a worktree, and its counterpart in the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorktreeOrigin {
    /// The top directory of the worktree.
    pub worktree: PathBuf,
    /// The main worktree of the repository.
    pub repository: PathBuf,
    /// The path of the directory relative to both.
    pub rest: PathBuf,
}

/// File in the directory of a project's worktrees that contains the path of its repository.
pub(crate) const REPOSITORY_FILE: &str = "repository";

/// Returns the directory of nuncio's worktrees in the data directory `data`, free of symlinks.
pub(crate) fn worktrees_in(data: &Path) -> PathBuf {
    real_path(data).join("worktrees")
}

/// Returns the origin of `directory`, which is free of symlinks and need not exist; `None` if it is
/// not in a worktree below `worktrees`.
pub(crate) fn worktree_origin(worktrees: &Path, directory: &Path) -> Option<WorktreeOrigin> {
    let parts: Vec<Component<'_>> = directory.strip_prefix(worktrees).ok()?.components().collect();
    let [Component::Normal(project), Component::Normal(name), rest @ ..] = parts.as_slice() else { return None };
    if !rest.iter().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let project = worktrees.join(project);
    let repository = read_small(&project.join(REPOSITORY_FILE)).ok()?;
    let repository = PathBuf::from(OsStr::from_bytes(repository.strip_suffix(b"\n").unwrap_or(&repository)));
    Some(WorktreeOrigin { worktree: project.join(name), repository, rest: rest.iter().collect() })
}
