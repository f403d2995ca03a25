//! Calls that Linux and other POSIX systems make differently. `linux` and `posix` define the same
//! names; the build script selects one of them (`cfg(posix)`). `procfs` and `apple` list processes.

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(not(posix))]
mod linux;
#[cfg(posix)]
mod posix;
mod process_status;
#[cfg(not(target_vendor = "apple"))]
mod procfs;

#[cfg(target_vendor = "apple")]
use apple as processes;
#[cfg(not(posix))]
use linux as system;
#[cfg(posix)]
use posix as system;
#[cfg(not(target_vendor = "apple"))]
use procfs as processes;

pub(crate) use process_status::StartTime;
#[cfg(posix)]
use processes::open_file;
pub(crate) use processes::resident_bytes;
pub(super) use processes::{directory, name, pids, start_time_now, status};
pub(super) use system::{
    ActiveSandbox, BOOT_CLOCK, CommandMark, Guard, REPORTING_SHELL, Watch, adopt_descendants, can_mount, confine_reader,
    confine_reader_calls, exits_within, keep_only, lead_group, limit_memory, open_signals, order_sockets, outsiders, own_program,
    read_signals, receive_order, report_file, send_order, shared_file,
};
pub(crate) use system::{PLATFORM, hide_memory};

impl StartTime {
    /// Returns the start time of a process that starts now.
    pub(crate) fn now() -> StartTime {
        start_time_now()
    }
}

/// A message on the socket of the fork server.
pub(super) struct OrderMessage {
    /// Number of bytes in the buffer, which is too small for the message if `complete` is false.
    pub bytes: usize,
    pub complete: bool,
    pub descriptors: Vec<std::os::fd::OwnedFd>,
}

/// The protections of this system, for `nuncio doctor`.
pub(crate) struct PlatformSupport {
    /// Name of the calls that are used.
    pub name: &'static str,
    pub provides: &'static str,
    /// Protections that other systems provide; empty if this one provides all.
    pub lacks: &'static [&'static str],
}
