//! Workspaces: git worktrees that nuncio creates for sessions, outside the repository, in
//! `worktrees/PROJECT/NAME` of its data directory. Each has a row in the store, which is written
//! before the worktree and removed after it, so that a killed process leaves nothing unlisted.

mod apply;
mod apply_files;
mod changes;
mod comparison_settings;
mod create;
mod delete;
mod files;
mod git;
mod inspect;
mod list;
mod prepare;
mod repository;
mod retention;
mod size;
mod tree_snapshot;
mod uncommitted;
mod working_tree;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::config::DataPaths;
use crate::error::{Error, Kind, Result};
use crate::process::ProcessLauncher;
use crate::store::{Store, WorkspaceRow, WorkspaceState};
use crate::workspace::create_private_dir;

pub(crate) use apply::{ApplyMode, ApplyOutcome, ApplyRequest};
pub(crate) use changes::ChangesSinceBase;
pub(crate) use create::{CreatedWorktree, NewWorktree, WorktreeName};
pub(crate) use delete::Deletion;
pub(crate) use inspect::{BranchOnDelete, LostCommits, PathList, WorkspaceInfo};
pub(crate) use prepare::Preparation;
pub(crate) use repository::Repository;
pub(crate) use tree_snapshot::{FormerContent, SnapshotChange, TreeSnapshot};

use git::GitRunner;

/// Maximum size of the metadata of a workspace, as JSON in bytes.
const WORKTREE_METADATA_BYTES_MAX: usize = 16 << 10;

/// Creates, inspects and deletes workspaces.
#[derive(Clone)]
pub(crate) struct Worktrees {
    store: Store,
    git: GitRunner,
    /// Directory of all worktrees.
    root: PathBuf,
}

impl Worktrees {
    /// Opens the worktrees in nuncio's data directory.
    pub(crate) fn open(store: Store, launcher: ProcessLauncher, places: &DataPaths) -> Result<Worktrees> {
        let git = GitRunner::new(launcher, places);
        if !store.is_read_only() {
            create_private_dir(&git.temp)?;
        }
        Ok(Worktrees { store, git, root: places.worktrees() })
    }

    /// Finds the repository that contains `directory`.
    pub(crate) async fn repository(&self, directory: &Path) -> Result<Repository> {
        Repository::find(&self.git, directory).await
    }

    /// Finds the workspace `id`, which has a row in the store, or a directory, or an entry in the
    /// repository.
    pub(crate) async fn row(&self, id: &str) -> Result<WorkspaceRow> {
        if let Some(row) = self.store.workspace(id).await? {
            return Ok(row);
        }
        if let Some(row) = id.split_once('.').and_then(|(project, name)| files::unregistered_row(&self.root, project, name)) {
            let repository = Repository::existing(&self.git, &row.repository).await;
            if row.path.is_dir() || repository.is_some_and(|repository| repository.git_dir_of(&row.path).is_some()) {
                return Ok(row);
            }
        }
        Err(Error::not_found(format!("workspace {id} not found")).hint("list the workspaces: nuncio workspaces list"))
    }

    /// Finds the workspace in the store that contains `directory`.
    pub(crate) async fn containing(&self, directory: &Path) -> Result<Option<WorkspaceRow>> {
        let inside = directory.strip_prefix(&self.root).ok();
        let mut names = inside.into_iter().flat_map(Path::components).map(|part| part.as_os_str().to_string_lossy());
        let (Some(project), Some(name)) = (names.next(), names.next()) else { return Ok(None) };
        self.store.workspace(&format!("{project}.{name}")).await
    }

    /// Returns the path to which a deletion renames the worktree.
    fn trash(&self, row: &WorkspaceRow) -> PathBuf {
        row.path.with_file_name(format!(".deleted-{}", row.name))
    }

    /// Checks that the row names a directory of nuncio: only such directories are removed.
    fn check_place(&self, row: &WorkspaceRow) -> Result<()> {
        let inside = row.path.parent().and_then(Path::parent) == Some(&self.root);
        let inside = inside && row.path.file_name().is_some() && files::is_name(&row.name);
        if inside { Ok(()) } else { Err(Error::internal(format!("{} is not a worktree of nuncio", row.path.display()))) }
    }

    /// Merges `change` into the metadata of a workspace: null removes a value. Returns all
    /// metadata.
    pub(crate) async fn change_metadata(&self, row: &WorkspaceRow, change: &Map<String, Value>) -> Result<Map<String, Value>> {
        // Add a row if the workspace was found by its directory.
        self.store.insert_workspace(row).await?;
        let limit = WORKTREE_METADATA_BYTES_MAX;
        let changed = self.store.change_workspace_metadata(&row.id, change, limit).await?;
        changed.ok_or_else(|| {
            let message = format!("metadata: would be larger than {limit} bytes");
            Error::new(Kind::TooLarge, message).hint("remove values by setting them to null")
        })
    }

    async fn set_state(&self, row: &WorkspaceRow, state: WorkspaceState) -> Result<()> {
        self.store.set_workspace_state(&row.id, state).await
    }
}
