//! Follows a running command until it ends: passes on the output, and returns why the command
//! ended.

use std::future::Future;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::output::ToolError;
use crate::limits;
use crate::process::{Child, ExitStatus};

/// Receives the output of a command.
pub(crate) trait OutputSink: Send {
    fn push(&mut self, bytes: &[u8]) -> impl Future<Output = ()> + Send;

    fn has_new_output(&self) -> bool;

    fn show(&mut self);
}

/// Why a command ended.
pub(crate) enum CommandEnd {
    /// The command exited, or was killed by a signal that nuncio did not send.
    Exited(ExitStatus),
    /// The call was cancelled.
    Cancelled,
    /// The timeout expired.
    TimedOut,
    /// Running the command failed, or the command could not be killed.
    Failed(ToolError),
}

/// Waits until all processes of the command have ended and its output is complete. Without a
/// timeout the command may run indefinitely.
pub(crate) async fn follow(
    child: Child,
    timeout: Option<Duration>,
    cancel: &CancellationToken,
    sink: &mut impl OutputSink,
) -> CommandEnd {
    let never = CancellationToken::new();
    let followed = follow_until_moved(child, timeout, cancel, &never, sink).await;
    followed.unwrap_or_else(|_| CommandEnd::Failed(ToolError::new("internal error: the command was moved")))
}

/// Follows a command as [`follow`] does, until `moved`: then returns the running command as the
/// error.
pub(crate) async fn follow_until_moved(
    child: Child,
    timeout: Option<Duration>,
    cancel: &CancellationToken,
    moved: &CancellationToken,
    sink: &mut impl OutputSink,
) -> Result<CommandEnd, Child> {
    let Child { mut output, mut ending } = child;
    let mut chunk = Vec::with_capacity(limits::PIPE_BYTES);
    let mut updates = interval(limits::BASH_UPDATE);
    updates.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut deadline = Box::pin(sleep(timeout.unwrap_or(Duration::MAX)));
    let mut why = None;
    let mut status = None;
    let mut open = true;
    while open || status.is_none() {
        tokio::select! {
            biased;
            () = cancel.cancelled(), if why.is_none() && status.is_none() => {
                why = Some(CommandEnd::Cancelled);
                ending.cut();
                deadline.set(sleep(limits::END_WAIT));
            }
            () = &mut deadline => {
                if why.is_some() || status.is_some() {
                    break;
                }
                why = Some(CommandEnd::TimedOut);
                ending.cut();
                deadline.set(sleep(limits::END_WAIT));
            }
            ended = ending.wait(), if status.is_none() => {
                status = Some(ended);
                deadline.set(sleep(limits::KILL_WAIT));
            }
            () = moved.cancelled(), if why.is_none() && status.is_none() => return Err(Child { output, ending }),
            _ = updates.tick(), if sink.has_new_output() => sink.show(),
            read = output.read(&mut chunk), if open => {
                open = matches!(read, Ok(bytes) if bytes > 0);
                sink.push(&chunk).await;
                chunk.clear();
            }
        }
    }
    Ok(match (why, status) {
        (Some(_), None) => CommandEnd::Failed(ToolError::new("the command did not end: its processes may still be running")),
        (Some(why), Some(Ok(_))) => why,
        (_, Some(Err(error))) => CommandEnd::Failed(error.into()),
        (None, Some(Ok(status))) => CommandEnd::Exited(status),
        (None, None) => CommandEnd::Failed(ToolError::new("the command's output ended before the command did")),
    })
}
