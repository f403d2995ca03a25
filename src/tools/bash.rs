//! `bash`: runs a shell command and streams its output. All processes of the command are killed
//! before the call returns, unless the command is a background job.

mod terminal;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{AccessShape, DEPTH_VARIABLE};
use crate::content::{ToolContent, ToolKind};
use crate::limits;
use crate::model::ToolSpec;
use crate::permission::shell::assignment;
use crate::permission::{Access, AccessKind};
use crate::process::{Child, Command, Sandbox};
use crate::toolkit::artifact::log_path;
use crate::toolkit::capture::{Capture, OMITTED};
use crate::toolkit::follow::{CommandEnd, follow_until_moved};
use crate::toolkit::live_output::LiveOutput;
use crate::toolkit::{NON_INTERACTIVE, SandboxNotes, Tool, ToolContext, ToolError, ToolOutput};
use crate::workspace::Workspace;

/// Default timeout of a shell command, in milliseconds.
const BASH_TIMEOUT_MS: u64 = 120_000;

pub(super) struct Bash;

/// Runs a command with bash, without a terminal or input, and returns its output and exit code: no
/// editors, pagers or prompts. The working directory and exported variables carry over to the next
/// call. Processes that still run when it exits are ended: start servers with `background`. Output
/// above 50 KiB is cut in the middle and kept in a file, so head and tail are not needed.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct BashInput {
    #[serde(alias = "cmd")]
    command: String,
    /// Default 120000, at most 600000; none in background.
    #[serde(default, alias = "timeoutMs")]
    timeout_ms: Option<u64>,
    /// Directory for this call only.
    #[serde(default, alias = "workdir")]
    cwd: Option<String>,
    env: Option<BTreeMap<String, String>>,
    /// Return at once; see bash_output.
    #[serde(default, alias = "run_in_background")]
    background: Option<bool>,
}

/// Removes what `spec`, of `bash`, says about background jobs.
pub(super) fn without_background(spec: &mut ToolSpec) {
    let mut schema = spec.input_schema.clone();
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.remove("background");
        if let Some(Value::String(text)) = properties.get_mut("timeout_ms").and_then(|timeout| timeout.get_mut("description")) {
            *text = text.replace("; none in background", "");
        }
    }
    spec.input_schema = schema;
    spec.description = spec.description.replace(": start servers with `background`", "");
}

/// The details of the result of a `bash` call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum BashDetails {
    /// A command that exited.
    Exited {
        command: String,
        exit_code: i32,
        duration_ms: u64,
        /// The output for the model is not the whole output.
        truncated: bool,
        /// The file with the whole output, if the output is long.
        #[serde(skip_serializing_if = "Option::is_none")]
        artifact: Option<PathBuf>,
    },
    /// A background job; `job` is its number.
    Started { command: String, job: String },
}

impl Tool for Bash {
    type Input = BashInput;
    type Details = BashDetails;
    const NAME: &'static str = "bash";
    const LABEL: &'static str = "Run command";
    const ALIASES: &'static [&'static str] = &["shell", "execute", "run_command"];
    const KIND: ToolKind = ToolKind::Execute;
    const ACCESS: &'static [AccessShape] = AccessShape::COMMAND;

    fn title(&self, input: &BashInput, _: &Workspace) -> String {
        let command = input.command.trim();
        let first: String = command.lines().next().unwrap_or_default().chars().take(limits::BASH_TITLE_CHARS_MAX).collect();
        let more = if first.len() < command.len() { " …" } else { "" };
        let suffix = if input.background == Some(true) { " in background" } else { "" };
        format!("`{first}{more}`{suffix}")
    }

    fn access(&self, input: &BashInput) -> Access {
        Access {
            kind: AccessKind::Exec,
            paths: input.cwd.iter().cloned().collect(),
            command: Some(input.command.clone()),
            environment: environment(input),
            ..Access::none()
        }
    }

    async fn preview(&self, input: &BashInput, context: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        let place = input.cwd.as_ref().map_or_else(|| context.start.cwd.clone(), |cwd| context.workspace.resolve(cwd).real);
        let shown = format!("{}{}", environment(input), input.command);
        let elsewhere = place != context.workspace.cwd;
        let head = if elsewhere { format!("# in {}\n", context.workspace.show(&place)) } else { String::new() };
        Ok(vec![ToolContent::text(head + &shown)])
    }

    async fn run(&self, input: BashInput, context: &ToolContext) -> Result<ToolOutput<BashDetails>, ToolError> {
        let command = command(&input, context)?;
        if input.background == Some(true) {
            return start(&input, &command, context);
        }
        let begun = Instant::now();
        let begun_in = command.cwd.canonicalize().unwrap_or_default();
        let timeout = Duration::from_millis(input.timeout_ms.unwrap_or(BASH_TIMEOUT_MS).clamp(1, limits::BASH_TIMEOUT_MS_MAX));
        let mut shown =
            LiveOutput { capture: Capture::new(log_path(context, "bash")), head: String::new(), progress: &context.progress };
        let (ended, terminal) = match terminal::run(&command, timeout, &mut shown.capture, context).await? {
            Some((ended, terminal)) => (ended, Some(terminal)),
            None => {
                let foreground = context.shell.jobs.foreground.add(&context.call_id);
                let child = context.launcher.spawn(&command)?;
                let cancel = &context.cancel;
                match follow_until_moved(child, Some(timeout), cancel, &foreground.moved, &mut shown).await {
                    Ok(ended) => (ended, None),
                    Err(child) => return leave(input, child, command.sandbox, shown.capture, context),
                }
            }
        };
        let captured = shown.capture.finish().await;
        let printed = if captured.text.is_empty() { "[no output]\n" } else { captured.text.as_str() };
        let mut status = match ended {
            CommandEnd::Exited(status) => status,
            CommandEnd::Cancelled => return Err(ToolError(format!("{printed}cancelled; all its processes were ended"))),
            CommandEnd::TimedOut => {
                let after = timeout.as_millis();
                return Err(ToolError(format!(
                    "{printed}timed out after {after} ms; all its processes were ended; set a longer timeout_ms if needed"
                )));
            }
            CommandEnd::Failed(error) => return Err(ToolError(captured.text + &error.0)),
        };
        let sandbox =
            command.sandbox.as_ref().map(|sandbox| SandboxNotes::new(sandbox, &status, &captured.text)).unwrap_or_default();
        let person = sandbox.person();
        let mut notes = sandbox.model;
        // If the command did not change its directory, a directory set by a concurrent command is
        // kept.
        if let Some(cwd) = status.cwd.take().filter(|cwd| input.cwd.is_none() && *cwd != begun_in) {
            context.shell.set_cwd(cwd);
        }
        match status.exported.take().map(|exported| context.shell.export(exported, |name| is_reserved(name, context))) {
            Some(true) => {}
            Some(false) => {
                let most = limits::SHELL_EXPORTED_BYTES_MAX >> 10;
                notes.push(format!("exported variables were not kept: more than {most} KiB"));
            }
            None if terminal.is_none() => notes.push("working directory and exported variables were not kept".into()),
            None => {}
        }
        let details = BashDetails::Exited {
            command: input.command,
            exit_code: status.code,
            duration_ms: begun.elapsed().as_millis() as u64,
            truncated: captured.truncated,
            artifact: captured.artifact,
        };
        let text = |notes: &str| format!("{}{notes}exit code: {}", captured.text, status.code);
        if terminal.is_some() {
            notes.push("ran in a client terminal: working directory and exported variables were not kept".into());
        }
        let mut output = ToolOutput::text(text(""), details).notes(notes).shown_as(text(&person));
        output.content.splice(..usize::from(terminal.is_some()), terminal);
        Ok(output)
    }
}

