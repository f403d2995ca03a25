//! A running command as its caller sees it: its output in order, its end, and the lifeline that holds it alive.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use super::Supervisor;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitStatus {
    /// Its exit status, or 128 + the number of the signal that ended it.
    pub code: i32,
    /// The directory in which a shell ended; none where it was not said.
    pub cwd: Option<PathBuf>,
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

/// The part of a [`Child`] that is awaited, apart from its output so that both can be at once.
#[derive(Debug)]
pub struct Ending {
    helper: tokio::process::Child,
    pid: u32,
    lifeline: Option<UnixStream>,
    report: Vec<u8>,
    supervisor: Supervisor,
}

impl Child {
    pub(super) fn new(
        helper: tokio::process::Child,
        pid: u32,
        lifeline: UnixStream,
        output: Receiver,
        supervisor: Supervisor,
    ) -> Child {
        Child { output: Output(output), ending: Ending { helper, pid, lifeline: Some(lifeline), report: Vec::new(), supervisor } }
    }

    /// Waits until the command and all that it started are gone. Cancel-safe.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        self.ending.wait().await
    }

    /// Ends the command and all that it started, and waits until they are gone: TERM, [`limits::KILL_GRACE`], KILL.
    pub async fn end(mut self) -> Result<ExitStatus> {
        self.ending.cut();
        let bound = limits::KILL_GRACE + limits::KILL_WAIT;
        match tokio::time::timeout(bound, self.ending.wait()).await {
            Ok(status) => status,
            Err(_) => Err(Error::new(Kind::Timeout, format!("ending process {}: still there after {bound:?}", self.ending.pid))),
        }
    }
}

impl Ending {
    /// See [`Child::wait`].
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.helper.wait().await.map_err(|error| Error::io("waiting for a command", error))?;
        self.supervisor.forget(self.pid);
        let Some(code) = status.code() else {
            let supervisor = self.supervisor.clone();
            let swept = tokio::task::spawn_blocking(move || supervisor.sweep()).await;
            debug_assert!(swept.is_ok());
            return Ok(ExitStatus { code: 128 + status.signal().unwrap_or(0), cwd: None });
        };
        Ok(ExitStatus { code, cwd: self.read_report() })
    }

    /// Lets the lifeline go: the command's end begins now. [`Ending::wait`] tells when it is over.
    pub fn cut(&mut self) {
        if let Some(lifeline) = &self.lifeline {
            let closed = lifeline.shutdown(std::net::Shutdown::Write);
            debug_assert!(closed.is_ok() || self.helper.id().is_none());
        }
    }

    /// What the helper wrote before it ended: the directory of a shell, and a line feed.
    fn read_report(&mut self) -> Option<PathBuf> {
        if let Some(lifeline) = self.lifeline.take() {
            lifeline.set_nonblocking(true).ok()?;
            let said = (&lifeline).take(limits::HELPER_REPORT_BYTES_MAX).read_to_end(&mut self.report);
            if said.is_err() {
                self.report.clear();
            }
        }
        let path = self.report.strip_suffix(b"\n")?;
        path.starts_with(b"/").then(|| PathBuf::from(OsString::from_vec(path.to_vec())))
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.cut();
        self.supervisor.forget(self.pid);
    }
}
