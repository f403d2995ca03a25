//! Linux: subreapers, /proc, signalfd(2), pidfd_open(2), Landlock, seccomp and mounts.

mod entry;
mod git_control;
mod landlock;
mod masked;
mod private;
mod syscalls;

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, Resource, pidfd_open};
use rustix::time::ClockId;

use super::{OrderMessage, PlatformSupport};
use crate::process::resource_limits::lower;

pub(in crate::process) use git_control::{Guard, Watch};
pub(in crate::process) use landlock::{ActiveSandbox, confine_reader};
pub(in crate::process) use masked::can_mount;
pub(in crate::process) use syscalls::confine_reader_calls;

pub(crate) const PLATFORM: PlatformSupport = PlatformSupport {
    name: "Linux",
    provides: "commands end with all their processes, and other programs of the user cannot read nuncio's memory",
    lacks: &[],
};

/// The clock of the time since the boot.
pub(in crate::process) const BOOT_CLOCK: ClockId = ClockId::Boottime;

/// Descriptor of the file to which a shell writes its exported variables and its directory. The
/// shell does not inherit it and opens it through /proc. The script uses builtins only, because an
/// additional process would cost more than everything else. See `report`.
const REPORT: i32 = 3;
/// The script is on one line, so that the shell numbers the lines of the command from 1.
pub(in crate::process) const REPORTING_SHELL: &str = concat!(
    r#"{ export -p; printf '\0'; } 2>/dev/null >>/proc/$PPID/fd/3; "#,
    r#"trap '{ pwd -P; printf "\0"; export -p; printf "\0"; } 2>/dev/null >>/proc/$PPID/fd/3' EXIT; "#,
    r#"__line=$1; shift; eval "$__line""#,
);

/// Returns the path of the running binary, which also leads to a binary that has been replaced.
pub(in crate::process) fn own_program() -> PathBuf {
    "/proc/self/exe".into()
}

/// Prevents other processes of the same user from reading this process's memory, environment and
/// open files (PR_SET_DUMPABLE, prctl(2)).
pub(crate) fn hide_memory() {
    // Ignore the error: the call does not fail on Linux, and nuncio works without this protection.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Makes this process the parent of all descendants whose parent ends.
pub(in crate::process) fn adopt_descendants() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Moves this process, a supervisor, into its own process group.
pub(in crate::process) fn lead_group() -> io::Result<()> {
    Ok(rustix::process::setpgid(None, None)?)
}

/// A mark of the processes of one command: none is needed, because a supervisor adopts its
/// descendants.
pub(in crate::process) struct CommandMark;

impl CommandMark {
    /// Does nothing.
    pub(in crate::process) fn new() -> io::Result<CommandMark> {
        Ok(CommandMark)
    }
}

/// Returns the processes of a supervisor that are not its descendants: none.
pub(in crate::process) fn outsiders(_supervisor: u32, _mark: Option<&CommandMark>) -> Vec<u32> {
    Vec::new()
}

/// Closes all descriptors above 2 except `kept`: they belong to the fork server.
pub(in crate::process) fn keep_only(kept: Option<OwnedFd>, _mark: CommandMark) -> Option<OwnedFd> {
    let number = kept.as_ref().map_or(2, |kept| kept.as_raw_fd().unsigned_abs());
    // Make the system call by number, because the libc wrapper requires glibc 2.34.
    let close = |first: libc::c_uint, last: libc::c_uint| {
        // SAFETY: no owner of a descriptor above 2 is used after this, except that of `kept`, which
        // is not closed.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0 as libc::c_uint) };
    };
    if number > 3 {
        close(3, number - 1);
    }
    close(number + 1, libc::c_uint::MAX);
    kept
}

/// Creates an empty in-memory file, closed on exec.
pub(in crate::process) fn shared_file() -> io::Result<File> {
    Ok(rustix::fs::memfd_create("nuncio", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// Creates an empty in-memory file at descriptor [`REPORT`], closed on exec. Must be called before
/// other files are opened.
pub(in crate::process) fn report_file() -> io::Result<File> {
    let file = shared_file()?;
    if file.as_raw_fd() == REPORT {
        return Ok(file);
    }
    // SAFETY: dup3(2) on an open descriptor; this process has one thread and has opened nothing
    // else.
    let moved = unsafe { libc::dup3(file.as_raw_fd(), REPORT, libc::O_CLOEXEC) };
    if moved < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: dup3 has just created the descriptor, so it has no other owner.
    Ok(unsafe { File::from_raw_fd(moved) })
}

/// Limits the memory of this process with its stacks, in bytes.
pub(in crate::process) fn limit_memory(bytes: u64) {
    lower(&[(Resource::Data, bytes)]);
    one_heap();
}

/// Makes all threads of this process use the heap of the first one. The heap of another thread
/// grows by a system call for each page.
#[cfg(target_env = "gnu")]
fn one_heap() {
    // SAFETY: mallopt(3) only sets a parameter of the allocator.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Does nothing: the allocator of musl has one heap.
#[cfg(not(target_env = "gnu"))]
fn one_heap() {}

/// Blocks the signals and returns a descriptor from which they can be read (signalfd(2)).
pub(in crate::process) fn open_signals(watched: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: sigset_t is plain data that sigemptyset fills; the calls take pointers to it for
    // their duration.
    let fd = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in watched {
            libc::sigaddset(&mut set, *signal);
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
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads the pending signals and calls `each` for them.
pub(in crate::process) fn read_signals(descriptor: &OwnedFd, mut each: impl FnMut(i32)) {
    let mut buffer = [0; size_of::<libc::signalfd_siginfo>()];
    while let Ok(read) = rustix::io::read(descriptor, &mut buffer)
        && read == buffer.len()
    {
        // The first field, ssi_signo, is 32 bits wide.
        each(i32::from_ne_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]));
    }
}

/// Waits until a child exits, for at most `time`. Returns whether it has exited.
pub(in crate::process) fn exits_within(process: &mut std::process::Child, time: Duration) -> bool {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    pidfd_open(Pid::from_child(process), PidfdFlags::empty())
        .is_ok_and(|descriptor| poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&time)).is_ok_and(|ended| ended > 0))
}

/// Creates the pair of sockets for orders. They keep the bounds of messages.
pub(in crate::process) fn order_sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message with at most 4 descriptors.
pub(in crate::process) fn send_order(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message. Returns `None` if the other end is closed.
pub(in crate::process) fn receive_order(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<OrderMessage>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let complete = !received.flags.contains(ReturnFlags::TRUNC);
    Ok(Some(OrderMessage { bytes: received.bytes, complete, descriptors }))
}
