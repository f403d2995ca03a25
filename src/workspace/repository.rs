//! Finds the repository that git uses in a directory, as git finds it (git(1), `GIT_DIR`).

use std::path::{Path, PathBuf};

use super::file::read_small;
use super::linked::path;

/// Names in a git directory by which git recognizes it or that decide what git runs.
const PARTS: [&str; 8] = ["HEAD", "commondir", "config", "config.worktree", "gitdir", "hooks", "objects", "refs"];

/// Returns the git directory, without symlinks, that git uses in `directory`. `None` if there is
/// none.
pub(crate) fn git_dir(directory: &Path) -> Option<PathBuf> {
    let start = directory.canonicalize().ok()?;
    start.ancestors().find_map(|above| {
        let own = above.join(".git");
        let named = || Some(above.join(path(read_small(&own).ok()?.strip_prefix(b"gitdir: ")?)));
        let candidates = [Some(own.clone()), named(), Some(above.to_owned())];
        candidates.into_iter().flatten().find(|candidate| is_git_dir(candidate))?.canonicalize().ok()
    })
}

/// Returns the directory that a git directory shares with its linked worktrees: itself, if it is
/// not that of a linked worktree.
pub(crate) fn common_dir(git_dir: &Path) -> PathBuf {
    let named = read_small(&git_dir.join("commondir")).ok().map(|text| git_dir.join(path(&text)));
    named.and_then(|named| named.canonicalize().ok()).unwrap_or_else(|| git_dir.to_owned())
}

/// Returns whether git recognizes a directory as a git directory.
fn is_git_dir(directory: &Path) -> bool {
    let head = directory.join("HEAD");
    let common = common_dir(directory);
    (head.is_file() || head.is_symlink()) && common.join("objects").is_dir() && common.join("refs").is_dir()
}

/// Returns whether a write to `real`, below `root`, changes or completes a git directory in the
/// project that is not `.git`.
pub(crate) fn is_part_of_git_dir(root: &Path, real: &Path) -> bool {
    real.ancestors().skip(1).take_while(|above| above.starts_with(root)).any(|above| {
        let first = real.strip_prefix(above).ok().and_then(|rest| rest.components().next());
        let Some(part) = first.and_then(|first| PARTS.into_iter().find(|part| first.as_os_str().eq_ignore_ascii_case(part))) else {
            return is_git_dir(above);
        };
        let exists = |name: &str| name == part || above.join(name).symlink_metadata().is_ok();
        exists("HEAD") && (exists("objects") && exists("refs") || exists("commondir"))
    })
}
