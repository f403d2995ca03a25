//! Linked git worktrees: the parts of the repository's git directory that a commit writes to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::file::read_small;

/// Directories of the shared git directory (gitrepository-layout(5)) that a commit writes to. The
/// shared directory itself is not one of them, because it contains `hooks` and `config`.
const SHARED: [&str; 5] = ["objects", "refs", "reftable", "logs", "lfs"];

/// Returns the directories outside the linked worktree `top` that a commit in it writes to. Some of
/// them may not exist. The result is empty if `top` is not the top of a linked worktree, or if its
/// repository does not refer back to `top`, because any command in `top` can write the reference to
/// the repository.
pub(crate) fn linked_git_dirs(top: &Path) -> Vec<PathBuf> {
    let Some(own) = own_git_dir(top) else { return Vec::new() };
    let shared = own.ancestors().nth(2).map(|common| SHARED.map(|name| common.join(name)));
    shared.into_iter().flatten().chain([own]).collect()
}

/// Returns the git directory of a linked worktree, `worktrees/ID` in the shared git directory,
/// without symlinks. Returns `None` if it does not refer back to `top`.
fn own_git_dir(top: &Path) -> Option<PathBuf> {
    let reference = read_small(&top.join(".git")).ok()?;
    let own = top.join(path(reference.strip_prefix(b"gitdir: ")?)).canonicalize().ok()?;
    let tree = own.join(path(&read_small(&own.join("gitdir")).ok()?));
    let refers_back = tree.file_name()? == ".git" && tree.parent()?.canonicalize().ok()? == top.canonicalize().ok()?;
    (refers_back && own.parent()?.file_name()? == "worktrees").then_some(own)
}

/// Converts a path in a file of git, which ends with a line break.
pub(super) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes.trim_ascii_end()))
}
