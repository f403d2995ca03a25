//! Takes the work of a workspace into the user's working tree (docs/WORKSPACES.md).

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::directories::directory;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::sessions::session::COMPARISON;
use crate::api::workspaces::{WorkspaceSession, ids, require_idle, sessions_in, workspace, worktrees};
use crate::error::Result;
use crate::limits;
use crate::store::WorkspaceRow;
use crate::worktrees::{ApplyMode, ApplyOutcome, ApplyRequest, BranchOnDelete, Worktrees};

/// The workspace whose work is taken over.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ApplyWorkspaceParams {
    pub workspace_id: String,
    /// How the work is taken over. Default: `merge`; `patch` if the workspace started from a commit
    /// that the current branch does not contain, such as one with uncommitted changes.
    pub mode: Option<ApplyMode>,
    /// A directory in the working tree that receives the changes. Default: the main worktree of the
    /// repository.
    pub cwd: Option<PathBuf>,
    /// Message of the commit. Default: the title of the workspace or of its newest session.
    pub message: Option<String>,
}

/// The result. If neither `applied` is true nor `conflicts` has entries, the workspace has no
/// changes that the working tree does not contain.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WorkspaceApplication {
    #[serde(flatten)]
    pub outcome: ApplyOutcome,
    /// Names of workspaces of the same comparison that were deleted, because nothing was changed in
    /// them.
    pub deleted: Vec<String>,
}

pub(crate) struct ApplyWorkspace;

impl Method for ApplyWorkspace {
    type Params = ApplyWorkspaceParams;
    type Result = WorkspaceApplication;
    const NAME: &'static str = "_nuncio/workspace/apply";
    const EXAMPLE: &'static str = r#"{"workspaceId": "project-1a2b3c4d.fix", "mode": "squash"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/workspaces/{workspaceId}/apply")];
    const DOC: &'static str = "Takes the work of a workspace, its commits and its uncommitted changes, into a working tree of the \
         repository: as a merge, as one commit, or as changes of files only. If files have conflicts, nothing is changed. A workspace \
         with a running turn is `session_busy`.";

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        cx.client.authorized()?;
        let worktrees = worktrees(&cx).await?;
        let row = workspace(&cx, &worktrees, &params.workspace_id).await?;
        let sessions = sessions_in(&cx, &row.path).await?;
        require_idle(&row, &sessions)?;
        let cwd = directory(&cx, "cwd", params.cwd.as_deref().unwrap_or(&row.repository))?;
        let title = title(params.message, &row, &sessions);
        let request = ApplyRequest { row: &row, directory: &cwd, mode: params.mode, title: &title };
        let outcome = worktrees.apply(request).await?;
        let deleted = if outcome.applied { delete_unchanged(&cx, &worktrees, &row).await? } else { Vec::new() };
        Ok(Reply::new(WorkspaceApplication { outcome, deleted }))
    }
}

/// Returns the message of the commit.
fn title(given: Option<String>, row: &WorkspaceRow, sessions: &[WorkspaceSession]) -> String {
    let stored = || row.metadata.get("title").and_then(Value::as_str).map(str::to_owned);
    let of_session = || sessions.iter().find_map(|session| session.title.clone());
    let title = given.or_else(stored).or_else(of_session).filter(|title| !title.trim().is_empty());
    title.unwrap_or_else(|| format!("Changes of workspace {}", row.name))
}

/// Deletes the workspaces of the same comparison in which nothing was changed and no turn runs.
/// Returns their names. A failure is logged: the changes have been applied.
async fn delete_unchanged(cx: &CallContext, worktrees: &Worktrees, row: &WorkspaceRow) -> Result<Vec<String>> {
    let Some(comparison) = row.metadata.get(COMPARISON) else { return Ok(Vec::new()) };
    let mut deleted = Vec::new();
    let store = cx.app.sessions().await?.store().clone();
    for other in store.workspaces(limits::WORKTREES_MAX).await? {
        if other.id == row.id || other.repository != row.repository || other.metadata.get(COMPARISON) != Some(comparison) {
            continue;
        }
        let sessions = sessions_in(cx, &other.path).await?;
        let inspection = worktrees.inspect(&other, &ids(&sessions), BranchOnDelete::Merged).await?;
        if require_idle(&other, &sessions).is_err() || inspection.info.has_work() {
            continue;
        }
        close_sessions(cx, &sessions).await?;
        match worktrees.delete_unchanged(&other, &ids(&sessions)).await {
            Ok(true) => deleted.push(other.name),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, workspace = other.id, "deleting an unchanged workspace failed"),
        }
    }
    Ok(deleted)
}

/// Closes the sessions of this process, which ends the processes of their agents.
async fn close_sessions(cx: &CallContext, sessions: &[WorkspaceSession]) -> Result<()> {
    let open = cx.app.sessions().await?;
    for session in sessions.iter().filter(|session| open.opened(&session.session_id).is_some()) {
        if let Err(error) = open.close(&session.session_id).await {
            tracing::warn!(%error, session = session.session_id.as_str(), "closing a session of an unchanged workspace failed");
        }
    }
    Ok(())
}
