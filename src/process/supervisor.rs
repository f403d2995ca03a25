//! The supervisor of one command, forked by the fork server. Its stdin is the lifeline, a socket
//! whose other end only nuncio holds. When nuncio closes that end, and when the lease of this node
//! ends, the supervisor terminates all processes of the command.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, WaitStatus, getrlimit, setrlimit};

use super::command::{self, CommandKind};
use super::find::find_shell;
use super::lease::{self, DeadlineMemory};
use super::oom::OomScore;
use super::os::{self, ActiveSandbox, CommandMark, Guard};
use super::signals::Signals;
use super::{report, tree};
use crate::config::Environment;

/// How long processes that a command left running, such as a `tee` that still writes, may take to
/// exit by themselves. After that, they are terminated.
const LEFTOVER_GRACE: Duration = Duration::from_millis(50);
/// Maximum size of the state that a shell reports on exit (its environment twice, and a path), in
/// bytes.
const HELPER_REPORT_BYTES_MAX: u64 = 512 << 10;

/// Exit codes, as in env(1) and timeout(1): nuncio failed, the program was not found, or the
/// program cannot be executed.
pub(super) const FAILED: i32 = 125;
const NOT_FOUND: i32 = 127;
const NOT_RUN: i32 = 126;

/// The descriptors that a supervisor holds for its command.
pub(super) struct Pipes {
    pub lifeline: OwnedFd,
    pub mark: CommandMark,
    pub output: OwnedFd,
    /// Stdin of the command, if piped. If `None`, stdin is /dev/null and stderr goes to `output`.
    pub input: Option<OwnedFd>,
    /// Stderr of a command with a piped stdin; `None` discards it.
    pub errors: Option<OwnedFd>,
}

/// Runs the command, reports on the lifeline how it ended, and exits with status 0 if it reported.
pub(super) fn supervisor_main(
    command: command::Command,
    guard: &Guard,
    pipes: Pipes,
    open_files: u64,
    lease: Option<&DeadlineMemory>,
) -> ! {
    let ran = run(command, guard, pipes, open_files, lease);
    if let Err(error) = &ran {
        eprintln!("nuncio: {error}");
    }
    std::process::exit(if ran.is_ok() { 0 } else { FAILED })
}

fn run(command: command::Command, guard: &Guard, pipes: Pipes, open_files: u64, lease: Option<&DeadlineMemory>) -> io::Result<()> {
    let Pipes { lifeline, mark, output, input, errors } = pipes;
    os::lead_group()?;
    rustix::stdio::dup2_stdin(&lifeline)?;
    send_report(&report::started(std::process::id()));
    rustix::stdio::dup2_stdout(&output)?;
    match (&input, &errors) {
        (_, Some(errors)) => rustix::stdio::dup2_stderr(errors)?,
        (None, None) => rustix::stdio::dup2_stderr(&output)?,
        (Some(_), None) => rustix::stdio::dup2_stderr(File::options().write(true).open("/dev/null")?)?,
    }
    drop((lifeline, output, errors));
    let input = os::keep_only(input, mark);
    os::adopt_descendants()?;
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(hard.map_or(open_files, |hard| hard.min(open_files))), maximum: hard })?;
    let mut shell_report = match &command.kind {
        CommandKind::Shell(_) => Some(os::report_file()?),
        CommandKind::Program(_) => None,
    };
    let signals = Signals::open()?;
    if lease.is_some_and(DeadlineMemory::has_passed) {
        send_report(&report::NO_COMMAND);
        send_report(&report::lease_ended(lease::NOT_RUN));
        return Ok(());
    }
    let mut score = OomScore::open();
    let applied = match command.sandbox.as_ref().map_or(Ok(ActiveSandbox::default()), |sandbox| sandbox.apply(guard)) {
        Ok(applied) => applied,
        Err(_) if command.sandbox.as_ref().is_some_and(|sandbox| !sandbox.required) => ActiveSandbox::default(),
        Err(why) => {
            send_report(&report::NO_COMMAND);
            send_report(&report::refused(&why));
            return Ok(());
        }
    };
    let code = match OomScore::raised(&mut score, || start(&command, input)) {
        Ok(main) => {
            send_report(&report::command_started(main.as_raw_nonzero().get().unsigned_abs()));
            supervise(main, &signals, lease)
        }
        Err(error) => {
            send_report(&report::NO_COMMAND);
            eprintln!("nuncio: {error}");
            Some(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN })
        }
    };
    let mut shell = Vec::new();
    if let Some(file) = &mut shell_report {
        file.rewind()?;
        file.take(HELPER_REPORT_BYTES_MAX).read_to_end(&mut shell)?;
    }
    send_report(&match code {
        Some(code) => report::ended(code, &applied.unsupported.join(", "), &shell),
        None => report::lease_ended(lease::ENDED),
    });
    Ok(())
}

