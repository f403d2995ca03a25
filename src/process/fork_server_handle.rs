//! The client side of the fork server: starts the server process on first use, and again if the
//! process has died.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::net::sockopt;
use tokio::sync::Semaphore;

use super::lease::LeaseDeadline;
use super::order::{Order, SWEPT};
use super::os;
use super::sandbox::Sandbox;
use crate::limits;

/// Maximum number of open files per process of a command (soft `RLIMIT_NOFILE`): the usual system
/// default. nuncio's own limit is higher.
const CHILD_OPEN_FILES: u64 = 1024;
/// How long the fork server may take to kill a supervisor's processes, or to exit.
const SWEEP_WAIT: Duration = Duration::from_secs(5);

/// The name and the first command-line argument that make `main` run the fork server.
pub(super) const HELPER_NAME: &str = "nuncio";
pub(super) const HELPER: &str = "helper";

/// The command-line arguments of the fork server after [`HELPER`].
#[derive(Clone, Debug)]
pub(super) struct HelperArguments {
    /// Soft limit on open files for commands.
    pub open_files: u64,
    /// Directories that variables of the environment name as git directories.
    pub git_dirs: Arc<[PathBuf]>,
}

/// A handle to the fork server. Clones share one server process.
#[derive(Clone, Debug)]
pub(super) struct ForkServer {
    exe: PathBuf,
    pub arguments: HelperArguments,
    /// Names of the environment variables that commands do not receive.
    pub hidden: Arc<[String]>,
    /// The environment of the server and of all commands, instead of that of this process.
    pub environment: Option<Arc<[(String, String)]>>,
    /// An environment variable of all commands.
    pub variable: Option<(&'static str, String)>,
    /// The sandbox of all commands that have none. Then no command has a network.
    pub confinement: Option<Arc<Sandbox>>,
    /// The lease under which commands run; `None` for a process that is no node.
    pub lease: Option<Arc<LeaseDeadline>>,
    running: Arc<Mutex<Option<ServerProcess>>>,
    /// True if the system permits mounts. Set when it is first tried.
    mounts: Arc<OnceLock<bool>>,
    /// The number of commands and readers started so far.
    started: Arc<AtomicU64>,
    /// Permits to start readers.
    pub readers: Arc<Semaphore>,
}

impl ForkServer {
    /// Creates a handle to a fork server that runs the binary `exe`.
    pub(crate) fn new(exe: PathBuf) -> ForkServer {
        ForkServer {
            exe,
            arguments: HelperArguments { open_files: CHILD_OPEN_FILES, git_dirs: Arc::default() },
            hidden: Arc::default(),
            environment: None,
            variable: None,
            confinement: None,
            lease: None,
            running: Arc::default(),
            mounts: Arc::default(),
            started: Arc::default(),
            readers: Arc::new(Semaphore::new(limits::READERS_MAX)),
        }
    }

    /// Starts a command or a reader with its descriptors (see [`Order::send`]). `order` receives
    /// its number, which is returned.
    pub(crate) fn start(&self, order: impl FnOnce(u64) -> Order, descriptors: &[BorrowedFd<'_>]) -> io::Result<u64> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        self.order(&order(number), descriptors)?;
        Ok(number)
    }

    /// Sends an order. Starts a new fork server if none is running.
    fn order(&self, order: &Order, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut process = self.running.lock();
        if let Some(running) = &*process {
            match order.send(&running.orders, descriptors) {
                Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {}
                sent => return sent,
            }
        }
        let fresh = process.insert(ServerProcess::start(self)?);
        order.send(&fresh.orders, descriptors)
    }

    /// Reports to the fork server that the lifeline of a command was closed.
    pub(crate) fn cut(&self, number: u64) {
        if let Some(running) = &*self.running.lock() {
            // Errors are ignored: a dead server has no supervisors left, and a server that accepts
            // no orders has no command of this process.
            let _ = Order::Cut(number).send(&running.orders, &[]);
        }
    }

    /// Kills the processes that the supervisor of a command left behind when it closed its lifeline
    /// without a report. Blocks until the processes are dead, usually for a few milliseconds.
    /// Returns false if processes may remain.
    pub(crate) fn sweep(&self, number: u64) -> bool {
        // Send with the lock, because concurrent orders must not mix.
        let orders = match &*self.running.lock() {
            Some(running) => Order::Sweep(number).send(&running.orders, &[]).and_then(|()| running.orders.try_clone()),
            None => return false,
        };
        let mut answer = [0];
        // If the server dies, the socket closes; if the server hangs, the read times out.
        orders.is_ok_and(|orders| rustix::io::read(&orders, &mut answer).is_ok_and(|read| read == 1)) && answer == [SWEPT]
    }

    /// Starts the server, unless it runs. Fails unless the process that was started is one.
    pub(crate) fn check(&self) -> io::Result<()> {
        // Orders are taken in turn, so the answer proves that the server takes them.
        self.order(&Order::Cut(u64::MAX), &[])?;
        if self.sweep(u64::MAX) {
            return Ok(());
        }
        if let Some(mut started) = self.running.lock().take() {
            // It may be any program.
            let _ = started.process.kill();
        }
        Err(io::Error::new(io::ErrorKind::Unsupported, "the process is no helper"))
    }

    /// Returns whether the system permits mounts to supervisors. Blocks when called for the first
    /// time, for about a millisecond.
    pub(crate) fn can_mount(&self) -> bool {
        let attempt = || {
            let (mut answer, theirs) = io::pipe()?;
            self.order(&Order::TryMount, &[theirs.as_fd()])?;
            drop(theirs);
            answer.read(&mut [0])
        };
        *self.mounts.get_or_init(|| attempt().is_ok_and(|read| read == 1))
    }

    /// Ends the fork server and all commands. Blocks until they have ended. A later command starts
    /// a new server.
    pub(crate) fn end(&self) {
        let running = self.running.lock().take();
        drop(running);
    }
}

/// The fork server process. It exits when this value is dropped or the current process exits.
#[derive(Debug)]
struct ServerProcess {
    orders: OwnedFd,
    process: std::process::Child,
}

impl ServerProcess {
    fn start(server: &ForkServer) -> io::Result<ServerProcess> {
        let ForkServer { exe, arguments: HelperArguments { open_files, git_dirs }, hidden, environment, variable, lease, .. } =
            server;
        let (orders, theirs) = os::order_sockets()?;
        sockopt::set_socket_timeout(&orders, sockopt::Timeout::Recv, Some(SWEEP_WAIT))?;
        let mut process = std::process::Command::new(exe);
        if let Some(environment) = environment {
            process.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        }
        for name in hidden.iter() {
            process.env_remove(name);
        }
        process.envs(variable.iter().map(|(name, value)| (name, value)));
        process.arg0(HELPER_NAME).arg(HELPER).arg(open_files.to_string()).args(git_dirs.iter());
        process.stdin(theirs).stdout(Stdio::null()).current_dir("/");
        let started = ServerProcess { orders, process: process.spawn()? };
        if let Some(lease) = lease {
            Order::Lease.send(&started.orders, &[lease.file()])?;
        }
        Ok(started)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Fails only if the server is dead already.
        let _ = rustix::net::shutdown(&self.orders, rustix::net::Shutdown::Both);
        // Before it exits, the server terminates the commands that are still running.
        if !os::exits_within(&mut self.process, SWEEP_WAIT) {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}
