//! Waits for the end of processes that are not children of the test, with a descriptor for each
//! process (pidfd_open(2)).

use std::fs::DirEntry;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::marker::marked;

/// Maximum time that a started process may run after a cancel or after the end of nuncio.
const BOUND: Duration = Duration::from_secs(2);
/// Length of one wait. The bound counts waits, so a machine that stands still for seconds, as
/// virtual machines do, uses up one of them.
const WAIT: Duration = Duration::from_millis(20);

/// Waits until no process has `marker` in its environment or arguments. Panics after `BOUND`.
pub async fn gone(marker: &str) {
    let marker = marker.to_string();
    tokio::task::spawn_blocking(move || wait(&marker)).await.unwrap();
}

fn wait(marker: &str) {
    let length = Timespec { tv_sec: 0, tv_nsec: i64::from(WAIT.subsec_nanos()) };
    let mut waits = BOUND.as_millis() / WAIT.as_millis();
    loop {
        let pids = marked(marker);
        if pids.is_empty() {
            return;
        }
        let pids = pids.iter().filter_map(|pid| Pid::from_raw(*pid as i32));
        // `pidfd_open` fails for a process that has ended since the list was made.
        let fds: Vec<OwnedFd> = pids.filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect();
        let mut watched: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        if !watched.is_empty() && poll(&mut watched, Some(&length)).unwrap() == 0 {
            waits -= 1;
            assert!(waits > 0, "still running after {BOUND:?}: {:?}", commands(marker));
        }
    }
}

/// Stops a process (SIGSTOP). One of its threads acts on the signal when it runs next, and until then
/// the others go on: returns when all have stopped.
pub async fn pause(process: Pid) {
    kill_process(process, Signal::STOP).unwrap();
    let threads = format!("/proc/{}/task", process.as_raw_nonzero());
    let is_stopped = |thread: DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The state follows the name of the program, which is in parentheses.
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    };
    crate::poll("the stop of all threads", || std::fs::read_dir(&threads).unwrap().flatten().all(is_stopped)).await;
}

fn commands(marker: &str) -> Vec<String> {
    let command = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ");
    marked(marker).into_iter().map(command).collect()
}
