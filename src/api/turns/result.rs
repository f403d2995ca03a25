//! The result of a session's work.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use tokio::time::timeout;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::views::view::Activity;
use crate::api::workspaces::worktrees;
use crate::config::NATIVE;
use crate::content::Usage;
use crate::error::Result;
use crate::event::{Actor, Body, PermissionDecision, PermissionOutcome};
use crate::id::SessionId;
use crate::limits;
use crate::session::claims::{CheckClaim, contradicted};
use crate::session::{Session, WorkView};
use crate::worktrees::ChangesSinceBase;

/// Selects a session.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct GetResultParams {
    pub session_id: SessionId,
    /// Also returns the unified diff of the changes.
    #[serde(default)]
    pub diff: bool,
}

/// The result of a session's work.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionResult {
    pub session_id: SessionId,
    /// The agent that works in the session; `nuncio` is nuncio's own agent.
    pub agent: String,
    pub cwd: PathBuf,
    /// The workspace that contains `cwd`.
    pub workspace_id: Option<String>,
    #[serde(flatten)]
    pub activity: Activity,
    /// Total usage of the session's model requests.
    pub usage: Usage,
    /// Total duration of the turns that have ended, in milliseconds.
    pub duration_ms: u64,
    /// The text of the last answer; empty before the first answer.
    pub answer: String,
    /// Number of permission requests that were denied, without git commands that no message asked
    /// for.
    pub denied: u64,
    /// The project's checks in the last turn, if they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckView>,
    /// Sentences of the last answer that say that a check passed, although it did not run, ran only
    /// before the last change, or failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<CheckClaim>,
    /// The files that changed in the workspace since its creation, as `git diff --stat` prints
    /// them; new files are lines `?? PATH`. Missing if git cannot read them. For a session outside
    /// of a workspace, the uncommitted changes of its directory, only if the diff was asked for.
    pub changes: Option<String>,
    /// The unified diff of these changes, if it was asked for; at most 256 KiB.
    pub diff: Option<String>,
}

/// A check command of a turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Check")]
pub(crate) struct CheckView {
    /// The command line.
    pub name: String,
    pub outcome: CheckOutcome,
    /// How often the checks ran in the turn.
    pub rounds: u32,
}

/// How a check ended in its last round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckOutcome {
    Passed,
    Failed,
    /// The checks could not be run, or have not ended.
    NotRun,
}

pub(crate) struct GetResult;

impl Method for GetResult {
    type Params = GetResultParams;
    type Result = SessionResult;
    const NAME: &'static str = "_nuncio/session/result";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "diff": true}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/result")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Returns the result of a session's work: the last answer, the changes in its workspace, cost and time. While a turn \
         runs, it is the result so far.";

    async fn call(cx: CallContext, params: GetResultParams) -> Result<Reply<SessionResult>> {
        let id = params.session_id;
        let sessions = cx.authorize(&id).await?;
        let session = sessions.open_read_only(&id).await?;
        let activity = Activity::listed(sessions, &mut sessions.owners(), &sessions.row(&id).await?).await?;
        let (agent, cwd, usage, duration_ms) = session.log.state(|state| {
            let turns = state.turns.after(0);
            let duration_ms = turns.iter().map(|turn| turn.ended_ms.saturating_sub(turn.started_ms)).sum();
            (state.settings.agent.clone(), state.cwd.clone(), state.turns.total().0.unwrap_or_default(), duration_ms)
        });
        let worktrees = worktrees(&cx).await?;
        let containing = worktrees.containing(&cwd).await?;
        let uncommitted = params.diff && containing.is_none();
        let workspace = containing.filter(|row| row.path.is_dir() && cx.client.has_access_to(&row.path));
        let changes = match &workspace {
            Some(row) => changes(&id, worktrees.changes_since_base(row, params.diff)).await,
            None if uncommitted => changes(&id, worktrees.uncommitted_diff(&cwd)).await,
            None => None,
        };
        let (changes, diff) = changes.map_or((None, None), |ChangesSinceBase { summary, diff }| (Some(summary), diff));
        let (answer, denied, checks) = work_of(&session).await?;
        let claims = contradicted(&session.log, &answer).await?;
        Ok(Reply::new(SessionResult {
            session_id: id,
            agent: agent.unwrap_or_else(|| NATIVE.into()),
            cwd,
            workspace_id: workspace.map(|row| row.id),
            activity,
            usage,
            duration_ms,
            answer,
            denied,
            checks,
            claims,
            changes,
            diff,
        }))
    }
}

/// Waits for the changes of a session; `None` if git fails or does not finish in time.
async fn changes(session: &SessionId, read: impl Future<Output = Result<ChangesSinceBase>>) -> Option<ChangesSinceBase> {
    match timeout(limits::GIT_READ, read).await {
        Ok(Ok(changes)) => return Some(changes),
        Ok(Err(error)) => tracing::warn!(%session, %error, "reading the changes failed"),
        Err(_) => tracing::warn!(%session, "reading the changes timed out"),
    }
    None
}

/// Returns the text of the last answer, the number of denied permission requests, and the checks of
/// the last turn. Cancelled requests, and git commands that no message asked for, are not counted.
async fn work_of(session: &Session) -> Result<(String, u64, Vec<CheckView>)> {
    let (mut view, mut denied, mut checks, mut after) = (WorkView::default(), 0, Vec::new(), 0);
    loop {
        let page = session.log.page(after, limits::PAGE_EVENTS, false).await?;
        let Some(last) = page.last() else { return Ok((view.into_answer(), denied, checks)) };
        after = last.seq;
        for event in page {
            match &event.body {
                Body::PermissionResolved(PermissionDecision { outcome, by, .. }) => {
                    let is_counted = *outcome != PermissionOutcome::Cancelled && *by != Actor::Unasked;
                    denied += u64::from(!outcome.allows() && is_counted);
                }
                Body::TurnStarted { .. } => checks.clear(),
                // Round 0 is the state before the turn's changes.
                Body::VerifyStarted { round: rounds @ 1.., commands, .. } => {
                    let check = |name: &String| CheckView { name: name.clone(), outcome: CheckOutcome::NotRun, rounds: *rounds };
                    checks = commands.iter().map(check).collect();
                }
                Body::VerifyCompleted { round: 1.., commands, .. } => {
                    for result in commands {
                        let outcome = if result.passed { CheckOutcome::Passed } else { CheckOutcome::Failed };
                        let of_command = checks.iter_mut().filter(|check| check.name == result.command);
                        of_command.for_each(|check| check.outcome = outcome);
                    }
                }
                _ => {}
            }
            view.apply(&event);
        }
    }
}
