//! The helper: `nuncio helper OPEN_FILES (shell LINE | program NAME ARGUMENT…)`, the process between us and a command.
//! Its stdin is the lifeline, a socket whose other end only we hold: when that is closed, all that the command started ends.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Rlimit, WaitStatus, getrlimit, setrlimit};

use super::tree;
use crate::limits;

/// The first argument by which `main` knows that it is to be the helper.
pub const HELPER: &str = "helper";
pub(super) const SHELL: &str = "shell";
pub(super) const PROGRAM: &str = "program";

/// The helper could not do its work (as env(1) and timeout(1) have it), found no such command, or may not run it.
const FAILED: i32 = 125;
const NOT_FOUND: i32 = 127;
const NOT_RUN: i32 = 126;

/// Where a shell leaves its directory: this descriptor of ours, which it does not inherit but reaches through /proc.
const REPORT: i32 = 3;
const SCRIPT: &str = r#"trap 'pwd -P 2>/dev/null >/proc/$PPID/fd/3' EXIT; __line=$1; shift; eval "$__line""#;

/// The whole life of the helper. `arguments` are those after [`HELPER`]. To be called before anything else in `main`: no thread
/// may run, and it should be quick.
pub fn helper_main(mut arguments: impl Iterator<Item = OsString>) -> ! {
    let code = run(&mut arguments).unwrap_or_else(|error| {
        eprintln!("nuncio: supervising a command: {error}");
        FAILED
    });
    std::process::exit(code)
}

fn run(arguments: &mut dyn Iterator<Item = OsString>) -> io::Result<i32> {
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, "this subcommand is for nuncio itself");
    let open_files = arguments.next().and_then(|text| text.to_str()?.parse().ok()).ok_or_else(usage)?;
    let form = arguments.next().ok_or_else(usage)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(hard.map_or(open_files, |hard| hard.min(open_files))), maximum: hard })?;
    // What we inherited by somebody's mistake is not for the command. Kernels before 5.11 cannot do it, and it is no harm.
    // SAFETY: close_range(2) with this flag closes nothing, it marks.
    unsafe { libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int) };
    let report = if form == SHELL { Some(report_file()?) } else { None };
    let signals = Signals::block()?;

    let spawned = if form == SHELL {
        let line = arguments.next().ok_or_else(usage)?;
        match spawn_shell("bash", &line) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => spawn_shell("sh", &line),
            spawned => spawned,
        }
    } else {
        let name = arguments.next().ok_or_else(usage)?;
        spawn(Command::new(&name).args(arguments))
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", name.display())))
    };
    let main = match spawned {
        Ok(pid) => pid,
        Err(error) => {
            eprintln!("nuncio: {error}");
            return Ok(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN });
        }
    };
    let code = supervise(main, &signals);
    if let Some(mut report) = report {
        report.rewind()?;
        // Who is gone needs no report.
        let _ = io::copy(&mut report, &mut File::from(io::stdin().as_fd().try_clone_to_owned()?));
    }
    Ok(code)
}

fn spawn_shell(shell: &str, line: &OsStr) -> io::Result<Pid> {
    spawn(Command::new(shell).arg("-c").arg(SCRIPT).arg(shell).arg(line))
        .map_err(|error| io::Error::new(error.kind(), format!("{shell}: {error}")))
}

fn spawn(command: &mut Command) -> io::Result<Pid> {
    command.stdin(Stdio::null()).process_group(0);
    // SAFETY: sigemptyset and sigprocmask are async-signal-safe, and nothing is allocated between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            match libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        })
    };
    Ok(Pid::from_child(&command.spawn()?))
}

/// An empty file in memory at [`REPORT`], closed on exec. To be called before anything else is opened.
fn report_file() -> io::Result<File> {
    let file = rustix::fs::memfd_create("nuncio", rustix::fs::MemfdFlags::CLOEXEC)?;
    if file.as_raw_fd() == REPORT {
        return Ok(file.into());
    }
    // SAFETY: dup3(2) on a descriptor that is open; this process has one thread and opened nothing before.
    let moved = unsafe { libc::dup3(file.as_raw_fd(), REPORT, libc::O_CLOEXEC) };
    if moved < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: dup3 has just made it, and it is nobody else's.
    Ok(unsafe { File::from_raw_fd(moved) })
}

/// Waits for `main` to end or for the lifeline to, then ends what is left. Returns the status of `main`.
fn supervise(main: Pid, signals: &Signals) -> i32 {
    let code = Cell::new(None);
    let note = |pid: Pid, status: WaitStatus| {
        if pid == main {
            code.set(status.exit_status().or_else(|| Some(128 + status.terminating_signal()?)));
        }
    };
    let mut patience: Option<Instant> = None;
    while tree::reap(note) {
        if code.get().is_some() {
            patience.get_or_insert_with(|| Instant::now() + limits::LEFTOVER_GRACE);
        }
        let left = patience.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) || signals.wait(left) {
            tree::end_all(|time| signals.wait_child(time), note);
            break;
        }
    }
    code.get().unwrap_or(FAILED)
}

/// Signals as a descriptor (signalfd(2)): a child that ends, or somebody who wants us to.
struct Signals(OwnedFd);

const WATCHED: [i32; 5] = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

impl Signals {
    /// Blocks them, so that they are read here and nowhere else; [`spawn`] unblocks them for the command.
    fn block() -> io::Result<Signals> {
        // SAFETY: sigset_t is plain data that sigemptyset fills; the calls take pointers to it for their duration.
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
        // SAFETY: signalfd has just made it.
        Ok(Signals(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sleeps until a child ends or `time` is over. True when the lifeline is gone, or when somebody sent a signal that says so.
    fn wait(&self, time: Option<Duration>) -> bool {
        let stdin = io::stdin();
        let mut watched = [PollFd::new(&self.0, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        sleep(&mut watched, time);
        let cut = !watched[1].revents().is_empty();
        cut | self.drain()
    }

    /// Sleeps until a child ends or `time` is over, whatever else happens.
    fn wait_child(&self, time: Duration) {
        sleep(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(time));
        self.drain();
    }

    /// Takes the signals that came. True when one of them was not SIGCHLD.
    fn drain(&self) -> bool {
        let mut asked = false;
        let mut buffer = [0; size_of::<libc::signalfd_siginfo>()];
        while let Ok(read) = rustix::io::read(&self.0, &mut buffer)
            && read == buffer.len()
        {
            // The first field, ssi_signo, is 32 bits wide.
            asked |= u32::from_ne_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]) != libc::SIGCHLD as u32;
        }
        asked
    }
}

fn sleep(watched: &mut [PollFd<'_>], time: Option<Duration>) {
    let time = time.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
    // An interrupted wait is a short one; whoever waits looks again.
    let _ = poll(watched, time.as_ref());
}
