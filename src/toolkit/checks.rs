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
use super::sandbox_notes::{SandboxNotes, in_lines};
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

#[derive(Default)]
pub(crate) struct ChecksReport {
    pub results: Vec<CheckResult>,
    /// The text for the model.
    pub text: String,
    /// The text for a person, without notes that only a model needs.
    pub shown: String,
}

/// Runs all commands in the session's directory. A command that cannot be started is an error, and
/// so is a cancellation.
pub(crate) async fn run(commands: &[String], context: &ToolContext) -> Result<ChecksReport, ToolError> {
    let mut report = ChecksReport::default();
    let mut is_refused = false;
    for command in commands {
        let ended = run_one(command, report.results.len() + 1, &report.shown, context).await;
        let (result, output, notes) = ended.map_err(|ToolError(error)| ToolError(format!("{}{error}", report.text)))?;
        is_refused |= notes.setting.is_some();
        report.add(result, &output, &notes, context);
    }
    if let Some(confinement) = context.check_confinement.as_ref().filter(|_| report.results.iter().any(|result| !result.passed)) {
        let hint = format!("[{}]\n", confinement.hint);
        report.shown += if is_refused { &hint } else { "" };
        report.text += &hint;
    }
    Ok(report)
}

impl ChecksReport {
    /// Adds a command that ended, with its output if it failed.
    fn add(&mut self, result: CheckResult, output: &str, notes: &SandboxNotes, context: &ToolContext) {
        let summary = summary(&result, context.checks.timeout);
        self.text += &summary;
        self.shown += &summary;
        if !result.passed {
            // The confinement of automatic checks has settings of its own.
            let person = if context.check_confinement.is_some() { in_lines(&notes.facts) } else { notes.person() };
            let artifact = result.artifact.as_deref();
            add_failing_part(&mut self.text, &format!("{output}{}", notes.model_lines()), artifact, false);
            add_failing_part(&mut self.shown, output, artifact, true);
            self.shown += &person;
        }
        self.results.push(result);
    }
}

/// Adds the failing part of an output to a text, and the file with the whole output; a person needs
/// the file `only_if_cut`.
fn add_failing_part(text: &mut String, output: &str, artifact: Option<&Path>, only_if_cut: bool) {
    let room = VERIFY_RESULT_BYTES_MAX.saturating_sub(text.len()).min(VERIFY_PART_BYTES_MAX);
    let part = failing_part(output, room);
    let is_named = if only_if_cut { part != output } else { !part.is_empty() };
    *text += &part;
    if let Some(artifact) = artifact.filter(|_| is_named) {
        *text += &format!("[whole output: {}]\n", artifact.display());
    }
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

/// A command that ended, its output, whose size is bounded by the limits of [`Capture`], and notes.
type EndedCheck = (CheckResult, String, SandboxNotes);

async fn run_one(line: &str, number: usize, before: &str, context: &ToolContext) -> Result<EndedCheck, ToolError> {
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
    let (exit_code, notes) = match ended {
        CommandEnd::Exited(status) => {
            let notes = command.sandbox.as_ref().map(|sandbox| SandboxNotes::new(sandbox, &status, &output));
            (Some(status.code), notes.unwrap_or_default())
        }
        CommandEnd::TimedOut => (None, SandboxNotes::default()),
        CommandEnd::Cancelled => return Err(ToolError::new("cancelled; all its processes were ended")),
        CommandEnd::Failed(error) => return Err(error),
    };
    let duration_ms = begun.elapsed().as_millis() as u64;
    let (command, passed) = (line.to_owned(), exit_code == Some(0));
    Ok((CheckResult { command, passed, exit_code, duration_ms, artifact: captured.artifact }, output, notes))
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
