//! The process of a hosted agent: JSON lines on its standard input and
//! output, the last part of its standard error, and its termination.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, FusedFuture};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::process_handle::{ProcessEnd, ProcessHandle, ProcessSlot};
use super::stderr_tail::StderrTail;
use crate::error::{Error, Kind, Result};
use crate::json;
use crate::limits;
use crate::process::{Child, ChildExit, Command, Output, ProcessLauncher, StartTime};
use crate::rpc::lines::{Line, LineReader};
use crate::rpc::message::InvalidMessage;
use crate::session::clock::now_ms;
use crate::web::HttpClients;

/// Maximum time that a starting agent, which has asked for a login, takes to send a response.
const AGENT_LOGIN: Duration = Duration::from_secs(5);
/// Maximum time for a hosted agent to exit after its standard input was closed.
const AGENT_SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// Time after a cancelled turn until the processes that a hosted agent started during the turn must
/// have ended. Then the agent is stopped with all its processes.
const AGENT_LEFTOVER: Duration = Duration::from_secs(2);
/// How often the processes of a hosted agent are listed after a cancelled turn.
const AGENT_LEFTOVER_POLL: Duration = Duration::from_millis(50);
/// Interval of the attempts to read it.
const AGENT_STDERR_POLL: Duration = Duration::from_millis(5);

/// Receives the messages of an agent in order. The next message is read when the future completes.
pub(super) trait LineHandler: Send + Sync + 'static {
    /// Handles a message whose line has `bytes` bytes.
    fn message(&self, message: Value, bytes: usize) -> BoxFuture<'_, ()>;

    /// Handles a line that is not a JSON object. Some agents print a line of text first.
    fn text(&self, line: &str) {
        tracing::debug!(line, "an agent's line is not a message");
    }

    /// Handles a message that cannot be read. Returns false if the message cannot be answered or
    /// matched to a request: then the connection must end.
    fn unreadable<'a>(&'a self, _message: &'a InvalidMessage) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(false))
    }

    /// Returns whether the process exits when its standard input ends.
    fn exits_after_input(&self) -> bool {
        true
    }
}

/// A running agent that exchanges JSON lines. Dropping the value ends the process and all its
/// descendants.
pub(super) struct AgentProcess {
    name: String,
    input: mpsc::Sender<Vec<u8>>,
    handle: ProcessHandle,
    stderr: Arc<StderrTail>,
    _stop: DropGuard,
}

impl Deref for AgentProcess {
    type Target = ProcessHandle;

    fn deref(&self) -> &ProcessHandle {
        &self.handle
    }
}

/// The input for starting the program of an agent.
#[derive(Clone)]
pub(super) struct ProgramStart {
    /// The name of the agent.
    pub name: String,
    pub launcher: ProcessLauncher,
    /// The program of the settings, with its directory and environment.
    pub command: Command,
    /// Receives the process when it is started.
    pub process: ProcessSlot,
    /// The HTTP clients of the process.
    pub web: HttpClients,
}

impl AgentProcess {
    /// Starts a program. `handler` receives each line of its standard output that is a JSON object.
    pub(super) fn start(start: &ProgramStart, handler: Arc<dyn LineHandler>) -> Result<AgentProcess> {
        let ProgramStart { name, launcher, command, process, .. } = start;
        let (child, stdin, errors) = launcher.spawn_captured(command).map_err(|error| unavailable(name, error.message))?;
        let (input, lines) = mpsc::channel(limits::AGENT_MESSAGES_QUEUED_MAX);
        let (ended, ending) = watch::channel(None);
        let stop = CancellationToken::new();
        let stderr = Arc::new(StderrTail::default());
        let processes = child.ending.processes();
        let transfer = Transfer { child, stdin, errors, lines, handler, stop: stop.clone(), stderr: stderr.clone() };
        crate::task::spawn(async move {
            let end = transfer.run().await;
            ended.send_replace(Some(end));
        });
        let guard = stop.clone().drop_guard();
        let handle = ProcessHandle { cwd: command.cwd.clone(), started_ms: now_ms(), processes, stop, ended: ending };
        *process.lock() = Some(handle.clone());
        Ok(AgentProcess { name: name.clone(), input, handle, stderr, _stop: guard })
    }

