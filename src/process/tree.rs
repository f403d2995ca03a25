//! Process trees: finds descendants, terminates them, and verifies that none is left.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait, waitpid};

use super::os::{self, CommandMark, StartTime, status};
use crate::limits;

/// Interval at which the remaining processes are listed again while a command is terminated.
const KILL_AGAIN: Duration = Duration::from_millis(10);
/// Interval at which a killed orphan is polled until it can be reaped.
const REAP_AGAIN: Duration = Duration::from_millis(1);

/// Returns all descendants of `root`, parents first. The result is a snapshot: processes forked in
/// the meantime are missing.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in os::pids() {
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

/// Returns the processes of a supervisor: its descendants, parents first, and the processes that
/// the system does not give back to it when their parents end.
fn family(supervisor: u32) -> Vec<u32> {
    let mut found = descendants(supervisor);
    found.extend(os::outsiders(supervisor, None).into_iter().filter(|pid| *pid != supervisor));
    found
}

/// Returns whether this process, a supervisor, has processes that are not its descendants.
pub(crate) fn has_orphans() -> bool {
    os::outsiders(std::process::id(), None).into_iter().any(|pid| pid != std::process::id())
}

/// Returns whether a process of `supervisor` that started at `time` or later still runs.
pub(crate) fn runs_since(supervisor: u32, time: StartTime) -> bool {
    family(supervisor).into_iter().filter_map(status).any(|process| !process.zombie && process.started >= time)
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

/// Terminates all processes of this process, which must be a supervisor: sends TERM, waits at most
/// `limits::KILL_GRACE`, then sends KILL until no process is left. `sleep` waits at most the given
/// time for a child to exit; `ended` is called for each child that has exited.
pub(crate) fn end_all(sleep: impl Fn(Duration), mut ended: impl FnMut(Pid, WaitStatus)) {
    let own = getpid().as_raw_nonzero().get().unsigned_abs();
    let deadline = Instant::now() + limits::KILL_GRACE;
    let mut signalled: HashMap<u32, Vec<u8>> = HashMap::new();
    while reap(&mut ended) || has_orphans() {
        let now = Instant::now();
        for pid in family(own) {
            if now >= deadline {
                signal(pid, Signal::KILL);
                continue;
            }
            // Send TERM once per process and name: a shell's child that has not yet executed its
            // command may handle TERM as the shell does and lose it.
            let name = os::name(pid);
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
/// descendants, and the processes of the supervisors `lost`. Returns false if any of them are left.
pub(crate) fn kill_orphans(lost: &[(u32, CommandMark)], known: impl Fn(u32) -> bool) -> bool {
    let own = getpid().as_raw_nonzero().get().unsigned_abs();
    let deadline = Instant::now() + limits::KILL_WAIT;
    while Instant::now() < deadline {
        let mut orphans: Vec<u32> = descendants(own).into_iter().filter(|pid| parent(*pid) == Some(own) && !known(*pid)).collect();
        orphans.extend(lost.iter().flat_map(|(supervisor, mark)| os::outsiders(*supervisor, Some(mark))));
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
                left |= !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)));
            }
        }
        if left {
            std::thread::sleep(REAP_AGAIN);
        }
    }
    false
}
