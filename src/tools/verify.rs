//! `verify`: runs the project's check commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::AccessShape;
use crate::content::{CheckResult, ToolContent, ToolKind};
use crate::limits;
use crate::permission::shell::assignment;
use crate::permission::{Access, AccessKind};
use crate::toolkit::checks::ChecksReport;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties, checks};
use crate::workspace::Workspace;

pub(super) struct Verify;

/// Runs the project's check commands, such as its tests, and returns the failing part of their
/// output.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct VerifyInput {
    /// Default: the commands that the settings or AGENTS.md declare, else `make test` if the
    /// Makefile has that target. Each runs in its own shell.
    commands: Option<Vec<String>>,
}

/// The details of the result of a `verify` call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct VerifyDetails {
    passed: bool,
    /// 0, else the exit code of the first command that failed; 124 if that command exceeded the
    /// time limit.
    exit_code: i32,
    duration_ms: u64,
    commands: Vec<CheckResult>,
}

/// The exit code of timeout(1) for a command that exceeded the time limit.
const TIMED_OUT: i32 = 124;

impl Tool for Verify {
    type Input = VerifyInput;
    type Details = VerifyDetails;
    const NAME: &'static str = "verify";
    const LABEL: &'static str = "Run checks";
    const KIND: ToolKind = ToolKind::Execute;
    const PROPERTIES: ToolProperties = ToolProperties { runs_commands: true, ..ToolProperties::NONE };
    const ACCESS: &'static [AccessShape] = AccessShape::COMMAND;

    fn complete(&self, input: &mut VerifyInput, context: &ToolContext) -> Result<(), ToolError> {
        let commands = match input.commands.take().filter(|commands| !commands.is_empty()) {
            Some(commands) => commands,
            None => context.checks.known(&context.workspace.cwd),
        };
        if commands.is_empty() {
            return Err(ToolError::new("no check commands are known: give commands, or declare them in AGENTS.md"));
        }
        if commands.len() > limits::VERIFY_COMMANDS_MAX || commands.iter().any(|command| command.trim().is_empty()) {
            let most = limits::VERIFY_COMMANDS_MAX;
            return Err(ToolError(format!("commands: at most {most}, none of them empty")));
        }
        input.commands = Some(commands);
        Ok(())
    }

    fn title(&self, input: &VerifyInput, _: &Workspace) -> String {
        let all = input.commands.as_deref().unwrap_or_default().join("; ");
        let shown: String = all.chars().map(|c| if c.is_control() { ' ' } else { c }).take(limits::BASH_TITLE_CHARS_MAX).collect();
        format!("Verify: {shown}{}", if shown.len() < all.len() { " …" } else { "" })
    }

    /// Declares the commands as executed. Several commands are evaluated as separate shells, so
    /// that the text of one cannot hide the next.
    fn access(&self, input: &VerifyInput) -> Access {
        let command = match input.commands.as_deref().unwrap_or_default() {
            [command] => command.clone(),
            commands => commands.iter().map(|command| format!("bash -c {}\n", quoted(command))).collect(),
        };
        Access { kind: AccessKind::Exec, paths: vec![".".into()], command: Some(command), ..Access::none() }
    }

    async fn preview(&self, input: &VerifyInput, _: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        Ok(vec![ToolContent::text(input.commands.as_deref().unwrap_or_default().join("\n"))])
    }

    async fn run(&self, input: VerifyInput, context: &ToolContext) -> Result<ToolOutput<VerifyDetails>, ToolError> {
        let ChecksReport { results: commands, text, shown } = checks::run(&input.commands.unwrap_or_default(), context).await?;
        let failed = commands.iter().find(|result| !result.passed);
        let details = VerifyDetails {
            passed: failed.is_none(),
            exit_code: failed.map_or(0, |result| result.exit_code.unwrap_or(TIMED_OUT)),
            duration_ms: commands.iter().map(|result| result.duration_ms).sum(),
            commands,
        };
        Ok(ToolOutput::text(text, details).shown_as(shown))
    }
}

/// Quotes the command as one word in shell syntax.
fn quoted(command: &str) -> String {
    assignment("", command).trim_start_matches('=').trim_end().to_owned()
}
