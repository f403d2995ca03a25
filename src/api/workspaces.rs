//! Workspaces: git worktrees for sessions (docs/WORKSPACES.md).

pub(super) mod apply;

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::directories::directory;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::views::view::{Activity, SessionStatus};
use crate::config::{ProgramKind, ProjectProgram, Trust};
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::limits;
use crate::process::Command;
use crate::runtime::confinement;
use crate::session::clock::now_ms;
use crate::store::WorkspaceRow;
use crate::worktrees::{
    BranchOnDelete, CreatedWorktree, Deletion, LostCommits, NewWorktree, Preparation, Repository, WorkspaceInfo, WorktreeName,
    Worktrees,
};

/// A session with a directory in a workspace.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceSession {
    pub session_id: SessionId,
    pub status: SessionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A workspace and the sessions in it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Workspace")]
pub(crate) struct WorkspaceView {
    #[serde(flatten)]
    pub info: WorkspaceInfo,
    pub sessions: Vec<WorkspaceSession>,
}

pub(in crate::api) async fn worktrees(cx: &CallContext) -> Result<Worktrees> {
    let store = cx.app.sessions().await?.store().clone();
    Worktrees::open(store, cx.app.services.launcher.clone(), &cx.app.places)
}

/// Returns the workspace `id`. Fails if the client has no access to its repository.
pub(in crate::api) async fn workspace(cx: &CallContext, worktrees: &Worktrees, id: &str) -> Result<WorkspaceRow> {
    let row = worktrees.row(id).await?;
    if !cx.client.has_access_to(&row.repository) {
        return Err(Error::new(Kind::Forbidden, format!("workspace {id} is outside the allowed roots")));
    }
    Ok(row)
}

pub(in crate::api) async fn sessions_in(cx: &CallContext, path: &Path) -> Result<Vec<WorkspaceSession>> {
    let sessions = cx.app.sessions().await?;
    let mut owners = sessions.owners();
    let mut listed = Vec::new();
    for row in sessions.store().sessions_in(path, limits::WORKTREE_PROCESSES_MAX).await? {
        let status = Activity::listed(sessions, &mut owners, &row).await?.status();
        listed.push(WorkspaceSession { session_id: row.id, status, title: row.title });
    }
    Ok(listed)
}

/// Returns the ids of sessions, as they are part of a deletion's token.
pub(in crate::api) fn ids(sessions: &[WorkspaceSession]) -> Vec<String> {
    sessions.iter().map(|session| session.session_id.as_str().to_owned()).collect()
}

/// Returns an error if a turn of one of the sessions runs.
pub(in crate::api) fn require_idle(row: &WorkspaceRow, sessions: &[WorkspaceSession]) -> Result<()> {
    let Some(busy) = sessions.iter().find(|session| session.status == SessionStatus::Busy) else { return Ok(()) };
    let message = format!("a turn of session {} runs in workspace {}", busy.session_id, row.name);
    Err(Error::new(Kind::SessionBusy, message).hint(format!("cancel it: nuncio sessions cancel {}", busy.session_id)))
}

async fn view(cx: &CallContext, worktrees: &Worktrees, row: &WorkspaceRow) -> Result<WorkspaceView> {
    let sessions = sessions_in(cx, &row.path).await?;
    let inspection = worktrees.inspect(row, &ids(&sessions), BranchOnDelete::Merged).await?;
    Ok(WorkspaceView { info: inspection.info, sessions })
}

/// The workspace to create: a git worktree with a branch of its own. Its `path` is the `cwd` of
/// sessions in it.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateWorkspaceParams {
    /// A directory in the repository; the server's directory when it is missing.
    pub cwd: Option<PathBuf>,
    /// Name of the workspace and of its directory: letters, digits, `-`, `_` and `.`. Default:
    /// `w1`, `w2` and so on.
    pub name: Option<String>,
    /// The branch: a new one, or an existing one that no worktree uses. Default: `nuncio/NAME`.
    pub branch: Option<String>,
    /// Branch or commit where a new branch starts. Default: HEAD of `cwd`.
    pub base: Option<String>,
}

/// The new workspace.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CreatedWorkspace {
    pub workspace: WorkspaceView,
    /// The failures of its preparation: files that were not copied, a failed setup command.
    pub warnings: Vec<String>,
}

pub(crate) struct CreateWorkspace;

