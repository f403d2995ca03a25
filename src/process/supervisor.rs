//! Starts commands: orders them from the fork server, which it keeps alive.

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

use super::fork_server::{Order, SWEPT};
use super::helper::HELPER;
use super::{Child, Command, Input, What};
use crate::error::{Error, Result};
use crate::limits;

/// The one who spawns; clones share the fork server. There is one for a process.
#[derive(Clone, Debug)]
pub struct Supervisor {
    exe: PathBuf,
    open_files: u64,
    /// Names of environment variables that nothing we start gets to see.
    hidden: Arc<[String]>,
    server: Arc<Mutex<Option<ForkServer>>>,
    /// How many commands were started.
    started: Arc<AtomicU64>,
}

impl Supervisor {
    /// `exe` is a nuncio binary; see [`Supervisor::of_this_binary`].
    pub fn new(exe: impl Into<PathBuf>) -> Supervisor {
        Supervisor {
            exe: exe.into(),
            open_files: limits::CHILD_OPEN_FILES,
            hidden: Arc::default(),
            server: Arc::default(),
            started: Arc::default(),
        }
    }

    /// The binary that runs now, also when its file was replaced meanwhile.
    pub fn of_this_binary() -> Supervisor {
        Supervisor::new("/proc/self/exe")
    }

    /// The soft limit of open files (RLIMIT_NOFILE) that commands get: what it was before we raised ours.
    pub fn open_files(mut self, soft: u64) -> Supervisor {
        self.open_files = soft;
        self
    }

    /// Keeps these environment variables from all that is started, and from what starts it.
    pub fn without(mut self, names: Vec<String>) -> Supervisor {
        self.hidden = names.into();
        self
    }

    /// Starts `command`. It runs until it ends, or until the [`Child`] is ended or dropped. Must be called within a tokio runtime.
    pub fn spawn(&self, command: &Command) -> Result<Child> {
        self.start(command, None)
    }

    /// The same for a program, not a shell, that is talked to: its stdin is the [`Input`], its stderr goes nowhere.
    pub fn spawn_piped(&self, command: &Command) -> Result<(Child, Input)> {
        let (reader, writer) = io::pipe().map_err(|error| Error::io("making a pipe", error))?;
        let input = Input::new(writer.into()).map_err(|error| Error::io("making a pipe", error))?;
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
        let output = tokio::net::unix::pipe::Receiver::from_owned_fd(OwnedFd::from(output)).map_err(fail)?;
        let descriptors: Vec<BorrowedFd<'_>> = [theirs.as_fd(), writer.as_fd()].into_iter().chain(input).collect();
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        self.order(&Order::Run(number, Box::new(command.clone())), &descriptors).map_err(fail)?;
        Ok(Child::new(lifeline, output, self.clone(), number))
    }

    /// Sends an order, to a new server if the one before is gone.
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

    /// Tells that the lifeline of a command is let go.
    pub(super) fn cut(&self, number: u64) {
        if let Some(running) = &*self.server() {
            // With one that is gone went its supervisors, and one that takes no orders has no command of ours.
            let _ = Order::Cut(number).send(&running.orders, &[]);
        }
    }

    /// Has everything killed that a supervisor which did not do its work left behind. Blocks for as long as that takes, a few milliseconds.
    /// False: something may be left.
    pub(super) fn sweep(&self) -> bool {
        let orders = match &*self.server() {
            Some(running) => running.orders.try_clone(),
            None => return false,
        };
        let mut answer = [0];
        // One that dies meanwhile answers with the end, one that hangs with a timeout.
        orders.is_ok_and(|orders| {
            Order::Sweep.send(&orders, &[]).is_ok() && rustix::io::read(&orders, &mut answer).is_ok_and(|read| read == 1)
        }) && answer == [SWEPT]
    }

    fn server(&self) -> MutexGuard<'_, Option<ForkServer>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process that forks. It ends when this is dropped, or when we do.
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
        // Its socket is closed by then in one case only: when it is dead already.
        let _ = rustix::net::shutdown(&self.orders, rustix::net::Shutdown::Both);
        // It ends what still runs first.
        if !ends_within(&self.process, limits::SWEEP_WAIT) {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

fn ends_within(process: &std::process::Child, time: Duration) -> bool {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    pidfd_open(Pid::from_child(process), PidfdFlags::empty())
        .is_ok_and(|descriptor| poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&time)).is_ok_and(|ended| ended > 0))
}
