//! Process trees: finds descendants in /proc, terminates them, and verifies that none is left.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait, waitpid};

use crate::limits;

/// Interval at which the remaining processes are listed again while a command is terminated.
const KILL_AGAIN: Duration = Duration::from_millis(10);
/// Interval at which a killed orphan is polled until it can be reaped.
const REAP_AGAIN: Duration = Duration::from_millis(1);

/// Returns all descendants of `root`, parents first. The result is a snapshot: processes forked in
/// the meantime are missing.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children.remove(&pid).unwrap_or_default());
        next += 1;
    }
    found.split_off(1)
}

/// The time at which a process started, in clock ticks since the boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StartTime(u64);

impl StartTime {
    /// Returns the start time of a process that starts now.
    pub(crate) fn now() -> StartTime {
        let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
        let seconds = uptime.split_ascii_whitespace().next().and_then(|seconds| seconds.parse::<f64>().ok());
        let ticks = |seconds: f64| (seconds * rustix::param::clock_ticks_per_second() as f64) as u64;
        StartTime(seconds.map_or(u64::MAX, ticks))
    }
}

/// Returns whether a descendant of `root` that started at `time` or later still runs.
pub(crate) fn runs_since(root: u32, time: StartTime) -> bool {
    descendants(root).into_iter().filter_map(status).any(|process| !process.zombie && process.started >= time)
}

/// The status of a process.
struct ProcessStatus {
    zombie: bool,
    parent: u32,
    started: StartTime,
}

/// Reads fields 3, 4 and 22 of /proc/PID/stat (proc(5)). The second field, the program's name, may
/// contain any character, including parentheses.
fn status(pid: u32) -> Option<ProcessStatus> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace();
    let zombie = fields.next()? == "Z";
    let parent = fields.next()?.parse().ok()?;
    let started = StartTime(fields.nth(17)?.parse().ok()?);
    Some(ProcessStatus { zombie, parent, started })
}

fn parent(pid: u32) -> Option<u32> {
    Some(status(pid)?.parent)
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // Fails if the process has ended already, which is the goal.
        let _ = kill_process(pid, signal);
    }
}

/// Reaps children that have ended and calls `ended` for each. Returns false if there are no
/// children left.
pub(crate) fn reap(mut ended: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended(pid, status),
            Ok(None) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Terminates all descendants of this process, which must be a subreaper: sends TERM, waits at most
/// `limits::KILL_GRACE`, then sends KILL until no process is left. `sleep` waits at most the given
/// time for a child to exit; `ended` is called for each child that has exited.
pub(crate) fn end_all(sleep: impl Fn(Duration), mut ended: impl FnMut(Pid, WaitStatus)) {
    let own = getpid().as_raw_nonzero().get().unsigned_abs();
    let deadline = Instant::now() + limits::KILL_GRACE;
    let mut signalled: HashMap<u32, Vec<u8>> = HashMap::new();
    while reap(&mut ended) {
        let now = Instant::now();
        for pid in descendants(own) {
            if now >= deadline {
                signal(pid, Signal::KILL);
                continue;
            }
            // Send TERM once per process and name: a shell's child that has not yet executed its
            // command may handle TERM as the shell does and lose it.
            let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
            if signalled.get(&pid) != Some(&name) {
                signalled.insert(pid, name);
                signal(pid, Signal::TERM);
                signal(pid, Signal::CONT);
            }
        }
        sleep(KILL_AGAIN);
    }
}

/// Kills and reaps the children of this process for which `known` returns false, with their
/// descendants. Returns false if any of them are left.
pub(crate) fn kill_orphans(known: impl Fn(u32) -> bool) -> bool {
    let own = getpid().as_raw_nonzero().get().unsigned_abs();
    let deadline = Instant::now() + limits::KILL_WAIT;
    while Instant::now() < deadline {
        let orphans: Vec<u32> = descendants(own).into_iter().filter(|pid| parent(*pid) == Some(own) && !known(*pid)).collect();
        if orphans.is_empty() {
            return true;
        }
        let mut left = false;
        for orphan in orphans {
            for pid in descendants(orphan) {
                signal(pid, Signal::KILL);
            }
            signal(orphan, Signal::KILL);
            if let Some(pid) = i32::try_from(orphan).ok().and_then(Pid::from_raw) {
                left |= matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None));
            }
        }
        if left {
            std::thread::sleep(REAP_AGAIN);
        }
    }
    false
}
