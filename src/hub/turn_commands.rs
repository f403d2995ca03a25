//! Commands that a hosted agent runs with nuncio during its turn: calls of the tool `bash`, with
//! the rules, the mode, the permission requests and the sandbox of the session.

use std::pin::pin;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::turn_environment::TurnEnvironment;
use crate::content::{ToolStatus, plain_text};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, ToolEnd};
use crate::id::ToolCallId;
use crate::runtime::{CommandHost, ToolCall, ToolUse};
use crate::session::{CommandRequest, CommandResult};

/// Maximum number of commands of a hosted agent that run, and that wait, in its turn.
const AGENT_COMMANDS_MAX: usize = 8;

/// The name of the tool that runs the commands.
const TOOL: &str = "bash";

/// Passes commands to the running turn of a session.
#[derive(Default)]
pub(super) struct TurnCommands(Mutex<Option<mpsc::Sender<QueuedCommand>>>);

/// A command that waits for the turn.
struct QueuedCommand {
    request: CommandRequest,
    /// Closed if the caller no longer waits.
    done: oneshot::Sender<Result<CommandResult>>,
}

impl TurnCommands {
    fn set(&self, sender: Option<mpsc::Sender<QueuedCommand>>) {
        *self.0.lock() = sender;
    }

    /// Runs a command in the running turn.
    pub(super) async fn run(&self, request: CommandRequest) -> Result<CommandResult> {
        let idle = || Error::invalid_params("no turn runs in the session").hint("run commands during the agent's turn");
        let sender = self.0.lock().clone().ok_or_else(idle)?;
        let (done, result) = oneshot::channel();
        sender.try_send(QueuedCommand { request, done }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                Error::new(Kind::Overloaded, "too many commands of the agent wait").hint("wait for one of them")
            }
            mpsc::error::TrySendError::Closed(_) => idle(),
        })?;
        result.await.map_err(|_| idle())?
    }

    /// Runs the commands that arrive during `work`. Commands that still run at its end are
    /// cancelled.
    pub(super) async fn serve<T>(&self, during: &TurnEnvironment<'_>, work: impl Future<Output = T>) -> T {
        let (sender, mut queued) = mpsc::channel(AGENT_COMMANDS_MAX);
        self.set(Some(sender));
        let stop = during.turn.cancel.child_token();
        let mut running = FuturesUnordered::new();
        let mut work = pin!(work);
        let result = loop {
            tokio::select! {
                biased;
                result = &mut work => break result,
                Some(()) = running.next() => {}
                Some(command) = queued.recv(), if running.len() < AGENT_COMMANDS_MAX => {
                    running.push(during.answer_command(command, stop.child_token()));
                }
            }
        };
        self.set(None);
        stop.cancel();
        while running.next().await.is_some() {}
        result
    }
}

impl TurnEnvironment<'_> {
    /// Runs a command and sends its result, until the caller no longer waits.
    async fn answer_command(&self, command: QueuedCommand, cancel: CancellationToken) {
        let QueuedCommand { request, mut done } = command;
        let result = {
            let mut work = pin!(self.run_command(request, cancel.clone()));
            tokio::select! {
                biased;
                result = &mut work => result,
                () = done.closed() => {
                    cancel.cancel();
                    work.await
                }
            }
        };
        // Fails if the caller no longer waits.
        let _ = done.send(result);
    }

    async fn run_command(&self, request: CommandRequest, cancel: CancellationToken) -> Result<CommandResult> {
        let environment = self.get().await?;
        let host = CommandHost { turn: self.turn, cancel };
        let tool_use = ToolUse { id: ToolCallId::new(), name: TOOL.into(), input: json!(request).to_string(), state: None };
        let tool_call_id = tool_use.id.clone();
        let ended = ToolCall::announce(&host, environment, tool_use).await.finish(&host).await?;
        let Body::ToolCompleted(ToolEnd { status, output, details, .. }) = ended.completed else {
            return Err(Error::internal("a tool call ended without tool.completed"));
        };
        // Add messages of hooks to the output, because the agent sends its own model requests.
        let output = std::iter::once(plain_text(&output)).chain(ended.messages).collect::<Vec<_>>().join("\n");
        Ok(CommandResult { tool_call_id, completed: status == ToolStatus::Completed, output, details })
    }
}
