//! `nuncio run --agent A --agent B`: runs the same prompts with several agents, each in a workspace
//! of its own, and compares their results.

use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::api::{
    App, CheckOutcome, CheckView, CloseSession, ComparedAgent, Comparison, DeleteWorkspace, DeleteWorkspaceParams, GetResult,
    GetResultParams, Prompt, PromptParams, SessionParams, StartComparison, StartComparisonParams, title_of,
};
use crate::app::on_signal;
use crate::cli::errors::{CHECKS_FAILED, DENIED, exit_code, stop_code};
use crate::cli::flags::run_options::{OutputFormat, RunOptions};
use crate::cli::run::result::RunResult;
use crate::cli::terminal::output::{print, print_json, print_stderr};
use crate::client::SessionClient;
use crate::content::Part;
use crate::error::Result;
use crate::terminal_text::output_line;
use crate::worktrees::BranchOnDelete;

/// Runs the prompts with each agent at the same time. Returns the lowest exit code that is not 0.
pub(in crate::cli) async fn run(app: Arc<App>, agents: &[String], prompts: &[String], options: &RunOptions) -> Result<u8> {
    let client = SessionClient::new(app.clone(), "terminal");
    let cancel = CancellationToken::new();
    crate::task::spawn(on_signal(cancel.clone()));
    let title = prompts.first().map(|prompt| title_of(prompt));
    let params = StartComparisonParams {
        agents: agents.to_vec(),
        with_changes: options.with_changes,
        title,
        ..StartComparisonParams::default()
    };
    let comparison = client.call::<StartComparison>(params).await?;
    report_start(&comparison);
    let entries = comparison.agents.into_iter();
    let mut running: FuturesUnordered<_> = entries.map(|entry| finish(&client, entry, prompts, cancel.child_token())).collect();
    let (mut codes, mut changed) = (Vec::new(), Vec::new());
    while let Some(compared) = running.next().await {
        let compared = compared?;
        codes.push(compared.code);
        if options.format() == OutputFormat::StreamJson {
            print_json(format!("{}\n", json!(compared)))?;
        } else {
            print(text(&compared))?;
        }
        if let Some(workspace) = compared.workspace {
            changed.push(workspace);
        }
    }
    drop(running);
    if options.format() == OutputFormat::Text && !changed.is_empty() {
        print(apply_commands(&changed))?;
    }
    app.shut_down().await;
    Ok(if cancel.is_cancelled() { 130 } else { codes.into_iter().filter(|code| *code != 0).min().unwrap_or(0) })
}

/// Reports the failures of the preparation, and the changes that the workspaces do not contain.
fn report_start(comparison: &Comparison) {
    for entry in &comparison.agents {
        for warning in &entry.warnings {
            print_stderr(format!("{}\n", output_line(&format!("workspace {}: {warning}", entry.workspace))));
        }
    }
    let uncommitted = &comparison.uncommitted;
    if !uncommitted.is_empty() {
        let line = format!(
            "nuncio: the agents start from HEAD, without {} uncommitted changes: {} (to include them: --with-changes)",
            uncommitted.count,
            uncommitted.line()
        );
        print_stderr(format!("{}\n", output_line(&line)));
    }
}

/// Returns the commands that take over the work of an agent.
fn apply_commands(workspaces: &[String]) -> String {
    let commands = workspaces.iter().map(|name| output_line(&format!("  nuncio workspaces apply {name}")) + "\n");
    format!("To take the changes of one agent into this directory:\n{}", commands.collect::<String>())
}

async fn finish(client: &SessionClient, entry: ComparedAgent, prompts: &[String], cancel: CancellationToken) -> Result<RunResult> {
    let (mut stop_reason, mut error, mut code) = (None, None, 0);
    for prompt in prompts {
        let request = PromptParams::new(&entry.session_id, vec![Part::text(prompt.clone())]);
        match client.call_until::<Prompt>(request, cancel.clone()).await {
            Ok(response) => (stop_reason, code) = (Some(response.stop_reason), stop_code(response.stop_reason)),
            Err(failed) => (stop_reason, code, error) = (None, exit_code(&failed), Some(failed.to_string())),
        }
        if code != 0 {
            break;
        }
    }
    let params = GetResultParams { session_id: entry.session_id.clone(), diff: false };
    let result = client.call::<GetResult>(params).await?;
    let has_failed = |check: &CheckView| check.outcome != CheckOutcome::Passed;
    code = match code {
        0 if result.checks.iter().any(has_failed) => CHECKS_FAILED,
        0 if result.denied > 0 => DENIED,
        code => code,
    };
    let is_deleted = match delete_unchanged(client, &entry).await {
        Ok(is_deleted) => is_deleted,
        Err(error) => {
            tracing::warn!(%error, workspace = entry.workspace, "deleting an unchanged workspace failed");
            false
        }
    };
    let workspace = Some(entry.workspace).filter(|_| !is_deleted);
    Ok(RunResult { workspace, stop_reason, error, output: None, result, code })
}

/// Deletes the workspace of an agent that has changed nothing. Returns whether it was deleted.
async fn delete_unchanged(client: &SessionClient, entry: &ComparedAgent) -> Result<bool> {
    // Ends the processes of the agent, which run in the workspace.
    client.call::<CloseSession>(SessionParams { session_id: entry.session_id.clone() }).await?;
    let params =
        |confirm| DeleteWorkspaceParams { workspace_id: entry.workspace_id.clone(), confirm, branch: BranchOnDelete::Merged };
    let state = client.call::<DeleteWorkspace>(params(None)).await?;
    let info = &state.workspace.info;
    if !info.is_disposable() || info.has_work() || state.lost_commits.count > 0 {
        return Ok(false);
    }
    Ok(client.call::<DeleteWorkspace>(params(state.confirm)).await?.deleted)
}

fn text(compared: &RunResult) -> String {
    let RunResult { workspace, stop_reason, error, result, output: _, code: _ } = compared;
    let outcome = match (error, stop_reason) {
        (Some(error), _) => format!("failed: {error}"),
        (None, Some(reason)) => json!(reason).as_str().unwrap_or_default().replace('_', " "),
        (None, None) => "not run".into(),
    };
    let cost = result.activity.cost().map(|cost| format!(", ${:.4}", cost.dollars())).unwrap_or_default();
    let head = output_line(&format!("== {}: {outcome}, {:.1} s{cost}", result.agent, result.duration_ms as f64 / 1000.0));
    let session = &result.session_id;
    let place = output_line(&match workspace {
        Some(workspace) => format!("workspace {workspace} in {}, session {session}", result.cwd.display()),
        None => format!("its workspace was deleted, session {session}"),
    });
    let lines = |text: &str| text.lines().map(|line| output_line(line) + "\n").collect::<String>();
    let changes = result.changes.as_deref().filter(|changes| !changes.is_empty()).map_or("no changes\n".into(), lines);
    let checks: String = result.checks.iter().map(check_line).collect();
    format!("{head}\n{}\n{checks}{changes}{place}\n\n", lines(&result.answer))
}

fn check_line(check: &CheckView) -> String {
    let outcome = match check.outcome {
        CheckOutcome::Passed => "passed",
        CheckOutcome::Failed => "failed",
        CheckOutcome::NotRun => "not run",
    };
    let rounds = if check.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", check.rounds) };
    output_line(&format!("check {}: {outcome} ({rounds})", check.name)) + "\n"
}
