//! The changes in a workspace since its creation: committed, not committed, and new files.

use std::path::Path;

use super::Worktrees;
use super::repository::top;
use crate::error::Result;
use crate::limits;
use crate::store::WorkspaceRow;
use crate::workspace::real_path;

/// Maximum length of the diff of a git worktree, in bytes.
const WORKTREE_DIFF_BYTES_MAX: usize = 256 << 10;

/// The changes in a workspace since its creation.
pub(crate) struct ChangesSinceBase {
    /// The changed files, as `git diff --stat` prints them; new files are lines `?? PATH`.
    pub summary: String,
    /// The unified diff, with new files, truncated at [`WORKTREE_DIFF_BYTES_MAX`].
    pub diff: Option<String>,
}

impl Worktrees {
    /// Reads the changes since the base of the workspace; with `diff`, also their content.
    pub(crate) async fn changes_since_base(&self, row: &WorkspaceRow, diff: bool) -> Result<ChangesSinceBase> {
        self.changes_since(&row.path, ".", row.base_commit.as_deref().unwrap_or(EMPTY_TREE), diff).await
    }

    /// Reads the uncommitted changes in a directory of a working tree.
    pub(crate) async fn uncommitted_diff(&self, directory: &Path) -> Result<ChangesSinceBase> {
        let directory = real_path(directory);
        let top = top(&directory);
        let below = directory.strip_prefix(top).ok().and_then(Path::to_str).filter(|below| !below.is_empty()).unwrap_or(".");
        let head = self.git.read(top, Some(top), ["rev-parse", "--verify", "--quiet", "HEAD"]).await?;
        self.changes_since(top, below, if head.code == 0 { "HEAD" } else { EMPTY_TREE }, true).await
    }

    /// Reads the changes below a path of a working tree since a commit.
    async fn changes_since(&self, tree: &Path, path: &str, base: &str, diff: bool) -> Result<ChangesSinceBase> {
        let stat = self.read_changes(tree, &["diff", "--stat", "--no-ext-diff", "--no-textconv", base, "--", path]).await?;
        let new = self.read_changes(tree, &["ls-files", "-z", "--others", "--exclude-standard", "--", path]).await?;
        let new: Vec<&str> = new.split('\0').filter(|path| !path.is_empty()).collect();
        let summary = stat.lines().map(str::to_owned).chain(new.iter().map(|path| format!("?? {path}")));
        let summary = summary.collect::<Vec<_>>().join("\n");
        if !diff {
            return Ok(ChangesSinceBase { summary, diff: None });
        }
        let mut text = self.read_changes(tree, &["diff", "--no-ext-diff", "--no-textconv", base, "--", path]).await?;
        for path in new.into_iter().take(limits::WORKTREE_PATHS_SHOWN_MAX) {
            if text.len() > WORKTREE_DIFF_BYTES_MAX {
                break;
            }
            let words = ["diff", "--no-index", "--no-ext-diff", "--no-textconv", "--", "/dev/null", path];
            text += &self.read_changes(tree, &words).await?;
        }
        text.truncate(text.floor_char_boundary(WORKTREE_DIFF_BYTES_MAX));
        Ok(ChangesSinceBase { summary, diff: Some(text) })
    }

    async fn read_changes(&self, tree: &Path, words: &[&str]) -> Result<String> {
        let read = self.git.read(tree, Some(tree), words).await?;
        // `git diff --no-index` ends with 1 if there is a difference.
        match read.code {
            0 | 1 => Ok(String::from_utf8_lossy(&read.output).into_owned()),
            _ => Err(read.error("reading the changes")),
        }
    }
}

/// The id of the empty tree in repositories with SHA-1 ids.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
