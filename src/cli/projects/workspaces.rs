//! `nuncio workspaces`: creates, lists, applies and deletes git worktrees for sessions.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::api::{
    App, ApplyWorkspace, ApplyWorkspaceParams, CreateWorkspace, CreateWorkspaceParams, DeleteWorkspace, DeleteWorkspaceParams,
    ListWorkspaces, ListWorkspacesParams, WorkspaceApplication, WorkspaceDeletion, WorkspaceView,
};
use crate::cli::flags::workspace_flags::WorkspacesCommand;
use crate::cli::terminal::output::{print, print_json, print_stderr};
use crate::client::SessionClient;
use crate::error::{Error, Result};
use crate::store::WorkspaceState;
use crate::terminal_text::output_line;
use crate::worktrees::{ApplyMode, ApplyOutcome, PathList, WorkspaceInfo};

/// Runs `nuncio workspaces`. Returns the exit code: 1 if a workspace was not applied because of
/// conflicts, or not deleted because it has changed.
pub(crate) async fn run(app: Arc<App>, command: WorkspacesCommand) -> Result<u8> {
    let client = SessionClient::new(app.clone(), "terminal");
    let result = match command {
        WorkspacesCommand::List { here, json } => list(&client, here.then(|| app.cwd.clone()), json).await,
        WorkspacesCommand::Create { name, branch, base, json } => {
            create(&client, CreateWorkspaceParams { cwd: Some(app.cwd.clone()), name, branch, base }, json).await
        }
        WorkspacesCommand::Delete { name, confirm, force, branch, json } => {
            let id = find(&client, &app.cwd, &name).await?;
            let branch =
                serde_json::from_value(branch.into()).map_err(|_| Error::internal("a value of --branch has no meaning"))?;
            let params = |confirm| DeleteWorkspaceParams { workspace_id: id.clone(), confirm, branch };
            let mut answer = client.call::<DeleteWorkspace>(params(confirm)).await?;
            if force && !answer.deleted {
                answer = client.call::<DeleteWorkspace>(params(answer.confirm)).await?;
            }
            report(&answer, json)
        }
        WorkspacesCommand::Apply { name, merge, squash, patch, message, json } => {
            let modes = [(merge, ApplyMode::Merge), (squash, ApplyMode::Squash), (patch, ApplyMode::Patch)];
            let mode = modes.into_iter().find_map(|(given, mode)| given.then_some(mode));
            let workspace_id = find(&client, &app.cwd, &name).await?;
            let params = ApplyWorkspaceParams { workspace_id, mode, cwd: Some(app.cwd.clone()), message };
            report_application(&name, &client.call::<ApplyWorkspace>(params).await?, json)
        }
    };
    app.shut_down().await;
    result
}

async fn list(client: &SessionClient, cwd: Option<PathBuf>, json: bool) -> Result<u8> {
    for workspace in client.call::<ListWorkspaces>(ListWorkspacesParams { cwd }).await?.workspaces {
        if json {
            print_json(line(&workspace)?)?;
        } else {
            print(row(&workspace))?;
        }
    }
    Ok(0)
}

async fn create(client: &SessionClient, params: CreateWorkspaceParams, json: bool) -> Result<u8> {
    let created = client.call::<CreateWorkspace>(params).await?;
    for warning in &created.warnings {
        print_stderr(format!("nuncio: {}\n", output_line(warning)));
    }
    if json {
        print_json(line(&created)?)?;
    } else {
        print(format!("{}\n", created.workspace.info.path.display()))?;
    }
    Ok(0)
}

/// Finds a workspace by its id, or by its name in the repository of `cwd`. Returns its id.
async fn find(client: &SessionClient, cwd: &std::path::Path, name: &str) -> Result<String> {
    let all = client.call::<ListWorkspaces>(ListWorkspacesParams::default()).await?.workspaces;
    let here = client.call::<ListWorkspaces>(ListWorkspacesParams { cwd: Some(cwd.into()) }).await;
    let here = here.map(|here| here.workspaces).unwrap_or_default();
    let by_id = all.iter().find(|workspace| workspace.info.workspace_id == name);
    let found = by_id.or_else(|| here.iter().find(|workspace| workspace.info.name == name));
    found
        .map(|workspace| workspace.info.workspace_id.clone())
        .ok_or_else(|| Error::not_found(format!("workspace {name} not found")).hint("list the workspaces: nuncio workspaces list"))
}

fn line(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(value).map_err(|error| Error::internal(format!("writing the result: {error}")))?;
    Ok(text + "\n")
}

