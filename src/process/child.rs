//! A running command: its output in order, its exit status, and the lifeline that keeps it running.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;

use super::exported::Change;
use super::{Supervisor, report};
use crate::error::{Error, Kind, Result};
use crate::limits;

/// A command under its supervisor. Dropping it ends the command and every descendant.
#[derive(Debug)]
pub struct Child {
    /// Standard output and standard error in one pipe, so that their order is kept.
    pub output: Output,
    pub ending: Ending,
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitStatus {
    /// Exit status, or 128 + the number of the signal that ended the command.
    pub code: i32,
    /// The directory in which a shell ended; `None` if it was not reported.
    pub cwd: Option<PathBuf>,
    /// The exported variables that a shell changed; `None` if they were not reported, for example
    /// after `exec`.
    pub exported: Option<Vec<Change>>,
    /// The restrictions of the sandbox that this kernel does not support.
    pub lacks: Option<String>,
}

impl ExitStatus {
    /// An exit status without directory and variables.
    pub fn of(code: i32) -> ExitStatus {
        ExitStatus { code, ..ExitStatus::default() }
    }
}

/// The output of a command.
#[derive(Debug)]
pub struct Output(Receiver);

impl Output {
    /// Waits for output and appends it to `buffer`. Returns the number of bytes; 0 at the end, when
    /// no process holds the pipe. Cancel-safe.
    pub async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.0.read_buf(buffer).await
    }
}

impl AsyncRead for Output {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

/// The exit status of a [`Child`], separate from its output so that both can be awaited
/// concurrently.
#[derive(Debug)]
pub struct Ending {
    lifeline: UnixStream,
    report: Vec<u8>,
    supervisor: Supervisor,
    /// The number of the command in orders to the fork server.
    number: u64,
    /// The command has neither ended nor been cut.
    active: bool,
}

impl Child {
    pub(super) fn new(lifeline: UnixStream, output: Receiver, supervisor: Supervisor, number: u64) -> Child {
        let ending = Ending { lifeline, report: Vec::new(), supervisor, number, active: true };
        Child { output: Output(output), ending }
    }

    /// Waits until the command and its descendants have ended. Cancel-safe.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        self.ending.wait().await
    }

    /// Ends the command and its descendants and waits until they have ended: TERM,
    /// [`limits::KILL_GRACE`], KILL.
    pub async fn end(mut self) -> Result<ExitStatus> {
        self.ending.cut();
        let bound = limits::END_WAIT;
        match tokio::time::timeout(bound, self.ending.wait()).await {
            Ok(status) => status,
            Err(_) => Err(Error::new(Kind::Timeout, format!("ending a command: still running after {bound:?}"))),
        }
    }
}

impl Ending {
    /// See [`Child::wait`]. Also fails if processes may still be running.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        // A supervisor that is killed with unread input resets the socket, which is treated as its
        // end.
        while self.lifeline.read_buf(&mut self.report).await.unwrap_or(0) > 0 {}
        self.active = false;
        match report::read(&self.report) {
            Some(ended) => ended,
            None => {
                let (supervisor, number) = (self.supervisor.clone(), self.number);
                let swept = tokio::task::spawn_blocking(move || supervisor.sweep(number)).await;
                if !swept.map_err(|_| Error::internal("internal error: killing leftover processes panicked"))? {
                    return Err(Error::new(
                        Kind::Timeout,
                        "the command could not be ended: processes that it started may still run",
                    ));
                }
                Ok(ExitStatus { code: 128 + libc::SIGKILL, ..ExitStatus::default() })
            }
        }
    }

    /// Closes the lifeline, so that the supervisor starts to end the command. [`Ending::wait`]
    /// returns when it has ended.
    pub fn cut(&mut self) {
        if !std::mem::take(&mut self.active) {
            return;
        }
        // Fails if the supervisor has ended; nothing is left to end then.
        let _ = rustix::net::shutdown(&self.lifeline, rustix::net::Shutdown::Write);
        self.supervisor.cut(self.number);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.cut();
    }
}
