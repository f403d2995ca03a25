//! A running command until its end: its output goes to whoever takes it, and why it ended is told.

use std::future::Future;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::ToolError;
use crate::limits;
use crate::process::{Child, ExitStatus};

/// Takes what a command says.
pub trait Sink: Send {
    fn push(&mut self, bytes: &[u8]) -> impl Future<Output = ()> + Send;

    /// There is output that was not shown, and somebody to whom it is.
    fn has_news(&self) -> bool;

    fn show(&mut self);
}

pub enum End {
    Itself(ExitStatus),
    Cancelled,
    TimedOut,
    Failed(ToolError),
}

/// Returns when the command and all that it started are gone and its output is at its end. Without a timeout it may run for ever.
pub async fn follow(child: Child, timeout: Option<Duration>, cancel: &CancellationToken, sink: &mut impl Sink) -> End {
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
                why = Some(End::Cancelled);
                ending.cut();
                deadline.set(sleep(limits::END_WAIT));
            }
            () = &mut deadline => {
                if why.is_some() || status.is_some() {
                    break;
                }
                why = Some(End::TimedOut);
                ending.cut();
                deadline.set(sleep(limits::END_WAIT));
            }
            ended = ending.wait(), if status.is_none() => {
                status = Some(ended);
                deadline.set(sleep(limits::KILL_WAIT));
            }
            _ = updates.tick(), if sink.has_news() => sink.show(),
            read = output.read(&mut chunk), if open => {
                open = matches!(read, Ok(bytes) if bytes > 0);
                sink.push(&chunk).await;
                chunk.clear();
            }
        }
    }
    match (why, status) {
        (Some(_), None) => End::Failed(ToolError::new("the command does not end: what it had started may still run")),
        (Some(why), Some(Ok(_))) => why,
        (_, Some(Err(error))) => End::Failed(error.into()),
        (None, Some(Ok(status))) => End::Itself(status),
        (None, None) => End::Failed(ToolError::new("the command's output ended before the command did")),
    }
}
