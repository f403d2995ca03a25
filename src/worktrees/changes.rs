//! The changes in a workspace since its creation: committed, not committed, and new files.

use super::Worktrees;
use crate::error::Result;
use crate::limits;
use crate::store::WorkspaceRow;

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
        let base = row.base_commit.as_deref().unwrap_or(EMPTY_TREE);
        let stat = self.read_changes(row, &["diff", "--stat", "--no-ext-diff", "--no-textconv", base]).await?;
        let new = self.read_changes(row, &["ls-files", "-z", "--others", "--exclude-standard"]).await?;
        let new: Vec<&str> = new.split('\0').filter(|path| !path.is_empty()).collect();
        let summary = stat.lines().map(str::to_owned).chain(new.iter().map(|path| format!("?? {path}")));
        let summary = summary.collect::<Vec<_>>().join("\n");
        if !diff {
            return Ok(ChangesSinceBase { summary, diff: None });
        }
        let mut text = self.read_changes(row, &["diff", "--no-ext-diff", "--no-textconv", base]).await?;
        for path in new.into_iter().take(limits::WORKTREE_PATHS_SHOWN_MAX) {
            if text.len() > WORKTREE_DIFF_BYTES_MAX {
                break;
            }
            let words = ["diff", "--no-index", "--no-ext-diff", "--no-textconv", "--", "/dev/null", path];
            text += &self.read_changes(row, &words).await?;
        }
        text.truncate(text.floor_char_boundary(WORKTREE_DIFF_BYTES_MAX));
        Ok(ChangesSinceBase { summary, diff: Some(text) })
    }

    async fn read_changes(&self, row: &WorkspaceRow, words: &[&str]) -> Result<String> {
        let read = self.git.read(&row.path, Some(&row.path), words).await?;
        // `git diff --no-index` ends with 1 if there is a difference.
        match read.code {
            0 | 1 => Ok(String::from_utf8_lossy(&read.output).into_owned()),
            _ => Err(read.error("reading the changes")),
        }
    }
}

/// The id of the empty tree in repositories with SHA-1 ids.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