impl Method for CreateWorkspace {
    type Params = CreateWorkspaceParams;
    type Result = CreatedWorkspace;
    const NAME: &'static str = "_nuncio/workspace/create";
    const EXAMPLE: &'static str = r#"{"cwd": "/home/me/project", "name": "fix", "base": "main"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/workspaces").status(201)];
    const DOC: &'static str = "Creates a workspace: a git worktree with a branch, outside the repository. The `path` of the result \
         is the `cwd` of new sessions in it.";

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        let CreateWorkspaceParams { cwd, name, branch, base } = params;
        let name = name.map_or(WorktreeName::Free(None), WorktreeName::Exact);
        let created = create(&cx, cwd.as_deref(), name, branch, base).await?;
        let worktrees = worktrees(&cx).await?;
        let workspace = view(&cx, &worktrees, &created.row).await?;
        Ok(Reply::new(CreatedWorkspace { workspace, warnings: created.warnings }))
    }
}

/// Creates a workspace of the repository that contains `cwd`, by default the server's directory.
pub(in crate::api) async fn create(
    cx: &CallContext,
    cwd: Option<&Path>,
    name: WorktreeName,
    branch: Option<String>,
    base: Option<String>,
) -> Result<CreatedWorktree> {
    cx.client.authorized()?;
    let cwd = directory(cx, "cwd", cwd.unwrap_or(&cx.app.cwd))?;
    let worktrees = worktrees(cx).await?;
    let repository = worktrees.repository(&cwd).await?;
    // Files in the directory can refer to a repository anywhere.
    cx.client.require_dir(&repository.main)?;
    let services = &cx.app.services;
    let loaded = services.settings(&repository.main)?;
    let of_project = loaded.set_by_project("worktree.setup");
    let unused = loaded.ignored.iter().any(|name| name.starts_with("worktree"));
    let unused = unused.then(|| format!("[worktree] of the project was not used ({})", loaded.ignored_hint(&repository.main)));
    let settings = loaded.settings.worktree;
    if settings.retention_days > 0 {
        let kept = Duration::from_secs(settings.retention_days.saturating_mul(86_400));
        if let Err(error) = worktrees.expire(&repository, kept, now_ms()).await {
            tracing::warn!(%error, "deleting unused workspaces failed");
        }
    }
    let trusted = is_trusted(&Trust::load(&cx.app.places), &repository, &cwd);
    let program =
        ProjectProgram::new(&services.places, &services.user.settings.trust, &repository.main, ProgramKind::Setup, of_project);
    let hint = format!(" ({})", program.hint());
    let confine = move |command: Command, worktree: &Path| {
        let variables = confinement::variables(&program, &[]);
        let command = variables.into_iter().fold(command, |command, (name, value)| command.env(name, value));
        command.confined(&confinement::confined(program.clone(), &[worktree.to_owned()]))
    };
    let preparation = Preparation { trusted, settings, of_project, confine: Box::new(confine), hint };
    let new = NewWorktree { repository, directory: cwd, name, branch, base, preparation, now_ms: now_ms() };
    let mut created = worktrees.create(new).await?;
    created.warnings.extend(unused);
    Ok(created)
}

/// Returns whether the programs of the repository of `directory` may run. A directory that only
/// refers to a trusted repository is not trusted, nor is a repository nested in a trusted one.
fn is_trusted(trust: &Trust, repository: &Repository, directory: &Path) -> bool {
    let nested = |trusted: PathBuf| trusted != repository.main && trusted.ancestors().any(|above| above.join(".git").exists());
    let covered = trust.covering(&repository.main).is_some_and(|trusted| !nested(trusted));
    covered && trust.covers(directory) && repository.has(directory)
}

/// Selects workspaces.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListWorkspacesParams {
    /// A directory in a repository: lists only the workspaces of this repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
}

/// Workspaces by repository, the newest first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WorkspaceList {
    pub workspaces: Vec<WorkspaceView>,
}

pub(crate) struct ListWorkspaces;

impl Method for ListWorkspaces {
    type Params = ListWorkspacesParams;
    type Result = WorkspaceList;
    const NAME: &'static str = "_nuncio/workspace/list";
    const ROUTES: &'static [Route] = &[Route::get("/v1/workspaces")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the workspaces, also those whose creation or deletion was interrupted, or whose directory is \
         missing. The lists of paths are empty.";

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        let worktrees = worktrees(&cx).await?;
        let only = match &params.cwd {
            Some(cwd) => Some(worktrees.repository(&directory(&cx, "cwd", cwd)?).await?.main),
            None => None,
        };
        let selected = |main: &Path| only.as_deref().is_none_or(|only| only == main) && cx.client.has_access_to(main);
        let mut views = Vec::new();
        for info in worktrees.list(selected).await? {
            let sessions = sessions_in(&cx, &info.path).await?;
            views.push(WorkspaceView { info, sessions });
        }
        Ok(Reply::new(WorkspaceList { workspaces: views }))
    }
}

