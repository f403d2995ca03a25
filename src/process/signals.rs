//! Waits for signals and other events at the same time. Only for single-threaded processes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::os;

/// A descriptor for SIGCHLD and the signals that request termination.
pub(super) struct Signals(OwnedFd);

const WATCHED: [i32; 5] = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

impl Signals {
    /// Makes the signals arrive only through the descriptor. The supervisor unblocks them for its
    /// command.
    pub(super) fn open() -> io::Result<Signals> {
        os::open_signals(&WATCHED).map(Signals)
    }

    /// Sleeps until a signal arrives, such as SIGCHLD, the lifeline closes or `time` has passed.
    /// Returns true if the lifeline is closed or a signal requested termination.
    pub(super) fn wait(&self, time: Option<Duration>) -> bool {
        let cut = !self.watch(io::stdin().as_fd(), None, time).is_empty();
        cut | self.drain()
    }

    /// Sleeps until `first` or `second` is ready, a child exits, or `time` has passed. Other
    /// signals are discarded. Returns how `first` is ready.
    pub(super) fn wait_for(&self, first: BorrowedFd<'_>, second: Option<BorrowedFd<'_>>, time: Option<Duration>) -> PollFlags {
        let ready = self.watch(first, second, time);
        self.drain();
        ready
    }

    fn watch(&self, first: BorrowedFd<'_>, second: Option<BorrowedFd<'_>>, time: Option<Duration>) -> PollFlags {
        let others = [first, second.unwrap_or(first)].map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN));
        let [first, second] = others;
        let mut watched = [PollFd::new(&self.0, PollFlags::IN), first, second];
        sleep(&mut watched, time);
        watched[1].revents()
    }

    /// Sleeps until a child exits or `time` has passed. All signals are discarded.
    pub(super) fn wait_child(&self, time: Duration) {
        sleep(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(time));
        self.drain();
    }

    /// Reads pending signals. Returns true if one of them was not SIGCHLD.
    fn drain(&self) -> bool {
        let mut terminate = false;
        os::read_signals(&self.0, |signal| terminate |= signal != libc::SIGCHLD);
        terminate
    }
}

/// Gives signals their usual effects again, in a child process of the fork server.
pub(super) fn reset() {
    // SAFETY: sigset_t is plain data that sigemptyset fills; no handler is installed.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        // Rust reports the overflow of a stack like a call of `abort`.
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

fn sleep(watched: &mut [PollFd<'_>], time: Option<Duration>) {
    let time = time.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
    // An interrupted wait ends early; callers check their condition again.
    let _ = poll(watched, time.as_ref());
}
