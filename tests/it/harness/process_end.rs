//! Waits for the end of processes that are not children of the test, with a descriptor for each
//! process (pidfd_open(2)).

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::marker::marked;

/// Maximum time that a started process may run after a cancel or after the end of nuncio.
const BOUND: Duration = Duration::from_secs(2);

/// Waits until no process has `marker` in its environment or arguments. Panics after `BOUND`.
pub async fn gone(marker: &str) {
    let marker = marker.to_string();
    tokio::task::spawn_blocking(move || wait(&marker)).await.unwrap();
}

fn wait(marker: &str) {
    let until = Instant::now() + BOUND;
    loop {
        let left = marked(marker);
        if left.is_empty() {
            return;
        }
        let pids = left.iter().filter_map(|pid| Pid::from_raw(*pid as i32));
        // `pidfd_open` fails for a process that has ended since the list was made.
        let fds: Vec<OwnedFd> = pids.filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect();
        for fd in &fds {
            let time = until.saturating_duration_since(Instant::now());
            let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
            let ended = poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&time)).unwrap();
            assert!(ended == 1, "still running after {BOUND:?}: {:?}", commands(marker));
        }
    }
}

fn commands(marker: &str) -> Vec<String> {
    let command = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ");
    marked(marker).into_iter().map(command).collect()
}
