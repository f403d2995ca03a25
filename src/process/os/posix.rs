//! POSIX systems without the calls of `linux`. A supervisor leads a session, and its processes are
//! found by their parents, by their session, and by a file that they inherit ([`CommandMark`]). A
//! process that starts its own session, closes that file and loses its parent is not found. Nothing
//! confines commands.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::setsid;
use rustix::time::ClockId;

use super::{OrderMessage, PlatformSupport, open_file, pids, status};
use crate::process::Sandbox;

pub(crate) const PLATFORM: PlatformSupport = PlatformSupport {
    name: "POSIX",
    provides: "commands end with their processes, except those that leave their session and close inherited files",
    lacks: &[
        "confinement of commands",
        "the end of these processes, such as daemons",
        "protection of nuncio's memory from other programs of the user",
    ],
};

/// Descriptor of the file that all processes of a command inherit. A shell writes its exported
/// variables and its directory to it. The number is above those that shells and scripts use.
const MARK: i32 = 64;
/// The script is on one line, so that the shell numbers the lines of the command from 1.
pub(in crate::process) const REPORTING_SHELL: &str = concat!(
    r#"{ export -p; printf '\0'; } 2>/dev/null >>/dev/fd/64; "#,
    r#"trap '{ pwd -P; printf "\0"; export -p; printf "\0"; } 2>/dev/null >>/dev/fd/64' EXIT; "#,
    r#"__line=$1; shift; eval "$__line""#,
);

/// The clock of the time since the boot. On macOS, it includes the time in which the machine was
/// suspended (clock_gettime(3)).
pub(in crate::process) const BOOT_CLOCK: ClockId = ClockId::Monotonic;

/// Interval at which a child is polled until it has exited.
const EXIT_POLL: Duration = Duration::from_millis(2);

/// Maximum number of bytes of an order, as the length before it is encoded.
type OrderLength = u32;

/// The write end of the pipe with the signals of this process, or -1. A signal handler can reach
/// nothing else.
static SIGNAL_PIPE: AtomicI32 = AtomicI32::new(-1);

/// Returns the path of the running binary.
pub(in crate::process) fn own_program() -> PathBuf {
    // Fails only if the binary was removed; then its name is looked up.
    std::env::current_exe().unwrap_or_else(|_| "nuncio".into())
}

/// Does nothing: POSIX has no such protection.
pub(crate) fn hide_memory() {}

/// Does nothing: orphans become children of the system's first process. See [`outsiders`].
pub(in crate::process) fn adopt_descendants() -> io::Result<()> {
    Ok(())
}

/// Moves this process, a supervisor, into its own session, which is also a process group.
pub(in crate::process) fn lead_group() -> io::Result<()> {
    setsid()?;
    Ok(())
}

/// A file without a name that identifies the processes of one command, which inherit it at
/// descriptor [`MARK`]. The fork server keeps it open while it may look for them, so that no other
/// file has its number.
pub(in crate::process) struct CommandMark(OwnedFd);

impl CommandMark {
    /// Creates a mark for the next command, at a descriptor above [`MARK`]. Nothing else in the
    /// fork server has such a high one.
    pub(in crate::process) fn new() -> io::Result<CommandMark> {
        Ok(CommandMark(fcntl_dupfd_cloexec(shared_file()?, MARK + 1)?))
    }
}

