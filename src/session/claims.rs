//! The claims of a session's last answer about checks, held against the calls in its log.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::{SessionLog, Turn};
use crate::claims::{CheckEvent, ClaimState, Contradiction, claims, judge};
use crate::content::{CheckResult, ToolStatus};
use crate::error::Result;
use crate::event::{Body, Event, Notice, PermissionDecision, Severity, ToolEnd, ToolStart};
use crate::id::ToolCallId;
use crate::limits;

/// A sentence of an answer that says that a check passed, although it did not.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CheckClaim {
    /// The sentence.
    pub text: String,
    /// The check that it names: a command or a kind, such as `tests`.
    pub check: String,
    /// The fact in the log.
    pub state: ClaimState,
    /// The call that ran the check last.
    pub tool_call_id: Option<ToolCallId>,
}

impl CheckClaim {
    /// Describes the claim and the facts, in one line.
    pub(crate) fn text(&self) -> String {
        let fact = match self.state {
            ClaimState::Failed => "failed when it ran last",
            ClaimState::BeforeLastChange => "ran only before the last change",
            ClaimState::NotRun => "did not run in this session",
        };
        format!("\"{}\": {} {fact}", self.text, self.check)
    }
}

/// The fields that are read of the details of tool results.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CallDetails {
    command: Option<String>,
    exit_code: Option<i32>,
    commands: Vec<CheckResult>,
    file_path: Option<PathBuf>,
    files: Vec<ChangedFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChangedFile {
    file_path: PathBuf,
}

/// Tools that make no check and change no file.
const WITHOUT_CHECKS: [&str; 12] =
    ["bash_kill", "fetch", "git_branch", "git_diff", "git_log", "git_status", "glob", "grep", "list", "plan", "read", "repo_map"];

/// The calls of a session that make checks or changes, oldest first.
#[derive(Default)]
struct Runs {
    events: Vec<(CheckEvent, Option<ToolCallId>)>,
    /// Command lines of the calls that have not ended.
    commands: HashMap<ToolCallId, String>,
    denied: HashSet<ToolCallId>,
    /// A file changed in the last turn.
    changed: bool,
}

/// The code of the notice about claims, which has a line for each.
pub(crate) const CLAIMS: &str = "claims";

/// Returns the claims of `answer` that the log contradicts. Without a change of files in the last
/// turn, there are none.
pub(crate) async fn contradicted(log: &SessionLog, answer: &str) -> Result<Vec<CheckClaim>> {
    let claims = claims(answer);
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let (mut runs, mut after) = (Runs::default(), 0);
    loop {
        let page = log.page(after, limits::PAGE_EVENTS, false).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        page.iter().for_each(|event| runs.apply(event));
    }
    if !runs.changed {
        return Ok(Vec::new());
    }
    let (events, calls): (Vec<CheckEvent>, Vec<Option<ToolCallId>>) = runs.events.into_iter().unzip();
    let found = judge(&claims, &events).into_iter().filter_map(|Contradiction { claim, state, event }| {
        let claim = claims.get(claim)?;
        let tool_call_id = event.and_then(|event| calls.get(event).cloned().flatten());
        Some(CheckClaim { text: claim.text.clone(), check: claim.check.to_string(), state, tool_call_id })
    });
    Ok(found.collect())
}

/// Shows the claims of the turn's answer that the log contradicts in a notice. The calls of the
/// turn are committed.
pub(crate) async fn report(turn: &Turn, answer: &str) -> Result<()> {
    let found = contradicted(&turn.log, answer).await?;
    if !found.is_empty() {
        let lines: Vec<String> = found.iter().map(CheckClaim::text).collect();
        let (title, description) = ("The answer names checks that did not pass", Some(lines.join("\n")));
        let (severity, code) = (Severity::Warning, Some(CLAIMS.into()));
        turn.emit(Body::Notice(Notice { description, code, ..Notice::new(severity, title) })).await;
    }
    Ok(())
}

impl Runs {
    fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted { .. } => self.changed = false,
            Body::ToolStarted(ToolStart { tool_call_id, name, input, .. }) => {
                let command = input["command"].as_str().unwrap_or(name);
                self.commands.insert(tool_call_id.clone(), command.into());
            }
            Body::PermissionResolved(PermissionDecision { tool_call_id, outcome, .. }) if !outcome.allows() => {
                self.denied.insert(tool_call_id.clone());
            }
            Body::ToolCompleted(ToolEnd { tool_call_id: id, tool, status, details, .. }) => {
                let command = self.commands.remove(id).unwrap_or_default();
                let name = tool.as_ref().map_or(command.as_str(), |tool| tool.name.as_str()).to_owned();
                if !self.denied.contains(id) && !WITHOUT_CHECKS.contains(&name.as_str()) {
                    self.add_call(id, &name, command, *status, details.as_ref());
                }
            }
            Body::VerifyCompleted { tool_call_id, commands, .. } => self.add_checks(tool_call_id, commands),
            // The calls of a subagent are in its own log.
            Body::ChildCompleted { .. } => self.add(None, "subagent".into(), None),
            _ => {}
        }
    }

    fn add_call(&mut self, id: &ToolCallId, name: &str, command: String, status: ToolStatus, details: Option<&Value>) {
        let CallDetails { command: ran, exit_code, commands, file_path, files } =
            details.and_then(|details| CallDetails::deserialize(details).ok()).unwrap_or_default();
        match name {
            "write" | "edit" | "apply_patch" => {
                let paths = files.into_iter().map(|file| file.file_path).chain(file_path);
                if status == ToolStatus::Completed && paths.into_iter().any(|path| is_checked(&path)) {
                    self.changed = true;
                    self.events.push((CheckEvent::Change, Some(id.clone())));
                }
            }
            "verify" => self.add_checks(id, &commands),
            "bash" => self.add(Some(id), ran.unwrap_or(command), exit_code),
            name => self.add(Some(id), name.into(), None),
        }
    }

    fn add_checks(&mut self, id: &ToolCallId, results: &[CheckResult]) {
        for result in results {
            let code = result.exit_code.filter(|_| !result.passed).or(result.passed.then_some(0));
            self.add(Some(id), result.command.clone(), code);
        }
    }

    fn add(&mut self, id: Option<&ToolCallId>, line: String, exit_code: Option<i32>) {
        self.events.push((CheckEvent::Command { line, exit_code }, id.cloned()));
    }
}

/// Returns whether checks may depend on a file.
fn is_checked(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    !["md", "markdown", "mdx", "rst", "txt"].contains(&extension.to_ascii_lowercase().as_str())
}
