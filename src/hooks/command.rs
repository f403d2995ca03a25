//! Hooks that are commands: the request is the standard input, the answer the standard output.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use globset::{Glob, GlobMatcher};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio_util::sync::CancellationToken;

use super::answer;
use super::hook::{Hook, HookEffect, HookError};
use super::request::HookRequest;
use crate::config::{FailurePolicy, HookSettings, SessionVariables, script_word};
use crate::event::HookEvent;
use crate::limits;
use crate::process::{Child, ChildExit, Command, Output, ProcessLauncher, ProgramConfinement};
use crate::terminal_text::printed;
use crate::workspace::one_line;

/// Maximum size of the request to a hook, in bytes.
const HOOK_REQUEST_BYTES_MAX: usize = 16 << 20;
/// Maximum size of the answer of a hook, in bytes.
const HOOK_ANSWER_BYTES_MAX: usize = 16 << 20;
/// Maximum length of a hook's command in events, in characters.
const HOOK_NAME_CHARS_MAX: usize = 100;

/// The exit code of a command that blocks; its error output is the reason.
const BLOCKED: i32 = 2;

/// A hook that runs a command, without a shell.
pub struct CommandHook {
    event: HookEvent,
    name: String,
    matcher: Option<GlobMatcher>,
    command: Command,
    /// The script that an interpreter runs.
    script: Option<PathBuf>,
    timeout: Duration,
    on_failure: FailurePolicy,
    launcher: ProcessLauncher,
    /// A sentence about the place of the command, for messages about failures.
    hint: Option<String>,
    /// The reason why the command must not start.
    refused: Option<String>,
}

impl CommandHook {
    /// Creates the hook of a setting. Commands run in `cwd`, without the environment variables
    /// `secrets`.
    pub fn new(settings: &HookSettings, cwd: PathBuf, secrets: &[String], launcher: ProcessLauncher) -> CommandHook {
        let script = script_word(&settings.command).map(|index| cwd.join(&settings.command[index]));
        let command = Command::program(&settings.command, cwd);
        let name = one_line(settings.command.join(" "));
        CommandHook {
            event: settings.event,
            name: name.chars().take(HOOK_NAME_CHARS_MAX).collect(),
            // The glob was checked with the settings.
            matcher: settings.r#match.as_deref().and_then(|glob| Glob::new(glob).ok()).map(|glob| glob.compile_matcher()),
            script,
            command: secrets.iter().fold(command, |command, name| command.env_remove(name)),
            timeout: Duration::from_millis(settings.timeout_ms),
            on_failure: settings.failure_policy(),
            launcher,
            hint: None,
            refused: None,
        }
    }

    /// Confines the command, and sets environment variables.
    pub(crate) fn confined(mut self, confined: &ProgramConfinement, variables: Vec<(&'static str, OsString)>) -> CommandHook {
        self.command =
            variables.into_iter().fold(self.command, |command, (name, value)| command.env(name, value)).confined(confined);
        self
    }

    /// Adds a sentence to the messages about failures.
    pub(crate) fn hint(mut self, hint: Option<String>) -> CommandHook {
        self.hint = hint;
        self
    }

    /// Makes each run a failure with this message.
    pub(crate) fn refused(mut self, message: String) -> CommandHook {
        self.refused = Some(message);
        self
    }

    /// Sets or removes environment variables of the command.
    pub fn variables(mut self, variables: &SessionVariables) -> CommandHook {
        self.command = self.command.variables(variables.iter());
        self
    }

    async fn call(&self, request: &HookRequest, cancel: &CancellationToken) -> Result<HookEffect, HookError> {
        if let Some(message) = &self.refused {
            return Err(HookError(message.clone()));
        }
        let input = serde_json::to_vec(request).map_err(|error| HookError(format!("encoding the request: {error}")))?;
        if input.len() > HOOK_REQUEST_BYTES_MAX {
            return Err(HookError(format!("the request has more than {} MiB", HOOK_REQUEST_BYTES_MAX >> 20)));
        }
        // An interpreter without its script may end with exit code 2, as a hook that blocks does.
        if let Some(script) = self.script.as_ref().filter(|script| !script.exists()) {
            return Err(HookError(format!("{} does not exist", script.display())));
        }
        let (Child { output, mut ending }, stdin, errors) = self.launcher.spawn_captured(&self.command)?;
        let exchange = exchange(&mut ending, stdin, &input, output, errors);
        let exchanged = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(HookError("cancelled".into())),
            exchanged = exchange => exchanged,
        };
        let (code, output, errors) = match exchanged {
            Ok(exchanged) => exchanged,
            Err(error) => {
                ending.cut();
                // A process that cannot be killed is reported by the supervisor.
                let _ = tokio::time::timeout(limits::END_WAIT, ending.wait()).await;
                return Err(error);
            }
        };
        let errors = printed(&errors).trim().to_owned();
        let hint = self.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        match code {
            0 => answer::parse(self.event, &output, request.system.as_deref()),
            BLOCKED if errors.is_empty() => Ok(HookEffect::Block("no reason given".into())),
            BLOCKED => Ok(HookEffect::Block(errors)),
            code if errors.is_empty() => Err(HookError(format!("exit code {code}{hint}"))),
            code => Err(HookError(format!("exit code {code}: {errors}{hint}"))),
        }
    }
}

impl Hook for CommandHook {
    fn event(&self) -> HookEvent {
        self.event
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn matches(&self, subject: &str) -> bool {
        self.matcher.as_ref().is_none_or(|matcher| matcher.is_match(subject))
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn on_failure(&self) -> FailurePolicy {
        self.on_failure
    }

    fn timeout_hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    fn run<'a>(&'a self, request: &'a HookRequest, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<HookEffect, HookError>> {
        Box::pin(self.call(request, cancel))
    }
}

/// Writes the input, reads both outputs, and waits for the end of all processes of the command.
/// Returns the exit code, the output and the beginning of the error output.
async fn exchange(
    ending: &mut ChildExit,
    mut stdin: Sender,
    input: &[u8],
    output: Output,
    errors: Output,
) -> Result<(i32, Vec<u8>, Vec<u8>), HookError> {
    let write = async {
        // A command need not read its input.
        let _ = stdin.write_all(input).await;
        drop(stdin);
        Ok(())
    };
    let ended = async { ending.wait().await.map_err(HookError::from) };
    let (_, output, errors, status) = tokio::try_join!(write, read_answer(output), read_errors(errors), ended)?;
    Ok((status.code, output, errors))
}

/// Reads the answer. Fails if it is too large.
async fn read_answer(mut output: Output) -> Result<Vec<u8>, HookError> {
    let mut answer = Vec::new();
    while output.read(&mut answer).await.unwrap_or(0) > 0 {
        if answer.len() > HOOK_ANSWER_BYTES_MAX {
            return Err(HookError(format!("the answer has more than {} MiB", HOOK_ANSWER_BYTES_MAX >> 20)));
        }
    }
    Ok(answer)
}

/// Reads the error output to its end and returns its beginning.
async fn read_errors(mut output: Output) -> Result<Vec<u8>, HookError> {
    let (mut errors, mut chunk) = (Vec::new(), Vec::with_capacity(limits::PIPE_BYTES));
    while output.read(&mut chunk).await.unwrap_or(0) > 0 {
        let room = limits::HOOK_ERROR_BYTES_MAX - errors.len();
        errors.extend_from_slice(&chunk[..chunk.len().min(room)]);
        chunk.clear();
    }
    Ok(errors)
}