/// Sends a report on the lifeline. Errors are ignored: they mean that the receiver is gone. Rust
/// programs ignore SIGPIPE.
fn send_report(mut report: &[u8]) {
    while !report.is_empty()
        && let Ok(sent) = rustix::io::write(io::stdin(), report)
    {
        report = &report[sent..];
    }
}

fn start(command: &command::Command, input: Option<OwnedFd>) -> io::Result<Pid> {
    let prepared = |mut process: Command| {
        process.current_dir(&command.cwd).envs(command.env_set.iter().map(|(name, value)| (name, value)));
        for name in &command.env_removed {
            process.env_remove(name);
        }
        let name = process.get_program().to_owned();
        spawn(&mut process).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", name.display())))
    };
    match &command.kind {
        CommandKind::Shell(line) => {
            // The command's own PATH applies to the programs in its line, not to its shell.
            let path = Environment::search_path();
            let found = |name| Some((name, find_shell(name, &path)?));
            let (name, file) = found("bash")
                .or_else(|| found("sh"))
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "neither bash nor sh is in a directory of nuncio's PATH"))?;
            let mut process = Command::new(file);
            process.arg0(name).arg("-c").arg(os::REPORTING_SHELL).arg(name).arg(line).stdin(Stdio::null());
            prepared(process)
        }
        CommandKind::Program(arguments) => {
            let (name, rest) = arguments
                .split_first()
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the program name is missing"))?;
            let mut process = Command::new(name);
            process.args(rest).stdin(input.map_or_else(Stdio::null, Stdio::from));
            prepared(process)
        }
    }
}

fn spawn(command: &mut Command) -> io::Result<Pid> {
    command.process_group(0);
    // SAFETY: sigemptyset and sigprocmask are async-signal-safe, and nothing is allocated between
    // fork and exec.
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

/// Waits until `main` exits, the lifeline closes or the lease ends, then terminates all remaining
/// descendants. Returns the exit status of `main`, or `None` if it ran until the lease ended.
fn supervise(main: Pid, signals: &Signals, lease: Option<&DeadlineMemory>) -> Option<i32> {
    let code = Cell::new(None);
    let note = |pid: Pid, status: WaitStatus| {
        if pid == main {
            code.set(status.exit_status().or_else(|| Some(128 + status.terminating_signal()?)));
        }
    };
    let mut deadline: Option<Instant> = None;
    while tree::reap(note) || tree::has_orphans() {
        if code.get().is_some() {
            deadline.get_or_insert_with(|| Instant::now() + LEFTOVER_GRACE);
        }
        let lease_ended = lease.is_some_and(DeadlineMemory::has_passed);
        let grace = deadline.map(|until| until.saturating_duration_since(Instant::now()));
        let remaining = grace.into_iter().chain(lease.map(DeadlineMemory::next_check)).min();
        if lease_ended || grace == Some(Duration::ZERO) || signals.wait(remaining) {
            let stopped = lease_ended && code.get().is_none();
            tree::end_all(|time| signals.wait_child(time), note);
            if stopped {
                return None;
            }
            break;
        }
    }
    Some(code.get().unwrap_or(FAILED))
}
