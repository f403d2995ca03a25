//! Deletes workspaces in two steps: the first names what would be lost, the second repeats it with
//! the token of the first.

use std::ffi::OsString;

use super::apply::applied_ref;
use super::git::Changes;
use super::inspect::{BranchOnDelete, Inspection};
use super::repository::Repository;
use super::{Worktrees, files};
use crate::error::{Error, Result};
use crate::limits;
use crate::store::{WorkspaceRow, WorkspaceState};
use crate::task;

/// The result of a deletion.
pub(crate) struct Deletion {
    pub inspection: Inspection,
    /// False if the token was missing or the state has changed since.
    pub deleted: bool,
    pub branch_deleted: bool,
}

impl Worktrees {
    /// Deletes a workspace if `confirm` is the token of its current state.
    pub(crate) async fn delete(
        &self,
        row: &WorkspaceRow,
        sessions: &[String],
        action: BranchOnDelete,
        confirm: Option<&str>,
    ) -> Result<Deletion> {
        let inspection = self.inspect(row, sessions, action).await?;
        if confirm != Some(inspection.token.as_str()) {
            return Ok(Deletion { inspection, deleted: false, branch_deleted: false });
        }
        let branch_deleted = self.remove(row, action).await?;
        Ok(Deletion { inspection, deleted: true, branch_deleted })
    }

    /// Removes the directory, the entry in git, the branch and the row, in this order. Each step
    /// succeeds if there is nothing to remove, so that an interrupted deletion can be repeated.
    /// Returns whether the branch was deleted.
    async fn remove(&self, row: &WorkspaceRow, action: BranchOnDelete) -> Result<bool> {
        self.set_state(row, WorkspaceState::Deleting).await?;
        let trash = self.trash(row);
        let remove_trash = async || {
            let old = trash.clone();
            let removed = task::blocking("removing a worktree", move || files::remove_tree(&old)).await?;
            let failed = |error| Error::io(format_args!("removing {}", trash.display()), error);
            let hint = "remove it with the rights that this needs, then delete the workspace again";
            removed.map_err(|error| failed(error).hint(hint))
        };
        remove_trash().await?;
        // Renaming is atomic: a new worktree at the same place is never touched.
        match std::fs::rename(&row.path, &trash) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(format_args!("removing {}", row.path.display()), error));
            }
            _ => {}
        }
        let branch_deleted = match Repository::existing(&self.git, &row.repository).await {
            Some(repository) => self.forget(&repository, row, action).await?,
            None => false,
        };
        remove_trash().await?;
        self.store.remove_workspace(&row.id).await?;
        Ok(branch_deleted)
    }

    /// Removes the entry of the worktree, whose directory is gone, and the branch. Other entries
    /// are kept, even if their directories are missing.
    async fn forget(&self, repository: &Repository, row: &WorkspaceRow, action: BranchOnDelete) -> Result<bool> {
        let writable = [repository.common.clone()];
        let run = async |words: &[&str], path: Option<OsString>| {
            let all = words.iter().map(OsString::from).chain(path).collect();
            self.git.change(&repository.main, Changes::References(&writable), limits::GIT_CHANGE, &[], all).await
        };
        if repository.git_dir_of(&row.path).is_some() {
            let removed = run(&["worktree", "remove", "--force", "--force"], Some(row.path.clone().into())).await?;
            removed.success("removing the worktree")?;
        }
        run(&["update-ref", "-d", &applied_ref(row)], None).await?;
        let Some(branch) = row.branch.as_deref() else { return Ok(false) };
        let merged = async || {
            let reference = format!("refs/heads/{branch}");
            let tip = self.git.read(&repository.main, None, ["rev-parse", "--verify", "--quiet", &reference]).await?;
            Ok::<_, Error>(tip.code == 0 && self.unmerged(row, repository, &tip.text(), Some(branch)).await? == 0)
        };
        let delete = match action {
            BranchOnDelete::Keep => false,
            BranchOnDelete::Merged => row.made_branch && merged().await?,
            BranchOnDelete::Delete => true,
        };
        // git keeps a branch that another worktree uses.
        Ok(delete && run(&["branch", "--quiet", "-D", "--", branch], None).await?.code == 0)
    }
}
