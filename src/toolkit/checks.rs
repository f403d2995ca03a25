//! Runs check commands one after another.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use super::artifact::log_path;
use super::capture::Capture;
use super::context::ToolContext;
use super::failing_part::failing_part;
use super::follow::{CommandEnd, follow};
use super::live_output::LiveOutput;
use super::output::ToolError;
use super::sandbox_notes::sandbox_notes;
use super::shell::NON_INTERACTIVE;
use crate::config::DEPTH_VARIABLE;
use crate::content::CheckResult;
use crate::limits;
use crate::process::Command;
use crate::terminal_text::printed;

/// Maximum size of the failing part of one check command's output, in bytes.
const VERIFY_PART_BYTES_MAX: usize = 8 << 10;
/// Maximum size of all failing parts in one result of `verify`, in bytes.
const VERIFY_RESULT_BYTES_MAX: usize = 24 << 10;

/// Runs all commands in the session's directory and returns their results, and the text for the
/// model. A command that cannot be started is an error, and so is a cancellation.
pub(crate) async fn run(commands: &[String], context: &ToolContext) -> Result<(Vec<CheckResult>, String), ToolError> {
    let (mut results, mut text) = (Vec::new(), String::new());
    for command in commands {
        let number = results.len() + 1;
        let ended = run_one(command, number, &text, context).await;
        let (result, part) = ended.map_err(|ToolError(error)| ToolError(format!("{text}{error}")))?;
        text += &summary(&result, context.checks.timeout);
        let room = VERIFY_RESULT_BYTES_MAX.saturating_sub(text.len()).min(VERIFY_PART_BYTES_MAX);
        if !result.passed {
            let part = failing_part(&part, room);
            text += &part;
            if let Some(artifact) = result.artifact.as_ref().filter(|_| !part.is_empty()) {
                text += &format!("[whole output: {}]\n", artifact.display());
            }
        }
        results.push(result);
    }
    if let Some(confinement) = context.check_confinement.as_ref().filter(|_| results.iter().any(|result| !result.passed)) {
        text += &format!("[{}]\n", confinement.hint);
    }
    Ok((results, text))
}

/// Describes in one line how a command ended.
fn summary(result: &CheckResult, timeout: Duration) -> String {
    let CheckResult { command, passed, exit_code, duration_ms, .. } = result;
    let seconds = *duration_ms as f64 / 1000.0;
    match (passed, exit_code) {
        (true, _) => format!("`{command}` passed in {seconds:.1} s\n"),
        (false, Some(code)) => format!("`{command}` failed with exit code {code} in {seconds:.1} s\n"),
        (false, None) => format!("`{command}` was ended after {} s without a result\n", timeout.as_secs()),
    }
}

/// Runs a command. Also returns its output, whose size is bounded by the limits of [`Capture`].
async fn run_one(line: &str, number: usize, before: &str, context: &ToolContext) -> Result<(CheckResult, String), ToolError> {
    if line.contains('\0') {
        return Err(ToolError::new("verify: commands: contains a NUL character"));
    }
    let mut command = Command::shell(line, &context.workspace.cwd).variables(context.variables.iter());
    for (name, value) in NON_INTERACTIVE {
        command = command.env(name, value);
    }
    for name in &*context.secrets {
        command = command.env_remove(name);
    }
    command = command.env(DEPTH_VARIABLE, (context.depth + 1).to_string());
    for (name, value) in context.check_confinement.iter().flat_map(|confinement| &confinement.variables) {
        command = command.env(name, value);
    }
    let command = command.sandbox(context.sandbox.clone());
    let begun = Instant::now();
    let capture = Capture::saved(log_path(context, &format!("verify-{number}")));
    let mut shown = LiveOutput { capture, head: format!("{before}$ {line}\n"), progress: &context.progress };
    let child = context.launcher.spawn(&command)?;
    let ended = follow(child, Some(context.checks.timeout), &context.cancel, &mut shown).await;
    let captured = shown.capture.finish().await;
    let mut output = captured.text;
    if let Some(whole) = captured.artifact.as_ref().filter(|_| captured.truncated).and_then(|path| whole(path, &output)) {
        output = whole;
    }
    let exit_code = match ended {
        CommandEnd::Exited(status) => {
            let notes = command.sandbox.as_ref().map(|sandbox| sandbox_notes(sandbox, &status, &output));
            output += &notes.unwrap_or_default();
            Some(status.code)
        }
        CommandEnd::TimedOut => None,
        CommandEnd::Cancelled => return Err(ToolError::new("cancelled; all its processes were ended")),
        CommandEnd::Failed(error) => return Err(error),
    };
    let duration_ms = begun.elapsed().as_millis() as u64;
    let (command, passed) = (line.to_owned(), exit_code == Some(0));
    Ok((CheckResult { command, passed, exit_code, duration_ms, artifact: captured.artifact }, output))
}

/// Returns the saved output as a terminal would show it, with the `shown` part of an output that is
/// longer than its file; `None` if the file cannot be read.
fn whole(path: &Path, shown: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(limits::BASH_OUTPUT_BYTES_MAX as u64).read_to_end(&mut bytes).ok()?;
    // The file ends before the output if the output is too long.
    let rest = if bytes.len() < limits::BASH_OUTPUT_BYTES_MAX { "" } else { shown };
    Some(printed(&bytes) + rest)
}