    /// Queues a message. Stops a process that does not read its input.
    pub(super) async fn send(&self, message: &Value) -> Result<()> {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        match self.input.try_send(line) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(_)) => Err(self.ended_error(self.ended().await)),
            Err(TrySendError::Full(_)) => {
                self.stop.cancel();
                Err(unavailable(&self.name, "it does not read its input"))
            }
        }
    }

    pub(super) fn handle(&self) -> ProcessHandle {
        self.handle.clone()
    }

    /// Stops the process if other processes that it started at `time` or later still run after
    /// [`AGENT_LEFTOVER`].
    pub(super) async fn end_leftovers(&self, time: StartTime) {
        let deadline = Instant::now() + AGENT_LEFTOVER;
        while !self.has_ended() && self.processes.runs_since(time).await {
            if Instant::now() >= deadline {
                self.end().await;
                return;
            }
            tokio::time::sleep(AGENT_LEFTOVER_POLL).await;
        }
    }

    /// Returns the end of the standard error.
    pub(super) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Creates the error for a turn that ended without an answer. Its message is the text on
    /// standard error after `before`, which is the text at the start of the turn. The text may
    /// arrive after the end of the turn, so this waits for it, at most [`limits::AGENT_STDERR`].
    pub(super) async fn unanswered(&self, before: &str) -> Error {
        let until = Instant::now() + limits::AGENT_STDERR;
        while self.stderr() == before && Instant::now() < until {
            sleep(AGENT_STDERR_POLL).await;
        }
        let stderr = self.stderr();
        let why = match stderr.strip_prefix(before).unwrap_or(&stderr).trim() {
            "" => "it ended the turn without an answer",
            new => new,
        };
        Error::new(Kind::ModelError, format!("agent {}: {why}", self.name))
    }

    /// Waits for a line after the text `before` of standard error that asks the user to log in.
    pub(super) async fn login_request(&self, before: &str) -> String {
        self.stderr.login_request(before).await
    }

    /// Waits until a process that starts cannot continue: it has ended, or it asked for a login and
    /// was not ready soon afterwards.
    pub(super) async fn start_failure(&self) -> Error {
        let login = async {
            let line = self.login_request("").await;
            sleep(AGENT_LOGIN).await;
            line
        };
        tokio::select! {
            biased;
            why = self.ended() => self.ended_error(why),
            line = login => not_logged_in(&self.name, line),
        }
    }

    /// Returns the error for a request without a response, with the last line of standard error.
    pub(super) fn late(&self, what: &str, bound: Duration) -> Error {
        let stderr = self.stderr();
        let last = stderr.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
        unavailable(&self.name, format_args!("no response to {what} within {} s{last}", bound.as_secs()))
    }

    /// Creates the error for an operation that the end of the process interrupted.
    pub(super) fn ended_error(&self, why: String) -> Error {
        unavailable(&self.name, why)
    }
}

/// Creates the error for an agent that cannot work.
pub(super) fn unavailable(name: &str, why: impl std::fmt::Display) -> Error {
    Error::new(Kind::AgentUnavailable, format!("agent {name}: {why}"))
}

/// Returns the error for an agent that needs a login; `why` is its own message.
pub(super) fn not_logged_in(name: &str, why: impl std::fmt::Display) -> Error {
    Error { kind: Kind::Unauthenticated, ..unavailable(name, why) }.hint("log in with the agent's own program")
}

/// Creates the error for a session that the agent no longer has.
pub(super) fn lost(name: &str, why: impl std::fmt::Display) -> Error {
    let lost = unavailable(name, format_args!("the session cannot be resumed: {why}"));
    Error { kind: Kind::AgentSessionLost, ..lost }.hint("create a new session")
}

/// The input and output of a process.
struct Transfer {
    child: Child,
    stdin: pipe::Sender,
    errors: Output,
    lines: mpsc::Receiver<Vec<u8>>,
    handler: Arc<dyn LineHandler>,
    stop: CancellationToken,
    stderr: Arc<StderrTail>,
}

