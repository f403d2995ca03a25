//! The project's checks at the end of a turn that changed files (`verify.auto`).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use crate::content::{CheckResult, ToolStatus, listed, plain_text};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Notice, Severity, ToolEnd};
use crate::id::ToolCallId;
use crate::limits;
use crate::options::Mode;
use crate::runtime::calls::execute::{CallMaker, EndedCall, ToolCall, ToolUse};
use crate::runtime::calls::hooks;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::session::Turn;
use crate::toolkit::change_scan::{before_command, files_changed};
use crate::toolkit::git::{Git, with_paths};
use crate::toolkit::{ToolContext, ToolError};

/// Code of the notices about checks.
const CODE: &str = "verify";

/// The checks of one turn.
pub(crate) struct Verification<'a> {
    turn: &'a Turn,
    environment: &'a Arc<SessionEnvironment>,
    /// Number of runs so far.
    rounds: u32,
    /// True if the last run failed, so that the commands run again when the model ends the turn.
    failed: bool,
    /// The commands that failed before the first edit; `None` before that run.
    failed_before: Option<Vec<String>>,
}

/// The results in the details of a `verify` call.
#[derive(Default, Deserialize)]
struct Results {
    passed: bool,
    commands: Vec<CheckResult>,
}

impl Results {
    fn failed_commands(&self) -> Vec<String> {
        self.commands.iter().filter(|one| !one.passed).map(|one| one.command.clone()).collect()
    }
}

/// Returns whether checks run at the end of the turns.
pub(crate) fn is_active(environment: &SessionEnvironment) -> bool {
    let settings = &environment.loaded.settings.verify;
    settings.auto && settings.max_rounds > 0 && environment.checks().trusted
}

impl<'a> Verification<'a> {
    /// Creates the checks of a turn, none of which ran.
    pub(crate) fn new(turn: &'a Turn, environment: &'a Arc<SessionEnvironment>) -> Verification<'a> {
        Verification { turn, environment, rounds: 0, failed: false, failed_before: None }
    }

    /// Runs the checks before the first of `calls` that may edit files, if `verify.baseline` is on
    /// and the turn has not run them. Reports which commands fail.
    pub(crate) async fn run_before_edits(&mut self, calls: &[ToolCall]) -> Result<()> {
        let (turn, environment) = (self.turn, self.environment);
        let due = environment.loaded.settings.verify.baseline && self.failed_before.is_none() && self.rounds == 0;
        if !due || !self.may_run() || !calls.iter().any(ToolCall::may_edit) {
            return Ok(());
        }
        let checks = known_checks(environment).await;
        if checks.0.is_empty() || turn.cancel.is_cancelled() {
            return Ok(());
        }
        let ran = self.run(checks).await?;
        let failed = ran.map(|(results, _)| results.failed_commands()).unwrap_or_default();
        // Files that the checks wrote do not count as changes of the turn.
        environment.changes.checked();
        if !failed.is_empty() {
            turn.emit(Body::notice_about(CODE, Severity::Warning, "Checks fail before the first edit", failed.join(", "))).await;
        }
        self.failed_before = Some(failed);
        Ok(())
    }

    /// Prepares for a turn in which another program changes files.
    pub(crate) async fn watch_files(&self) {
        self.environment.changes.begin(false, is_active(self.environment));
        before_command(&context(self.turn, self.environment)).await;
    }

    /// Runs the checks when the model ends the turn, if the turn changed files. Returns the note to
    /// the model, with their output, if they failed, so that the turn has to continue.
    pub(crate) async fn failure(&mut self) -> Result<Option<String>> {
        let (turn, environment) = (self.turn, self.environment);
        let rounds_max = environment.loaded.settings.verify.max_rounds;
        if !self.may_run() || self.rounds >= rounds_max {
            return Ok(None);
        }
        if !self.failed && !files_changed(&context(turn, environment)).await {
            return Ok(None);
        }
        let checks = known_checks(environment).await;
        if checks.0.is_empty() || turn.cancel.is_cancelled() {
            return Ok(None);
        }
        self.rounds += 1;
        let Some((results, output)) = self.run(checks).await? else { return Ok(None) };
        self.failed = !results.passed;
        if results.passed {
            environment.changes.checked();
            return Ok(None);
        }
        let failed = results.failed_commands();
        let before = self.failed_before.iter().flatten().filter(|command| failed.contains(command));
        let before: Vec<&str> = before.map(String::as_str).collect();
        let notice = failure_notice(self.rounds, rounds_max, &failed.join(", "), &before.join(", "), &output);
        let prompt = notice.note_text();
        turn.commit(notice).await?;
        Ok(prompt.filter(|_| self.rounds < rounds_max))
    }

    /// Runs the commands as a call of the tool `verify`; if `changed`, only if rules, the mode or
    /// the user allow it. Returns their results and the text about them; `None` if they could not
    /// be run, which was reported, or if the turn was cancelled.
    async fn run(&self, (commands, changed): (Vec<String>, bool)) -> Result<Option<(Results, String)>> {
        let turn = self.turn;
        let (id, round) = (ToolCallId::new(), self.rounds);
        turn.emit(Body::VerifyStarted { tool_call_id: id.clone(), round, commands: commands.clone() }).await;
        let input = json!({ "commands": commands }).to_string();
        let tool_use = ToolUse { id: id.clone(), name: "verify".into(), input, state: None };
        let maker = if changed { CallMaker::NuncioForModel } else { CallMaker::Nuncio };
        let call = ToolCall::announce_by(maker, turn, self.environment, tool_use).await;
        let EndedCall { completed, messages, .. } = call.finish(turn).await?;
        let Body::ToolCompleted(ToolEnd { status, output, details, .. }) = completed else { return Ok(None) };
        let text = plain_text(&output);
        let results = details.filter(|_| status == ToolStatus::Completed).and_then(|details| Results::deserialize(details).ok());
        let error = results.is_none().then(|| text.clone());
        let Results { passed, commands } = results.unwrap_or_default();
        let body = Body::VerifyCompleted { tool_call_id: id, round, passed, commands: commands.clone(), error: error.clone() };
        turn.commit(body).await?;
        for message in messages {
            turn.commit(hooks::message_notice(message)).await?;
        }
        if let Some(error) = error {
            if !turn.cancel.is_cancelled() {
                turn.emit(Body::notice_about(CODE, Severity::Warning, "The checks could not be run", error)).await;
            }
            return Ok(None);
        }
        Ok(Some((Results { passed, commands }, text)))
    }

    /// Returns whether checks may run in the turn.
    fn may_run(&self) -> bool {
        is_active(self.environment) && self.turn.log.state(|state| state.mode.known().unwrap_or_default()) != Mode::Plan
    }
}

