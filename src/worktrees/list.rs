//! Lists workspaces: by their rows, by their directories, and by the lists of git.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, stream};

use super::inspect::{BranchOnDelete, WorkspaceInfo, name_below};
use super::repository::{ListedWorktree, Repository};
use super::{Worktrees, files};
use crate::error::Result;
use crate::limits;
use crate::store::WorkspaceRow;

/// Maximum number of git worktrees that are inspected concurrently.
const WORKTREES_INSPECTED_MAX: usize = 4;

/// The workspaces of one repository.
struct ProjectWorkspaces {
    rows: Vec<WorkspaceRow>,
    repository: Option<Repository>,
    listed: Vec<ListedWorktree>,
}

impl Worktrees {
    /// Lists the workspaces of the repositories for which `selected` returns true, those of one
    /// repository together, the newest first.
    pub(crate) async fn list(&self, selected: impl Fn(&Path) -> bool) -> Result<Vec<WorkspaceInfo>> {
        let mut all = Vec::new();
        for (main, rows) in self.rows(&selected).await? {
            let project = self.project(&main, rows).await;
            let (repository, listed) = (project.repository.as_ref(), project.listed.as_slice());
            let inspected = stream::iter(project.rows).map(|row| async move {
                let mut info = self.inspect_listed(&row, repository, listed, &[], BranchOnDelete::Merged).await?.info;
                info.changes.without_paths();
                Ok(info)
            });
            let inspected: Vec<Result<WorkspaceInfo>> = inspected.buffered(WORKTREES_INSPECTED_MAX).collect().await;
            all.extend(inspected.into_iter().collect::<Result<Vec<WorkspaceInfo>>>()?);
        }
        Ok(all)
    }

    /// Returns the known workspaces by repository: workspaces with a row and workspaces with a
    /// directory.
    async fn rows(&self, selected: &impl Fn(&Path) -> bool) -> Result<BTreeMap<PathBuf, Vec<WorkspaceRow>>> {
        let mut all: BTreeMap<PathBuf, Vec<WorkspaceRow>> = BTreeMap::new();
        for row in self.store.workspaces(limits::WORKTREES_MAX).await? {
            all.entry(row.repository.clone()).or_default().push(row);
        }
        for (project, repository) in files::projects(&self.root) {
            let rows = all.entry(repository).or_default();
            for name in files::names_in(&self.root.join(&project)) {
                let found = files::unregistered_row(&self.root, &project, &name);
                rows.extend(found.filter(|found| !rows.iter().any(|row| row.id == found.id)));
            }
        }
        all.retain(|repository, _| selected(repository));
        Ok(all)
    }

    /// Adds worktrees that only git lists: their directory and their row are missing.
    async fn project(&self, main: &Path, mut rows: Vec<WorkspaceRow>) -> ProjectWorkspaces {
        let repository = Repository::existing(&self.git, main).await;
        let mut listed = Vec::new();
        if let Some(repository) = &repository {
            // List the workspaces with a problem if git cannot read the repository.
            listed = repository.worktrees(&self.git).await.unwrap_or_default();
            let project = repository.project();
            for worktree in &listed {
                let Some(name) = name_below(&self.root.join(&project), &worktree.path) else { continue };
                let row = files::row_of(&project, name, main.into(), worktree.path.clone());
                if !rows.iter().any(|known| known.id == row.id) {
                    rows.push(row);
                }
            }
        }
        ProjectWorkspaces { rows, repository, listed }
    }
}