impl Transfer {
    /// Transfers lines until the process ends or must stop. Returns how it ended.
    async fn run(self) -> ProcessEnd {
        let Transfer { child: Child { output, mut ending }, mut stdin, errors, mut lines, handler, stop, stderr } = self;
        let mut reading = std::pin::pin!(read(LineReader::new(output, limits::FRAME_BYTES_MAX), &*handler).fuse());
        let mut logging = std::pin::pin!(stderr.read(errors).fuse());
        let mut problem = None;
        {
            let write = async {
                while let Some(line) = lines.recv().await {
                    if stdin.write_all(&line).await.is_err() {
                        break;
                    }
                }
                // The process may still write after it closed its input.
                std::future::pending::<()>().await;
            };
            let mut write = std::pin::pin!(write);
            let mut logged = false;
            loop {
                tokio::select! {
                    () = stop.cancelled() => break,
                    _ = ending.wait() => break,
                    found = &mut reading => {
                        problem = found;
                        break;
                    }
                    () = &mut logging, if !logged => logged = true,
                    () = &mut write => {}
                }
            }
        }
        drop(stdin);
        // Continue to read, so that the process does not block on writing.
        let shutdown = async {
            let mut exited = false;
            while !exited || !reading.is_terminated() {
                tokio::select! {
                    _ = ending.wait(), if !exited => exited = true,
                    found = &mut reading, if !reading.is_terminated() => problem = problem.take().or(found),
                    () = &mut logging, if !logging.is_terminated() => {}
                }
            }
        };
        let bound = if handler.exits_after_input() { AGENT_SHUTDOWN_GRACE } else { Duration::ZERO };
        let _ = timeout(bound, shutdown).await;
        let code = terminate(ending).await;
        let _ = timeout(limits::KILL_GRACE, async {
            if !logging.is_terminated() {
                logging.await;
            }
        })
        .await;
        let stopped = stop.is_cancelled();
        let why = match (stopped, problem) {
            (true, _) => "it was stopped".into(),
            (false, Some(problem)) => problem,
            (false, None) => with_stderr(code, &stderr.text()),
        };
        ProcessEnd { stopped, code, why }
    }
}

/// Exit status of the supervisor if the program does not exist, as in env(1).
const NOT_FOUND: i32 = 127;

/// Describes the end of a process that was not stopped.
fn with_stderr(status: Option<i32>, stderr: &str) -> String {
    let ended = match status {
        Some(NOT_FOUND) if stderr.is_empty() => "its program was not found".into(),
        Some(code) => format!("its process ended with exit code {code}"),
        None => "its process could not be ended".to_owned(),
    };
    if stderr.is_empty() { ended } else { format!("{ended}: {stderr}") }
}

/// Parses a line. Bytes that are not UTF-8 become U+FFFD.
fn parse(line: &[u8]) -> serde_json::Result<Value> {
    json::from_slice(line).or_else(|error| match String::from_utf8_lossy(line) {
        Cow::Owned(text) => json::from_str(&text),
        Cow::Borrowed(_) => Err(error),
    })
}

/// Reads lines until the end of the output. Returns a problem that makes the output unusable.
async fn read(mut lines: LineReader<Output>, handler: &dyn LineHandler) -> Option<String> {
    loop {
        let unreadable = match lines.next().await {
            Ok(Some(Line::Text(line))) => match parse(&line) {
                Ok(message @ Value::Object(_)) => {
                    handler.message(message, line.len()).await;
                    continue;
                }
                Err(error) if line.trim_ascii_start().starts_with(b"{") => {
                    InvalidMessage::unreadable(&line, Error::new(Kind::ParseError, format!("a message is not JSON: {error}")))
                }
                // Some agents print a line of text first.
                Ok(_) | Err(_) => {
                    handler.text(&String::from_utf8_lossy(&line));
                    continue;
                }
            },
            Ok(Some(Line::TooLong(start))) => {
                let message = format!("a message is longer than {} bytes", limits::FRAME_BYTES_MAX);
                InvalidMessage::unreadable(&start, Error::new(Kind::TooLarge, message))
            }
            Ok(None) => return None,
            Err(error) => return Some(format!("reading its output: {error}")),
        };
        if !handler.unreadable(&unreadable).await {
            return Some(unreadable.error.message);
        }
    }
}

/// Kills the remaining processes. Returns the exit status, or `None` after a timeout.
async fn terminate(mut ending: ChildExit) -> Option<i32> {
    ending.cut();
    let ended = timeout(limits::END_WAIT, ending.wait()).await;
    ended.ok()?.ok().map(|status| status.code)
}
