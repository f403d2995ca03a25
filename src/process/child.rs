//! A running command as its caller sees it: its output in order, its end, and the lifeline that holds it alive.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

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
    /// Its exit status, or 128 + the number of the signal that ended it.
    pub code: i32,
    /// The directory in which a shell ended; none where it was not said.
    pub cwd: Option<PathBuf>,
    /// What a shell exports otherwise than when it began; none where it could not say, as when it became another program.
    pub exported: Option<Vec<Change>>,
    /// What this kernel could not keep a confined command from.
    pub lacks: Option<String>,
}

impl ExitStatus {
    pub fn of(code: i32) -> ExitStatus {
        ExitStatus { code, ..ExitStatus::default() }
    }
}

#[derive(Debug)]
pub struct Output(Receiver);

impl Output {
    /// Appends what is there to `buffer`, waiting for at least a byte; 0 is the end, which comes when no process holds the
    /// pipe any more. Cancel-safe.
    pub async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.0.read_buf(buffer).await
    }
}

/// The stdin of a command; dropping it is its end.
#[derive(Debug)]
pub struct Input(Sender);

impl Input {
    pub(super) fn new(writer: OwnedFd) -> io::Result<Input> {
        Sender::from_owned_fd(writer).map(Input)
    }

    /// Waits until all is written; an error when nobody reads any more.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await
    }
}

/// The part of a [`Child`] that is awaited, apart from its output so that both can be at once.
#[derive(Debug)]
pub struct Ending {
    lifeline: UnixStream,
    report: Vec<u8>,
    supervisor: Supervisor,
    /// Under which the supervisor ordered it.
    number: u64,
    /// It has not ended, and nobody told it to.
    untold: bool,
}

impl Child {
    pub(super) fn new(lifeline: UnixStream, output: Receiver, supervisor: Supervisor, number: u64) -> Child {
        let ending = Ending { lifeline, report: Vec::new(), supervisor, number, untold: true };
        Child { output: Output(output), ending }
    }

    /// Waits until the command and all that it started are gone. Cancel-safe.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        self.ending.wait().await
    }

    /// Ends the command and all that it started, and waits until they are gone: TERM, [`limits::KILL_GRACE`], KILL.
    pub async fn end(mut self) -> Result<ExitStatus> {
        self.ending.cut();
        let bound = limits::END_WAIT;
        match tokio::time::timeout(bound, self.ending.wait()).await {
            Ok(status) => status,
            Err(_) => Err(Error::new(Kind::Timeout, format!("ending a command: still there after {bound:?}"))),
        }
    }
}

impl Ending {
    /// See [`Child::wait`]. An error says also when something may still run.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        // A supervisor that is killed with unread input resets the socket; that is an end like another.
        while self.lifeline.read_buf(&mut self.report).await.unwrap_or(0) > 0 {}
        self.untold = false;
        match report::read(&self.report) {
            Some(ended) => ended,
            None => {
                let supervisor = self.supervisor.clone();
                let swept = tokio::task::spawn_blocking(move || supervisor.sweep()).await;
                if !swept.map_err(|_| Error::internal("sweeping up after a supervisor panicked"))? {
                    return Err(Error::new(Kind::Timeout, "the command could not be ended: what it had started may still run"));
                }
                Ok(ExitStatus { code: 128 + libc::SIGKILL, ..ExitStatus::default() })
            }
        }
    }

    /// Lets the lifeline go: the command's end begins now. [`Ending::wait`] tells when it is over.
    pub fn cut(&mut self) {
        if !std::mem::take(&mut self.untold) {
            return;
        }
        // It fails when the supervisor is gone, and then there is nothing to end.
        let _ = rustix::net::shutdown(&self.lifeline, rustix::net::Shutdown::Write);
        self.supervisor.cut(self.number);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.cut();
    }
}
