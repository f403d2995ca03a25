//! The readers of the fork server: starts them, watches what the system may not limit, ends them,
//! and reports how they ended.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitStatus, kill_process};

use super::fork::fork;
use super::reader::{NO_TEXT, reader_main};
use super::supervisor::FAILED;
use super::{os, report};
use crate::documents::DocumentKind;
use crate::limits;

/// Interval at which running readers are watched. A reader can exceed its memory for this long.
const WATCH: Duration = Duration::from_millis(10);
/// Additional time of a reader. nuncio and the reader's own limit end it earlier, unless they hang.
const READER_GRACE: Duration = Duration::from_secs(1);

/// The status of a reader that has used all its memory: its allocator aborts.
pub(super) const OUT_OF_MEMORY: i32 = 128 + libc::SIGABRT;
/// The status of a reader that has used all its time.
pub(super) const OUT_OF_TIME: i32 = 128 + libc::SIGXCPU;

/// The running readers, by process id.
#[derive(Default)]
pub(super) struct Readers(HashMap<u32, Reader>);

struct Reader {
    number: u64,
    /// A socket for the report.
    lifeline: OwnedFd,
    until: Instant,
    /// The status to report if the reader was killed because of a limit.
    exceeded: Option<i32>,
}

impl Readers {
    /// Forks a reader. Does not return in the reader itself.
    pub(super) fn start(&mut self, number: u64, kind: DocumentKind, descriptors: Vec<OwnedFd>) {
        let mut descriptors = descriptors.into_iter();
        let (Some(lifeline), Some(output), Some(input)) = (descriptors.next(), descriptors.next(), descriptors.next()) else {
            return;
        };
        match fork() {
            Ok((0, mark)) => reader_main(kind, input, output, mark),
            Ok((pid, _)) => {
                let until = Instant::now() + limits::READER_TIME_MAX + READER_GRACE;
                self.0.insert(pid, Reader { number, lifeline, until, exceeded: None });
            }
            Err(error) => {
                let _ = rustix::io::write(&output, format!("cannot start a process: {error}").as_bytes());
                send_report(&lifeline, 0, NO_TEXT);
            }
        }
    }

    pub(super) fn contains(&self, pid: u32) -> bool {
        self.0.contains_key(&pid)
    }

    /// Returns the time until readers must be watched again.
    pub(super) fn time_left(&self) -> Option<Duration> {
        (!self.0.is_empty()).then_some(WATCH)
    }

    /// Kills readers that exceed a limit.
    pub(super) fn watch(&mut self) {
        let now = Instant::now();
        for (pid, reader) in &mut self.0 {
            let uses_too_much = || os::resident_bytes(*pid).is_some_and(|bytes| bytes > limits::READER_BYTES_MAX);
            let exceeded = match reader.until <= now {
                true => Some(OUT_OF_TIME),
                false => uses_too_much().then_some(OUT_OF_MEMORY),
            };
            if reader.exceeded.is_none() && exceeded.is_some() {
                reader.exceeded = exceeded;
                kill(*pid);
            }
        }
    }

    /// Kills the matching readers.
    pub(super) fn cut(&self, matches: impl Fn(u64) -> bool) {
        self.0.iter().filter(|(_, reader)| matches(reader.number)).for_each(|(pid, _)| kill(*pid));
    }

    /// Reports how a reader ended. Returns false for another process.
    pub(super) fn ended(&mut self, pid: u32, status: WaitStatus) -> bool {
        let Some(reader) = self.0.remove(&pid) else { return false };
        let signal = || Some(128 + status.terminating_signal()?);
        let code = reader.exceeded.or(status.exit_status()).or_else(signal).unwrap_or(FAILED);
        send_report(&reader.lifeline, pid, code);
        true
    }
}

/// Sends the report of a reader. Errors are ignored: they mean that the receiver is gone. The
/// report fits into the empty buffer of the socket.
fn send_report(lifeline: &OwnedFd, pid: u32, code: i32) {
    let report = [report::started(pid).as_slice(), &report::command_started(pid), &report::ended(code, "", &[])].concat();
    let _ = rustix::io::write(lifeline, &report);
}

/// Kills a reader. Its id is not reused before it is reaped.
fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
