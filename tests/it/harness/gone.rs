//! Waiting for the end of processes that are not our children: a descriptor each (pidfd_open(2)), which says when it ends.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::process::marked;

/// How long what was started may outlive the cancel or the death of nuncio.
const BOUND: Duration = Duration::from_secs(2);

/// Returns when nothing runs any more that has `marker` in its environment or arguments; panics when that takes too long.
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
        // One that has ended meanwhile has no descriptor.
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