/// Creates the notice about the commands `failed`, and its note to the model. Those in `before`
/// already failed before the first edit. The note tells the model to fix the cause, unless it was
/// the last round.
fn failure_notice(round: u32, rounds_max: u32, failed: &str, before: &str, output: &str) -> Body {
    let (title, next, order) = if round < rounds_max {
        let title = format!("Checks failed (round {round} of {rounds_max})");
        (title, "the model is asked to fix the cause", "Fix the cause, then end your turn: the checks run again.")
    } else {
        let title = format!("Checks still fail after {round} of {rounds_max} rounds");
        (title, "the turn ends", "The turn ended, because the maximum number of runs was reached.")
    };
    let (known, noted) = match before {
        "" => Default::default(),
        before => (
            format!("; failed before the first edit, too: {before}"),
            format!("These failed before your first edit, too: {before}. "),
        ),
    };
    let (title, description) = (title, Some(format!("{failed}{known}; {next}")));
    let note = format!("the project's checks were run because files changed, and failed. {noted}{order} Their output follows.");
    let (code, quoted) = (Some(CODE.into()), Some(output.trim_end().to_owned()));
    Body::Notice(Notice { description, code, note: Some(note), quoted, ..Notice::new(Severity::Warning, title) })
}

/// Returns the commands, and whether some of them are new since the start of the session.
async fn known_checks(environment: &SessionEnvironment) -> (Vec<String>, bool) {
    let (checks, cwd) = (environment.checks().clone(), environment.workspace.cwd.clone());
    tokio::task::spawn_blocking(move || checks.automatic(&cwd)).await.unwrap_or_default()
}

fn context(turn: &Turn, environment: &SessionEnvironment) -> ToolContext {
    let mut context = environment.tool_context();
    context.cancel = turn.cancel.child_token();
    context
}

/// Fails if the setting `verify.require_clean` is on and the git working tree has uncommitted
/// changes. A directory without a repository counts as clean.
pub(crate) async fn check_clean(turn: &Turn, environment: &SessionEnvironment) -> Result<()> {
    if !environment.loaded.settings.verify.require_clean {
        return Ok(());
    }
    let context = context(turn, environment);
    let unknown = |error: ToolError| Error::new(Kind::Internal, format!("verify.require_clean: {error}"));
    let Some(git) = Git::find(&context).await.map_err(unknown)? else { return Ok(()) };
    let scope = git.scope(None).map_err(unknown)?;
    let arguments = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--"];
    let output = git.read(with_paths(&arguments, &scope)).await.map_err(unknown)?;
    let names: Vec<String> = output.fields().map(|field| git.show(field.get(3..).unwrap_or_default())).collect();
    if names.is_empty() {
        return Ok(());
    }
    let message = format!("the working tree has uncommitted changes: {}", listed(&names, limits::DIRTY_FILES_SHOWN));
    Err(Error::new(Kind::InvalidRequest, message).hint("commit or stash them, or set verify.require_clean = false"))
}
