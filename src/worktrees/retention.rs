//! Deletes workspaces that were not used for a time, if the user's settings say so.

use std::time::{Duration, UNIX_EPOCH};

use super::Worktrees;
use super::inspect::BranchOnDelete;
use super::repository::Repository;
use crate::error::Result;
use crate::limits;
use crate::store::{WorkspaceRow, WorkspaceState};

impl Worktrees {
    /// Deletes the workspaces of `repository` that were last used more than `kept` before `now_ms`,
    /// and in which nothing except ignored files would be lost.
    pub(crate) async fn expire(&self, repository: &Repository, kept: Duration, now_ms: u64) -> Result<()> {
        let oldest = now_ms.saturating_sub(kept.as_millis() as u64);
        for row in self.store.workspaces(limits::WORKTREES_MAX).await? {
            let ready = row.repository == repository.main && row.state == WorkspaceState::Ready;
            if !ready || self.last_used_ms(repository, &row).await? > oldest {
                continue;
            }
            let inspection = self.inspect(&row, &[], BranchOnDelete::Merged).await?;
            if inspection.info.is_disposable() && inspection.lost.count == 0 {
                tracing::info!(workspace = row.id, "deleting a workspace that was not used");
                self.delete(&row, &[], BranchOnDelete::Merged, Some(&inspection.token)).await?;
            }
        }
        Ok(())
    }

    /// Deletes a workspace without changes and without commits since its creation. Returns whether
    /// it was deleted.
    pub(crate) async fn delete_unchanged(&self, row: &WorkspaceRow, sessions: &[String]) -> Result<bool> {
        let inspection = self.inspect(row, sessions, BranchOnDelete::Merged).await?;
        let info = &inspection.info;
        let unchanged = info.is_disposable() && !info.has_work() && inspection.lost.count == 0;
        if row.state != WorkspaceState::Ready || !unchanged {
            return Ok(false);
        }
        Ok(self.delete(row, sessions, BranchOnDelete::Merged, Some(&inspection.token)).await?.deleted)
    }

    /// Returns when the workspace was created, or when a session or git last worked in it,
    /// whichever is the latest.
    async fn last_used_ms(&self, repository: &Repository, row: &WorkspaceRow) -> Result<u64> {
        let session = self.store.sessions_in(&row.path, 1).await?.first().map_or(0, |session| session.updated_ms);
        let files = repository.git_dir_of(&row.path).map(|own| ["HEAD", "index", "logs/HEAD"].map(|name| own.join(name)));
        let modified = files.into_iter().flatten().filter_map(|file| file.metadata().ok()?.modified().ok());
        let git = modified.filter_map(|time| time.duration_since(UNIX_EPOCH).ok()).max().unwrap_or_default();
        Ok(row.created_ms.max(session).max(git.as_millis() as u64))
    }
}
