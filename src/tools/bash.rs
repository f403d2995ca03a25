//! `bash`: a shell command, streamed while it runs; nothing of it is left when the call is over.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::capture::Capture;
use super::terminal;
use super::{Output, Tool, ToolContext, ToolError};
use crate::content::{ToolContent, ToolKind};
use crate::limits;
use crate::permission::{Access, AccessKind};
use crate::process::{Child, Command};
use crate::workspace::Workspace;

pub struct Bash;

/// Runs a command with bash, without a terminal or input, and returns its output and exit code. The working directory is kept
/// from call to call. What still runs when the command ends is ended.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    #[serde(alias = "cmd")]
    command: String,
    /// Default 120000, at most 600000.
    #[serde(default, alias = "timeoutMs")]
    timeout_ms: Option<u64>,
    /// Directory for this call only.
    #[serde(default, alias = "workdir")]
    cwd: Option<String>,
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
    #[serde(default, alias = "run_in_background")]
    #[schemars(skip)]
    background: Option<bool>,
}

/// What a command gets so that no program waits for somebody at a terminal.
const UNATTENDED: [(&str, &str); 4] = [("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("TERM", "dumb")];

impl Tool for Bash {
    type Input = Input;
    const NAME: &'static str = "bash";
    const ALIASES: &'static [&'static str] = &["shell", "execute", "run_command"];
    const KIND: ToolKind = ToolKind::Execute;

    fn title(&self, input: &Input, _: &Workspace) -> String {
        let command = input.command.trim();
        let first: String = command.lines().next().unwrap_or_default().chars().take(limits::BASH_TITLE_CHARS_MAX).collect();
        let more = if first.len() < command.len() { " …" } else { "" };
        format!("`{first}{more}`")
    }

    fn access(&self, input: &Input) -> Access {
        Access {
            kind: AccessKind::Exec,
            paths: input.cwd.iter().cloned().collect(),
            command: Some(input.command.clone()),
            environment: environment(input),
            ..Access::none()
        }
    }

    async fn preview(&self, input: &Input, context: &ToolContext) -> Vec<ToolContent> {
        let place = input.cwd.as_ref().map_or_else(|| context.shell.cwd(), |cwd| context.workspace.resolve(cwd).real);
        let shown = format!("{}{}", environment(input), input.command);
        if place == context.workspace.cwd {
            return vec![ToolContent::text(shown)];
        }
        vec![ToolContent::text(format!("# in {}\n{}", context.workspace.show(&place), shown))]
    }

    /// details: `{command, exitCode, durationMs, truncated, artifact?}`.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        if input.background == Some(true) {
            return Err(ToolError::new("bash: background is not supported; run the command without it, within its timeout"));
        }
        let begun = Instant::now();
        let command = command(&input, context)?;
        let timeout =
            Duration::from_millis(input.timeout_ms.unwrap_or(limits::BASH_TIMEOUT_MS).clamp(1, limits::BASH_TIMEOUT_MS_MAX));
        let mut capture = Capture::new(artifact(context));
        let (ended, terminal) = match terminal::run(&command, timeout, &mut capture, context).await {
            Some((ended, terminal)) => (ended, Some(terminal)),
            None => (follow(context.supervisor.spawn(&command)?, timeout, &mut capture, context).await, None),
        };
        let captured = capture.finish().await;
        let said = if captured.text.is_empty() { "[no output]\n" } else { captured.text.as_str() };
        let status = match ended {
            End::Itself(status) => status,
            End::Cancelled => return Err(ToolError(format!("{said}cancelled; what it had started was ended"))),
            End::TimedOut => {
                let after = timeout.as_millis();
                return Err(ToolError(format!(
                    "{said}timed out after {after} ms; what it had started was ended; give a longer timeout_ms if it needs one"
                )));
            }
            End::Failed(error) => return Err(error),
        };
        if let (None, Some(cwd)) = (&input.cwd, status.cwd) {
            context.shell.set_cwd(cwd);
        }
        let mut details = json!({
            "command": input.command, "exitCode": status.code, "durationMs": begun.elapsed().as_millis() as u64,
            "truncated": captured.truncated,
        });
        if let Some(artifact) = captured.artifact {
            details["artifact"] = json!(artifact);
        }
        let mut output = Output::text(format!("{}exit code: {}", captured.text, status.code), details);
        if let Some(terminal) = terminal {
            output.content = vec![terminal];
        }
        Ok(output)
    }
}

/// The variables that it is given, as a shell would write them before it.
fn environment(input: &Input) -> String {
    let quoted = |value: &str| format!("'{}'", value.replace('\'', r"'\''"));
    input.env.iter().flatten().map(|(name, value)| format!("{name}={} ", quoted(value))).collect()
}

fn command(input: &Input, context: &ToolContext) -> Result<Command, ToolError> {
    let kept = context.shell.cwd();
    let cwd = match &input.cwd {
        Some(cwd) => context.workspace.resolve(cwd).real,
        None if kept.is_dir() => kept,
        None => context.workspace.cwd.clone(),
    };
    if !cwd.is_dir() {
        return Err(ToolError(format!("bash: cwd: {} is not a directory", cwd.display())));
    }
    let mut command = Command::shell(&input.command, cwd);
    for (name, value) in UNATTENDED {
        command = command.env(name, value);
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
    Ok(command)
}

/// Where the whole output goes when it is too long for the model.
fn artifact(context: &ToolContext) -> PathBuf {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() || "-_".contains(character) { character } else { '_' }
    };
    let name: String = context.call_id.as_str().chars().map(plain).collect();
    context.workspace.artifacts.join(format!("bash-{name}.log"))
}

/// How a command came to its end.
pub enum End {
    Itself(crate::process::ExitStatus),
    Cancelled,
    TimedOut,
    Failed(ToolError),
}

/// Reads until the command and all that it started are gone and its output is at its end, and shows it meanwhile.
async fn follow(child: Child, timeout: Duration, capture: &mut Capture, context: &ToolContext) -> End {
    let Child { mut output, mut ending } = child;
    let mut chunk = Vec::with_capacity(limits::PIPE_BYTES);
    let mut updates = interval(limits::BASH_UPDATE);
    updates.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut deadline = Box::pin(sleep(timeout));
    let mut why = None;
    let mut status = None;
    let mut open = true;
    while open || status.is_none() {
        tokio::select! {
            biased;
            () = context.cancel.cancelled(), if why.is_none() && status.is_none() => {
                why = Some(End::Cancelled);
                ending.cut();
                deadline.set(sleep(limits::KILL_GRACE + limits::KILL_WAIT));
            }
            () = &mut deadline => {
                if why.is_some() || status.is_some() {
                    break;
                }
                why = Some(End::TimedOut);
                ending.cut();
                deadline.set(sleep(limits::KILL_GRACE + limits::KILL_WAIT));
            }
            ended = ending.wait(), if status.is_none() => {
                status = Some(ended);
                deadline.set(sleep(limits::KILL_WAIT));
            }
            _ = updates.tick(), if capture.has_news() => (context.progress)(vec![ToolContent::text(capture.live())]),
            read = output.read(&mut chunk), if open => {
                open = matches!(read, Ok(bytes) if bytes > 0);
                capture.push(&chunk).await;
                chunk.clear();
            }
        }
    }
    match (why, status) {
        (Some(why), _) => why,
        (None, Some(Ok(status))) => End::Itself(status),
        (None, Some(Err(error))) => End::Failed(error.into()),
        (None, None) => End::Failed(ToolError::new("the command's output ended before the command did")),
    }
}

/// A name as shells have them.
fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
}
