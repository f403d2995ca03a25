//! Starts commands by sending orders to the fork server, which is restarted when it dies.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::net::unix::pipe;

use super::fork_server::{Order, SWEPT};
use super::helper::HELPER;
use super::{Child, Command, What};
use crate::error::{Error, Result};
use crate::limits;

/// Launches commands. Clones share one fork server; a process needs one `Supervisor`.
#[derive(Clone, Debug)]
pub struct Supervisor {
    exe: PathBuf,
    open_files: u64,
    /// Environment variables that started programs do not receive.
    hidden: Arc<[String]>,
    server: Arc<Mutex<Option<ForkServer>>>,
    /// The number of commands started so far.
    started: Arc<AtomicU64>,
}

impl Supervisor {
    /// Uses the nuncio binary `exe`; see [`Supervisor::of_this_binary`].
    pub fn new(exe: impl Into<PathBuf>) -> Supervisor {
        Supervisor {
            exe: exe.into(),
            open_files: limits::CHILD_OPEN_FILES,
            hidden: Arc::default(),
            server: Arc::default(),
            started: Arc::default(),
        }
    }

    /// Uses the running binary, even if its file has been replaced.
    pub fn of_this_binary() -> Supervisor {
        Supervisor::new("/proc/self/exe")
    }

    /// Sets the soft limit of open files (RLIMIT_NOFILE) for commands: the limit before nuncio
    /// raised its own.
    pub fn open_files(mut self, soft: u64) -> Supervisor {
        self.open_files = soft;
        self
    }

    /// Removes these environment variables from the fork server and all commands.
    pub fn without(mut self, names: Vec<String>) -> Supervisor {
        self.hidden = names.into();
        self
    }

    /// Starts `command`. It runs until it ends or until the [`Child`] is ended or dropped. Must be
    /// called within a tokio runtime.
    pub fn spawn(&self, command: &Command) -> Result<Child> {
        self.start(command, None)
    }

    /// Starts a program, not a shell, with a piped stdin, which is returned too; dropping
    /// it closes the pipe. The program's stderr is discarded.
    pub fn spawn_piped(&self, command: &Command) -> Result<(Child, pipe::Sender)> {
        let (reader, writer) = io::pipe().map_err(|error| Error::io("creating a pipe", error))?;
        let input = pipe::Sender::from_owned_fd(writer.into()).map_err(|error| Error::io("creating a pipe", error))?;
        Ok((self.start(command, Some(reader.as_fd()))?, input))
    }

    fn start(&self, command: &Command, input: Option<BorrowedFd<'_>>) -> Result<Child> {
        let fail = |error: io::Error| match &command.what {
            What::Shell(_) => Error::io("starting a shell", error),
            What::Program(arguments) => {
                let name = arguments.first().map_or("nothing".into(), |name| name.to_string_lossy());
                Error::io(format_args!("starting {name}"), error)
            }
        };
        if !command.cwd.is_dir() {
            let missing = io::Error::new(io::ErrorKind::NotFound, format!("{} is not a directory", command.cwd.display()));
            return Err(fail(missing));
        }
        let (lifeline, theirs) = UnixStream::pair().map_err(fail)?;
        lifeline.set_nonblocking(true).map_err(fail)?;
        let lifeline = tokio::net::UnixStream::from_std(lifeline).map_err(fail)?;
        let (output, writer) = io::pipe().map_err(fail)?;
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(output)).map_err(fail)?;
        let descriptors: Vec<BorrowedFd<'_>> = [theirs.as_fd(), writer.as_fd()].into_iter().chain(input).collect();
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        self.order(&Order::Run(number, Box::new(command.clone())), &descriptors).map_err(fail)?;
        Ok(Child::new(lifeline, output, self.clone(), number))
    }

    /// Sends an order. Starts a new fork server if none is running.
    fn order(&self, order: &Order, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut server = self.server();
        if let Some(running) = &*server {
            match order.send(&running.orders, descriptors) {
                Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {}
                sent => return sent,
            }
        }
        let fresh = server.insert(ForkServer::start(&self.exe, self.open_files, &self.hidden)?);
        order.send(&fresh.orders, descriptors)
    }

    /// Reports to the fork server that the lifeline of a command was closed.
    pub(super) fn cut(&self, number: u64) {
        if let Some(running) = &*self.server() {
            // Errors are ignored: a dead server has no supervisors left, and a server that takes no
            // orders has no command of this process.
            let _ = Order::Cut(number).send(&running.orders, &[]);
        }
    }

    /// Kills the processes left behind by the supervisor of a command, which closed its lifeline
    /// without a report. Blocks until that is done, a few milliseconds. Returns false if processes
    /// may remain.
    pub(super) fn sweep(&self, number: u64) -> bool {
        let orders = match &*self.server() {
            Some(running) => running.orders.try_clone(),
            None => return false,
        };
        let mut answer = [0];
        // A server that dies closes the socket; for one that hangs, the read times out.
        orders.is_ok_and(|orders| {
            Order::Sweep(number).send(&orders, &[]).is_ok() && rustix::io::read(&orders, &mut answer).is_ok_and(|read| read == 1)
        }) && answer == [SWEPT]
    }

    fn server(&self) -> MutexGuard<'_, Option<ForkServer>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fork server process. It ends when this value is dropped or this process ends.
#[derive(Debug)]
struct ForkServer {
    orders: OwnedFd,
    process: std::process::Child,
}

impl ForkServer {
    fn start(exe: &Path, open_files: u64, hidden: &[String]) -> io::Result<ForkServer> {
        let (orders, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_timeout(&orders, sockopt::Timeout::Recv, Some(limits::SWEEP_WAIT))?;
        let mut process = std::process::Command::new(exe);
        for name in hidden {
            process.env_remove(name);
        }
        process.arg0("nuncio").arg(HELPER).arg(open_files.to_string());
        process.stdin(theirs).stdout(Stdio::null()).current_dir("/");
        Ok(ForkServer { orders, process: process.spawn()? })
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        // Fails only if the server is dead already.
        let _ = rustix::net::shutdown(&self.orders, rustix::net::Shutdown::Both);
        // The server first ends the commands that still run.
        if !exits_within(&self.process, limits::SWEEP_WAIT) {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

fn exits_within(process: &std::process::Child, time: Duration) -> bool {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    pidfd_open(Pid::from_child(process), PidfdFlags::empty())
        .is_ok_and(|descriptor| poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&time)).is_ok_and(|ended| ended > 0))
}
