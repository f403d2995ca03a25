//! The directories of worktrees, and their names.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Map;

use crate::config::REPOSITORY_FILE;
use crate::limits;
use crate::store::{WorkspaceRow, WorkspaceState};
use crate::workspace::read_small;

/// Maximum length of the name of a git worktree, in characters.
const WORKTREE_NAME_CHARS_MAX: usize = 64;

/// Returns whether `name` can be the name of a worktree: ASCII letters, digits, `-`, `_` and `.`,
/// at least one, and no dot at either end.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let dot = name.starts_with(['.', '-']) || name.ends_with('.') || name.contains("..") || name.ends_with(".lock");
    !name.is_empty() && name.len() <= WORKTREE_NAME_CHARS_MAX && name.chars().all(fits) && !dot
}

/// Reads the path of a project's repository. Returns `None` unless nuncio created a directory of
/// worktrees with this name.
fn project_repository(root: &Path, project: &str) -> Option<PathBuf> {
    let plain = project.chars().all(|character| character.is_ascii_alphanumeric() || "-_".contains(character));
    let text = read_small(&root.join(project).join(REPOSITORY_FILE)).ok().filter(|_| plain && !project.is_empty())?;
    Some(Path::new(OsStr::from_bytes(text.strip_suffix(b"\n").unwrap_or(&text))).to_owned())
}

/// Creates a row for the worktree `project/name`, which the store does not contain. The worktree
/// need not exist.
pub(super) fn unregistered_row(root: &Path, project: &str, name: &str) -> Option<WorkspaceRow> {
    let repository = project_repository(root, project).filter(|_| is_name(name))?;
    Some(row_of(project, name, repository, root.join(project).join(name)))
}

/// Creates a row for a worktree that the store does not contain.
pub(super) fn row_of(project: &str, name: &str, repository: PathBuf, path: PathBuf) -> WorkspaceRow {
    WorkspaceRow {
        id: format!("{project}.{name}"),
        name: name.into(),
        repository,
        path,
        branch: None,
        made_branch: false,
        base: None,
        base_commit: None,
        state: WorkspaceState::Ready,
        created_ms: 0,
        metadata: Map::new(),
    }
}

/// Lists the projects that have a directory, each with its repository.
pub(super) fn projects(root: &Path) -> Vec<(String, PathBuf)> {
    let names = names_in(root);
    names.into_iter().filter_map(|name| Some((name.clone(), project_repository(root, &name)?))).collect()
}

/// Lists the names of the directories in a directory, sorted. The list has at most
/// [`limits::WORKTREES_MAX`] names.
pub(super) fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<String> = directories.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names.truncate(limits::WORKTREES_MAX);
    names
}

/// Removes a directory with everything below it, also below directories that are not writable. An
/// absent directory is no error. Symlinks are removed, not followed.
pub(super) fn remove_tree(directory: &Path) -> io::Result<()> {
    let absent = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    match absent(std::fs::remove_dir_all(directory)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(directory);
            absent(std::fs::remove_dir_all(directory))
        }
        result => result,
    }
}

fn make_writable(directory: &Path) {
    let mut stack = vec![directory.to_owned()];
    while let Some(directory) = stack.pop() {
        // If this fails, removing the directory reports the error.
        let _ = std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700));
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        stack.extend(entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()));
    }
}
