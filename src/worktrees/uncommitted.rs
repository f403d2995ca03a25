//! The uncommitted changes of the user's working tree. A new workspace contains them only if it
//! starts from a commit with them.

use std::path::Path;

use super::Worktrees;
use super::inspect::PathList;
use super::repository::{Repository, top};
use super::working_tree::{Author, ScratchDir, WorkingTree};
use crate::error::Result;

impl Worktrees {
    /// Lists the uncommitted changes of the working tree that contains `directory`; a new directory
    /// counts once. The list is empty for a bare repository.
    pub(crate) async fn uncommitted(&self, directory: &Path) -> Result<PathList> {
        let top = top(directory);
        let mut list = PathList::default();
        if !top.join(".git").exists() {
            return Ok(list);
        }
        let words = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal"];
        let status = self.git.read(top, Some(top), words).await?.success("reading the status")?;
        // Each entry is two letters, a space and a path.
        status.output.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..)).for_each(|path| list.add(path));
        Ok(list)
    }

    /// Creates a commit with the uncommitted changes of a working tree, without changing its index
    /// and branch. Returns its id; if there are no changes, the id of HEAD.
    pub(crate) async fn commit_of_changes(&self, repository: &Repository, directory: &Path) -> Result<String> {
        let tree = WorkingTree::find(&self.git, repository, directory)?;
        let scratch = ScratchDir::new(&self.git.temp)?;
        let copy = tree.with_copied_index(&scratch, "changes")?;
        copy.snapshot(Author::Nuncio, "Uncommitted changes at the start of a comparison").await
    }
}