/// A workspace.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WorkspaceParams {
    pub workspace_id: String,
}

pub(crate) struct GetWorkspace;

impl Method for GetWorkspace {
    type Params = WorkspaceParams;
    type Result = WorkspaceView;
    const NAME: &'static str = "_nuncio/workspace/status";
    const EXAMPLE: &'static str = r#"{"workspaceId": "project-1a2b3c4d.fix"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/workspaces/{workspaceId}")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str =
        "Returns the state of a workspace: branch, size, changes, unmerged commits, sessions and processes in it.";

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        let worktrees = worktrees(&cx).await?;
        let row = workspace(&cx, &worktrees, &params.workspace_id).await?;
        Ok(Reply::new(view(&cx, &worktrees, &row).await?))
    }
}

/// A change of the metadata of a workspace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SetMetadataParams {
    workspace_id: String,
    /// The values to set, by name, for example `title` and `notes`. `null` removes a value; an
    /// object is merged with the stored one (RFC 7396).
    metadata: Map<String, Value>,
}

/// The metadata of a workspace.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceMetadata {
    workspace_id: String,
    /// All values, by name.
    metadata: Map<String, Value>,
}

pub(crate) struct SetWorkspaceMetadata;

impl Method for SetWorkspaceMetadata {
    type Params = SetMetadataParams;
    type Result = WorkspaceMetadata;
    const NAME: &'static str = "_nuncio/workspace/set_metadata";
    const EXAMPLE: &'static str =
        r#"{"workspaceId": "project-1a2b3c4d.fix", "metadata": {"title": "Fix the parser", "notes": null}}"#;
    const ROUTES: &'static [Route] = &[Route::patch("/v1/workspaces/{workspaceId}")];
    const DOC: &'static str =
        "Changes values that belong to a workspace, such as its title and notes. Together they have at most 16 KiB.";

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        cx.client.authorized()?;
        let SetMetadataParams { workspace_id, metadata } = params;
        let worktrees = worktrees(&cx).await?;
        let row = workspace(&cx, &worktrees, &workspace_id).await?;
        let metadata = worktrees.change_metadata(&row, &metadata).await?;
        Ok(Reply::new(WorkspaceMetadata { workspace_id, metadata }))
    }
}

/// The workspace to delete.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeleteWorkspaceParams {
    pub workspace_id: String,
    /// The token from the answer that named what would be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// The treatment of the branch.
    #[serde(default)]
    pub branch: BranchOnDelete,
}

/// The answer to a deletion: what would be lost, or what was lost.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceDeletion {
    pub deleted: bool,
    /// True if the state has changed since the answer with the token `confirm`, so that nothing was
    /// deleted.
    pub changed: bool,
    /// Repeating the call with this token deletes the workspace, if its state does not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    pub branch_deleted: bool,
    /// The state before the deletion. `changes` are lost.
    pub workspace: WorkspaceView,
    /// Commits that are lost, because no other branch, tag or remote branch contains them.
    pub lost_commits: LostCommits,
}

pub(crate) struct DeleteWorkspace;

impl Method for DeleteWorkspace {
    type Params = DeleteWorkspaceParams;
    type Result = WorkspaceDeletion;
    const NAME: &'static str = "_nuncio/workspace/delete";
    const EXAMPLE: &'static str = r#"{"workspaceId": "project-1a2b3c4d.fix"}"#;
    const ROUTES: &'static [Route] = &[Route::delete("/v1/workspaces/{workspaceId}")];
    const DOC: &'static str = "Deletes a workspace in two steps. The first call deletes nothing: it returns what would be lost, and a \
         token. The second call, with the token as `confirm`, deletes the workspace if nothing has changed since. A workspace \
         with a running turn is `session_busy`.";

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        cx.client.authorized()?;
        let worktrees = worktrees(&cx).await?;
        let row = workspace(&cx, &worktrees, &params.workspace_id).await?;
        let sessions = sessions_in(&cx, &row.path).await?;
        if params.confirm.is_some() {
            require_idle(&row, &sessions)?;
        }
        let confirm = params.confirm.as_deref();
        let Deletion { inspection, deleted, branch_deleted } =
            worktrees.delete(&row, &ids(&sessions), params.branch, confirm).await?;
        Ok(Reply::new(WorkspaceDeletion {
            deleted,
            changed: confirm.is_some() && !deleted,
            confirm: (!deleted).then_some(inspection.token),
            branch_deleted,
            workspace: WorkspaceView { info: inspection.info, sessions },
            lost_commits: inspection.lost,
        }))
    }
}