/// Creates an empty file without a name, closed on exec.
pub(in crate::process) fn shared_file() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("nuncio-{}", uuid::Uuid::now_v7().simple()));
    let file = File::options().read(true).append(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Returns the running processes of a supervisor's session, with the supervisor, and those that
/// have the mark of its command. `None` is the mark that a running supervisor has.
pub(in crate::process) fn outsiders(supervisor: u32, mark: Option<&CommandMark>) -> Vec<u32> {
    let number = |pid: u32| i32::try_from(pid).ok().filter(|pid| *pid > 0);
    let Some(session) = number(supervisor) else { return Vec::new() };
    let mark = match mark {
        Some(CommandMark(file)) => open_file(std::process::id(), file.as_raw_fd()),
        None => open_file(supervisor, MARK),
    };
    // SAFETY: no memory is involved. rustix rejects the session 0 of the kernel's threads.
    let in_session = |pid: u32| number(pid).is_some_and(|pid| unsafe { libc::getsid(pid) } == session);
    let belongs = |pid: &u32| in_session(*pid) || mark.is_some() && open_file(*pid, MARK) == mark;
    let running = |pid: &u32| status(*pid).is_some_and(|process| !process.zombie);
    pids().into_iter().filter(belongs).filter(running).collect()
}

/// Closes all descriptors above 2 except `kept`, because they belong to the fork server, and moves
/// the mark to [`MARK`]. Signals are blocked until [`open_signals`].
pub(in crate::process) fn keep_only(kept: Option<OwnedFd>, mark: CommandMark) -> Option<OwnedFd> {
    SIGNAL_PIPE.store(-1, Ordering::Relaxed);
    // SAFETY: dup2(2) on an open descriptor cannot fail. The number has no owner in this process.
    unsafe { libc::dup2(mark.0.into_raw_fd(), MARK) };
    // SAFETY: sigset_t is plain data that sigfillset fills; the calls take pointers to it for their
    // duration.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
    let listed: Vec<i32> = std::fs::read_dir("/dev/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    let is_kept = |number: &i32| [0, 1, 2, MARK].contains(number) || kept.as_ref().is_some_and(|kept| kept.as_raw_fd() == *number);
    for descriptor in listed.into_iter().filter(|number| !is_kept(number)) {
        // SAFETY: no owner of a descriptor above 2 is used after this, except that of `kept`, which
        // is not closed.
        unsafe { libc::close(descriptor) };
    }
    kept
}

/// Returns the file to which a shell reports: its mark.
pub(in crate::process) fn report_file() -> io::Result<File> {
    // SAFETY: `keep_only` has created the descriptor, which is open until this process ends.
    let mark = unsafe { BorrowedFd::borrow_raw(MARK) };
    Ok(fcntl_dupfd_cloexec(mark, 0)?.into())
}

/// Does nothing, because the limits of macOS do not bind. The fork server watches readers.
pub(in crate::process) fn limit_memory(_bytes: u64) {}

/// Does nothing: this system has no such restrictions.
pub(in crate::process) fn confine_reader() -> io::Result<()> {
    Ok(())
}

/// Does nothing, like [`confine_reader`].
pub(in crate::process) fn confine_reader_calls() -> io::Result<()> {
    Ok(())
}

extern "C" fn note_signal(signal: libc::c_int) {
    let byte = signal as u8;
    // SAFETY: write(2) is async-signal-safe, and the pointer is valid for one byte. If the pipe is
    // full, its reader has signals to read already.
    unsafe { libc::write(SIGNAL_PIPE.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
}

/// Returns a descriptor from which signals can be read: a pipe that a signal handler writes to.
pub(in crate::process) fn open_signals(watched: &[i32]) -> io::Result<OwnedFd> {
    let (reader, writer) = io::pipe()?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    rustix::io::ioctl_fionbio(&writer, true)?;
    let writer = OwnedFd::from(writer);
    // The pipe is open until this process ends.
    SIGNAL_PIPE.store(writer.into_raw_fd(), Ordering::Relaxed);
    for signal in watched {
        // SAFETY: the handler is async-signal-safe; the structure is plain data that is filled
        // before the call.
        let set = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note_signal as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(*signal, &action, std::ptr::null_mut())
        };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: as in `keep_only`.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
    Ok(reader.into())
}

/// Reads the pending signals and calls `each` for them.
pub(in crate::process) fn read_signals(descriptor: &OwnedFd, mut each: impl FnMut(i32)) {
    let mut buffer = [0; 64];
    loop {
        match rustix::io::read(descriptor, &mut buffer) {
            Ok(read) if read > 0 => buffer[..read].iter().for_each(|signal| each(i32::from(*signal))),
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Waits until a child exits, for at most `time`. Returns whether it has exited.
pub(in crate::process) fn exits_within(process: &mut std::process::Child, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        match process.try_wait() {
            Ok(None) if Instant::now() < until => std::thread::sleep(EXIT_POLL),
            ended => return ended.is_ok_and(|status| status.is_some()),
        }
    }
}

/// Creates the pair of sockets for orders: streams, because macOS has no sockets that keep the
/// bounds of messages.
pub(in crate::process) fn order_sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((ours.into(), theirs.into()))
}

/// Sends one message with at most 4 descriptors: its length, then its bytes. The descriptors are
/// sent with the length. A closed socket is an error, because Rust programs ignore SIGPIPE.
pub(in crate::process) fn send_order(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let length = OrderLength::try_from(bytes.len()).map_err(io::Error::other)?.to_ne_bytes();
    let sent = loop {
        match sendmsg(&socket, &[IoSlice::new(&length)], &mut control, SendFlags::empty()) {
            Err(Errno::INTR) => {}
            sent => break sent?,
        }
    };
    let mut stream = UnixStream::from(socket.as_fd().try_clone_to_owned()?);
    stream.write_all(&length[sent..])?;
    stream.write_all(bytes)
}

/// Receives one message. Returns `None` if the other end is closed.
pub(in crate::process) fn receive_order(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<OrderMessage>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut length = [0; size_of::<OrderLength>()];
    let received = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut length)], &mut control, RecvFlags::empty()) {
            Err(Errno::INTR) => {}
            received => break received?.bytes,
        }
    };
    if received == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    for descriptor in &descriptors {
        fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    let mut stream = UnixStream::from(socket.try_clone_to_owned()?);
    stream.read_exact(&mut length[received..])?;
    let bytes = OrderLength::from_ne_bytes(length) as usize;
    let Some(into) = buffer.get_mut(..bytes) else {
        // The sender refuses such orders.
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the order is too long"));
    };
    stream.read_exact(into)?;
    Ok(Some(OrderMessage { bytes, complete: true, descriptors }))
}

/// Returns false: there are no mounts.
pub(in crate::process) fn can_mount() -> bool {
    false
}

/// The files that a sandbox protects: none.
#[derive(Default)]
pub(in crate::process) struct NoGuard;

pub(in crate::process) type Guard = NoGuard;

impl NoGuard {
    /// Guards nothing.
    pub(in crate::process) fn new(_sandbox: &Sandbox, _named: Vec<PathBuf>, _mounts: impl FnOnce() -> bool) -> NoGuard {
        NoGuard
    }

    /// Does nothing.
    pub(in crate::process) fn share(&mut self, _other: &NoGuard) {}

    /// Returns false: there is nothing to guard.
    pub(in crate::process) fn is_needed(&self) -> bool {
        false
    }

    /// Does nothing.
    pub(in crate::process) fn watch(&self, _watch: &mut NoWatch) {}

    /// Does nothing.
    pub(in crate::process) fn check(&mut self, _supervisor: u32) {}

    /// Returns when to check again: never.
    pub(in crate::process) fn due(&self) -> Option<Instant> {
        None
    }

    /// Returns the restored files, and descriptions of what the command created: none.
    pub(in crate::process) fn finish(self) -> [Vec<String>; 2] {
        Default::default()
    }
}

/// A watch over nothing.
pub(in crate::process) struct NoWatch;

pub(in crate::process) type Watch = NoWatch;

impl NoWatch {
    /// Watches nothing.
    pub(in crate::process) fn new() -> NoWatch {
        NoWatch
    }

    /// Returns no descriptor.
    pub(in crate::process) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns false: nothing changes.
    pub(in crate::process) fn matters(&mut self) -> bool {
        false
    }
}

/// The restrictions in effect: none.
#[derive(Default)]
pub(in crate::process) struct NoSandbox {
    /// The restrictions that this system does not support.
    pub unsupported: Vec<&'static str>,
}

pub(in crate::process) type ActiveSandbox = NoSandbox;

impl Sandbox {
    /// Returns whether this system can restrict files: it cannot.
    pub(crate) fn is_available() -> bool {
        false
    }

    /// Returns true: there are no control files.
    pub(crate) fn is_watched() -> bool {
        true
    }

    /// Returns false: commands that need a sandbox do not run.
    pub(crate) fn exposes_git(&self, _can_mount: impl FnOnce() -> bool) -> bool {
        false
    }

    /// Fails: this system has no restrictions.
    pub(in crate::process) fn apply(&self, _guard: &Guard) -> Result<ActiveSandbox, String> {
        Err("this system cannot confine commands".into())
    }
}
