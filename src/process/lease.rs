//! The deadline of this node's lease, in memory that nuncio shares with its supervisors. They end
//! their commands when it passes, also if nuncio is stopped or hangs and cannot close a lifeline.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::time::clock_gettime;

use super::os;
use crate::error::{Error, Kind, Result};

/// Maximum time between two checks of the deadline. The wait for it does not end earlier if the
/// deadline moves closer, and does not count the time in which the machine is suspended.
const CHECK_AGAIN: Duration = Duration::from_secs(1);

/// The deadline of a lease that does not end.
const NEVER: u64 = 0;

/// Error messages about the end of the lease.
pub(super) const NOT_RUN: &str = "the command was not run because this node's lease has ended";
pub(super) const ENDED: &str = "the command was ended because this node's lease ended";

/// The deadline of the lease under which the commands of a [`super::ProcessLauncher`] run.
#[derive(Debug)]
pub struct LeaseDeadline {
    /// Writable memory.
    memory: DeadlineMemory,
    file: File,
}

impl LeaseDeadline {
    /// Creates a deadline that never passes, until it is set.
    pub fn new() -> io::Result<LeaseDeadline> {
        let mut file = os::shared_file()?;
        // Also reserves the space, without which a later access could fail with SIGBUS.
        file.write_all(&NEVER.to_ne_bytes())?;
        Ok(LeaseDeadline { memory: DeadlineMemory::map(file.as_fd(), ProtFlags::READ | ProtFlags::WRITE)?, file })
    }

    /// Returns the time since the boot, including the time in which the machine was suspended.
    pub fn now() -> Duration {
        // The time since the boot is never negative.
        clock_gettime(os::BOOT_CLOCK).try_into().unwrap_or_default()
    }

    /// Sets the time since the boot at which all commands are ended; `None` means that the lease
    /// does not end. A process that ignores SIGTERM is killed `limits::KILL_GRACE` later. A later
    /// deadline applies at once, an earlier one within a second.
    pub fn set(&self, deadline: Option<Duration>) {
        let time = deadline.map_or(NEVER, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(NEVER + 1));
        self.memory.deadline().store(time, Ordering::Relaxed);
    }

    /// Fails if the deadline has passed.
    pub(super) fn check(&self) -> Result<()> {
        if self.memory.has_passed() { Err(Error::new(Kind::Internal, NOT_RUN)) } else { Ok(()) }
    }

    /// Returns the file for [`DeadlineMemory::open`] in another process.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The memory with the deadline, in milliseconds since the boot or [`NEVER`]. Child processes
/// inherit it.
#[derive(Debug)]
pub(super) struct DeadlineMemory(NonNull<AtomicU64>);

// SAFETY: the memory is mapped until the value is dropped, and contains an atomic number.
unsafe impl Send for DeadlineMemory {}
// SAFETY: as above.
unsafe impl Sync for DeadlineMemory {}

impl DeadlineMemory {
    /// Maps the file of a [`LeaseDeadline`] for reading.
    pub(super) fn open(file: BorrowedFd<'_>) -> io::Result<DeadlineMemory> {
        DeadlineMemory::map(file, ProtFlags::READ)
    }

    fn map(file: BorrowedFd<'_>, access: ProtFlags) -> io::Result<DeadlineMemory> {
        // SAFETY: the kernel chooses an address at which nothing is mapped.
        let address = unsafe { mmap(ptr::null_mut(), size_of::<AtomicU64>(), access, MapFlags::SHARED, file, 0) }?;
        NonNull::new(address.cast()).map(DeadlineMemory).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    fn deadline(&self) -> &AtomicU64 {
        // SAFETY: the memory is mapped, aligned to a page and initialized. All processes access it
        // atomically, those that map it for reading only by relaxed loads, which permit that.
        unsafe { self.0.as_ref() }
    }

    pub(super) fn has_passed(&self) -> bool {
        self.time_left() == Some(Duration::ZERO)
    }

    /// Returns how long to wait before the next call of [`DeadlineMemory::has_passed`].
    pub(super) fn next_check(&self) -> Duration {
        self.time_left().map_or(CHECK_AGAIN, |time| time.min(CHECK_AGAIN))
    }

    fn time_left(&self) -> Option<Duration> {
        let deadline = self.deadline().load(Ordering::Relaxed);
        (deadline != NEVER).then(|| Duration::from_millis(deadline).saturating_sub(LeaseDeadline::now()))
    }
}

impl Drop for DeadlineMemory {
    fn drop(&mut self) {
        // SAFETY: nothing borrows the memory any more. Fails only for an invalid address.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<AtomicU64>()) };
    }
}