/// Starts the command as a background job of the session.
fn start(input: &BashInput, command: &Command, context: &ToolContext) -> Result<ToolOutput<BashDetails>, ToolError> {
    let timeout = input.timeout_ms.map(|timeout| Duration::from_millis(timeout.max(1)));
    let job = context.shell.jobs.start(&input.command, command, &context.launcher, log_path(context, "bash"), timeout)?;
    let text = format!("started job {job}: bash_output shows its output, bash_kill ends it");
    Ok(ToolOutput::text(text, BashDetails::Started { command: input.command.clone(), job: job.to_string() }))
}

/// Leaves a running command to the background, because the user moved it there.
fn leave(
    input: BashInput,
    child: Child,
    sandbox: Option<Sandbox>,
    mut capture: Capture,
    context: &ToolContext,
) -> Result<ToolOutput<BashDetails>, ToolError> {
    let output = capture.live();
    let job = context.shell.jobs.adopt(&input.command, child, sandbox, capture)?;
    let separator = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
    let output = output + separator;
    let earlier = if output.starts_with(OMITTED) { ", with since 0 all that is kept" } else { "" };
    let text = format!(
        "{output}the user moved the command to the background: it is job {job}; bash_output shows its further \
         output{earlier}, bash_kill ends it"
    );
    let details = BashDetails::Started { command: input.command, job: job.to_string() };
    Ok(ToolOutput::text(text, details).shown_as(format!("{output}continues in the background as job {job}")))
}

/// Returns true for variables that nuncio sets for each command or removes from all commands.
fn is_reserved(name: &str, context: &ToolContext) -> bool {
    name == DEPTH_VARIABLE
        || context.variables.contains(name)
        || NON_INTERACTIVE.iter().any(|(ours, _)| *ours == name)
        || context.secrets.iter().any(|secret| secret == name)
}

/// Formats the environment variables given in the call as assignments in shell syntax.
fn environment(input: &BashInput) -> String {
    input.env.iter().flatten().map(|(name, value)| assignment(name, value)).collect()
}

fn command(input: &BashInput, context: &ToolContext) -> Result<Command, ToolError> {
    let cwd = input.cwd.as_ref().map_or_else(|| context.start.cwd.clone(), |cwd| context.workspace.resolve(cwd).real);
    if !cwd.is_dir() {
        return Err(ToolError(format!("bash: cwd: {} is not a directory", cwd.display())));
    }
    if input.command.contains('\0') {
        return Err(ToolError::new("bash: command: contains a NUL character"));
    }
    let mut command = Command::shell(&input.command, cwd).variables(context.variables.iter());
    for (name, value) in NON_INTERACTIVE {
        command = command.env(name, value);
    }
    let given = |name: &OsString| input.env.iter().flatten().any(|(given, _)| name == given.as_str());
    for (name, value) in context.start.exported.iter().filter(|(name, _)| !given(name)) {
        command = match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    for (name, value) in input.env.iter().flatten() {
        if !is_name(name) || value.contains('\0') {
            return Err(ToolError(format!("bash: env: {name:?} cannot be set")));
        }
        command = command.env(name, value);
    }
    for name in &*context.secrets {
        command = command.env_remove(name);
    }
    // The last value of a variable applies, whatever the call sets.
    command = command.env(DEPTH_VARIABLE, (context.depth + 1).to_string());
    Ok(command.sandbox(context.sandbox.clone()))
}

/// Returns whether `name` is a valid shell variable name.
fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
}
