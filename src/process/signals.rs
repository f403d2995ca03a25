//! Waits for signals and other events at the same time. Only for single-threaded processes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A signalfd(2) for SIGCHLD and the signals that request termination.
pub(super) struct Signals(OwnedFd);

const WATCHED: [i32; 5] = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

impl Signals {
    /// Blocks the signals, so that they arrive only through the descriptor. The supervisor unblocks
    /// them for its command.
    pub(super) fn block() -> io::Result<Signals> {
        // SAFETY: sigset_t is plain data that sigemptyset fills; the calls take pointers to it for
        // their duration.
        let fd = unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in WATCHED {
                libc::sigaddset(&mut set, signal);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: signalfd has just created the descriptor.
        Ok(Signals(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sleeps until a signal arrives, such as SIGCHLD, the lifeline closes or `time` has passed.
    /// Returns true if the lifeline is closed or a signal requested termination.
    pub(super) fn wait(&self, time: Option<Duration>) -> bool {
        let cut = !self.watch(io::stdin().as_fd(), time).is_empty();
        cut | self.drain()
    }

    /// Sleeps until `other` is ready, a child exits, or `time` has passed. Other signals are
    /// discarded.
    pub(super) fn wait_for(&self, other: BorrowedFd<'_>, time: Option<Duration>) -> PollFlags {
        let ready = self.watch(other, time);
        self.drain();
        ready
    }

    fn watch(&self, other: BorrowedFd<'_>, time: Option<Duration>) -> PollFlags {
        let mut watched = [PollFd::new(&self.0, PollFlags::IN), PollFd::from_borrowed_fd(other, PollFlags::IN)];
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
        let mut buffer = [0; size_of::<libc::signalfd_siginfo>()];
        while let Ok(read) = rustix::io::read(&self.0, &mut buffer)
            && read == buffer.len()
        {
            // The first field, ssi_signo, is 32 bits wide.
            terminate |= u32::from_ne_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]) != libc::SIGCHLD as u32;
        }
        terminate
    }
}

fn sleep(watched: &mut [PollFd<'_>], time: Option<Duration>) {
    let time = time.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
    // An interrupted wait ends early; callers check their condition again.
    let _ = poll(watched, time.as_ref());
}