/// Formats a workspace as one line of the list.
fn row(workspace: &WorkspaceView) -> String {
    let WorkspaceInfo { workspace_id, branch, size, changes, unmerged_commits, state, path, .. } = &workspace.info;
    let mut notes = Vec::new();
    if *state != WorkspaceState::Ready {
        notes.push(state.id().to_owned());
    }
    let count = |number: u64, what: &str| (number > 0).then(|| format!("{number} {what}"));
    notes.extend(count(changes.modified.count, "modified"));
    notes.extend(count(changes.untracked.count, "untracked"));
    notes.extend(count(*unmerged_commits, "unmerged"));
    let (sessions, processes) = (workspace.sessions.len() as u64, workspace.info.processes.len() as u64);
    notes.extend(count(sessions, if sessions == 1 { "session" } else { "sessions" }));
    notes.extend(count(processes, if processes == 1 { "process" } else { "processes" }));
    notes.extend(workspace.info.problem.clone());
    let notes = if notes.is_empty() { "clean".into() } else { output_line(&notes.join(", ")) };
    let branch = output_line(branch.as_deref().unwrap_or("(detached)"));
    format!("{workspace_id}  {branch}  {} MiB  {notes}  {}\n", size.div_ceil(1 << 20), output_line(&path.to_string_lossy()))
}

/// Prints what was taken over, or why nothing was. Returns the exit code: 1 for conflicts.
fn report_application(name: &str, answer: &WorkspaceApplication, json: bool) -> Result<u8> {
    let WorkspaceApplication { outcome: ApplyOutcome { applied, mode: _, directory, commit, files, conflicts }, deleted } = answer;
    let code = if conflicts.is_empty() { 0 } else { 1 };
    if json {
        return print_json(line(answer)?).map(|()| code);
    }
    let directory = directory.display();
    let mut lines = Vec::new();
    let number = format!("{} {}", files.count, if files.count == 1 { "file" } else { "files" });
    match (applied, commit) {
        (true, Some(commit)) => {
            lines.push(format!("applied {number} to {directory} as commit {}: {}", &commit[..12], files.line()))
        }
        (true, None) => lines.push(format!("changed {number} of {directory}, without a commit: {}", files.line())),
        (false, _) if conflicts.is_empty() => lines.push(format!("workspace {name} has no changes that {directory} lacks")),
        (false, _) => {
            lines.push(format!("workspace {name} was not applied, {directory} is unchanged; conflicts: {}", conflicts.line()));
            lines.push("commit or undo your changes of these files, or merge your branch in the workspace; then repeat it".into());
        }
    }
    lines.extend(deleted.iter().map(|name| format!("deleted workspace {name}: nothing was changed in it")));
    if *applied {
        lines.push(format!("the workspace is kept; to delete it: nuncio workspaces delete {name}"));
    }
    let text: String = lines.iter().map(|line| output_line(line) + "\n").collect();
    print(text).map(|()| code)
}

/// Prints what was lost or would be lost.
fn report(answer: &WorkspaceDeletion, json: bool) -> Result<u8> {
    let code = if answer.changed { 1 } else { 0 };
    if json {
        return print_json(line(answer)?).map(|()| code);
    }
    let WorkspaceDeletion { workspace: WorkspaceView { info, sessions }, lost_commits, .. } = answer;
    let mut lines = Vec::new();
    if answer.changed {
        lines.push(format!("workspace {} has changed since: it was not deleted", info.name));
    }
    lines.push(match answer.deleted {
        true => format!("deleted {}; lost:", info.path.display()),
        false => format!("deleting {} would lose:", info.path.display()),
    });
    let files = |list: &PathList, what: &str| (!list.is_empty()).then(|| format!("  {} {what}: {}", list.count, list.line()));
    let changes = &info.changes;
    let mut lost = Vec::new();
    lost.extend(files(&changes.modified, "modified"));
    lost.extend(files(&changes.untracked, "untracked"));
    lost.extend(files(&changes.ignored, "ignored"));
    lost.extend(files(&changes.submodules, "submodules"));
    let commits = PathList { count: lost_commits.count, paths: lost_commits.commits.clone() };
    lost.extend(files(&commits, "commits"));
    if lost.is_empty() {
        lost.push("  nothing".into());
    }
    lines.extend(lost);
    lines.extend(sessions.iter().map(|session| format!("used by session {}", session.session_id)));
    lines.extend(info.processes.iter().map(|process| format!("used by process {} ({})", process.pid, process.name)));
    lines.extend(info.locked.iter().map(|reason| format!("locked: {reason}")));
    lines.extend(info.problem.iter().map(|problem| format!("problem: {problem}")));
    if let (Some(branch), true) = (&info.branch, answer.deleted || info.unmerged_commits > 0) {
        lines.push(match answer.branch_deleted {
            true => format!("branch {branch} was deleted"),
            false => format!("branch {branch} is kept: {} commits are not merged", info.unmerged_commits),
        });
    }
    if let Some(token) = &answer.confirm {
        lines.push(format!("to delete it: nuncio workspaces delete {} --confirm {token}", info.workspace_id));
    }
    let text: String = lines.iter().map(|line| output_line(line) + "\n").collect();
    print(text).map(|()| code)
}
