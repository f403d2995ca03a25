//! A running command: its output in order, its exit status, and the lifeline that keeps it running.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

use super::fork_server_handle::ForkServer;
use super::os::StartTime;
use super::report::{self, ExitStatus};
use super::temp::ProcessTemp;
use super::tree;
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::task;

/// A command under its supervisor. Dropping the `Child` terminates the command and all its
/// descendants.
#[derive(Debug)]
pub struct Child {
    /// Standard output and standard error in one pipe, so that their order is kept.
    pub output: Output,
    /// Waits for the exit status. [`Child::end`] and dropping the child terminate the command.
    pub ending: ChildExit,
}

/// The output of a command.
#[derive(Debug)]
pub struct Output(Receiver);

impl Output {
    pub(super) fn new(receiver: Receiver) -> Output {
        Output(receiver)
    }

    /// Waits for output and appends it to `buffer`. Returns the number of bytes read, or 0 at the
    /// end of the output, when no process holds the pipe open. Cancel-safe.
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
pub struct ChildExit {
    lifeline: UnixStream,
    report: Vec<u8>,
    processes: ProcessTree,
    server: ForkServer,
    /// The number of the command in orders to the fork server.
    number: u64,
    /// True until the command has exited or its lifeline was closed with [`ChildExit::cut`].
    active: bool,
    _temp: Option<ProcessTemp>,
}

/// The processes of a running command, known while the [`ChildExit`] is awaited.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessTree {
    /// The process id of the supervisor, or 0.
    supervisor: Arc<AtomicU32>,
    /// The process id of the command; 0 before its start is reported.
    command: Arc<watch::Sender<u32>>,
}

impl ProcessTree {
    /// Returns whether a process of the command that started at `time` or later still runs.
    pub(crate) async fn runs_since(&self, time: StartTime) -> bool {
        match self.supervisor.load(Ordering::Relaxed) {
            0 => false,
            supervisor => tokio::task::spawn_blocking(move || tree::runs_since(supervisor, time)).await.unwrap_or(false),
        }
    }

    /// Returns the process id of the command, also after its end; 0 before its start is reported.
    pub(crate) fn command(&self) -> u32 {
        *self.command.borrow()
    }

    /// Waits until the start of the command is reported. Never returns for a command that was not
    /// started.
    pub(crate) async fn started(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.command.subscribe().wait_for(|pid| *pid != 0).await;
    }
}

impl Child {
    /// Creates a running command. `temp` is its own temporary directory, removed with it.
    pub(super) fn new(lifeline: UnixStream, output: Receiver, server: ForkServer, number: u64, temp: Option<ProcessTemp>) -> Child {
        let processes = ProcessTree::default();
        let ending = ChildExit { lifeline, report: Vec::new(), processes, server, number, active: true, _temp: temp };
        Child { output: Output::new(output), ending }
    }

    /// Waits until the command and its descendants have ended. Cancel-safe.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        self.ending.wait().await
    }

    /// Terminates the command and its descendants, and waits until they have exited: sends TERM,
    /// waits [`limits::KILL_GRACE`], then sends KILL.
    pub async fn end(mut self) -> Result<ExitStatus> {
        self.ending.cut();
        let bound = limits::END_WAIT;
        match tokio::time::timeout(bound, self.ending.wait()).await {
            Ok(status) => status,
            Err(_) => Err(Error::new(Kind::Timeout, format!("a killed command is still running after {bound:?}"))),
        }
    }
}

impl ChildExit {
    /// Waits like [`Child::wait`]. Also fails if processes may still be running.
    pub(crate) async fn wait(&mut self) -> Result<ExitStatus> {
        // If a supervisor is killed while it has unread input, the kernel resets the socket. Treat
        // the resulting error as end of file.
        while self.lifeline.read_buf(&mut self.report).await.unwrap_or(0) > 0 {
            let supervisor = report::supervisor(&self.report).unwrap_or(0);
            self.processes.supervisor.store(supervisor, Ordering::Relaxed);
            let command = report::command(&self.report).unwrap_or(0);
            self.processes.command.send_if_modified(|known| std::mem::replace(known, command) != command);
        }
        self.active = false;
        self.processes.supervisor.store(0, Ordering::Relaxed);
        match report::read(&self.report) {
            Some(ended) => ended,
            None => {
                let (server, number) = (self.server.clone(), self.number);
                if !task::blocking("killing leftover processes", move || server.sweep(number)).await? {
                    return Err(Error::new(
                        Kind::Timeout,
                        "the command could not be ended: processes that it started may still run",
                    ));
                }
                Ok(ExitStatus { code: 128 + libc::SIGKILL, ..ExitStatus::default() })
            }
        }
    }

    pub(crate) fn processes(&self) -> ProcessTree {
        self.processes.clone()
    }

    /// Closes the lifeline, so that the supervisor starts to terminate the command.
    /// [`ChildExit::wait`] returns when the command has exited.
    pub(crate) fn cut(&mut self) {
        if !std::mem::take(&mut self.active) {
            return;
        }
        // Fails if the supervisor has exited; then there is nothing left to terminate.
        let _ = rustix::net::shutdown(&self.lifeline, rustix::net::Shutdown::Write);
        self.server.cut(self.number);
    }
}

impl Drop for ChildExit {
    fn drop(&mut self) {
        self.cut();
    }
}
