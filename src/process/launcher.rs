//! Starts commands by sending orders to the fork server.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::Semaphore;

use super::child::{Child, Output};
use super::command::{Command, CommandKind};
use super::fork_server_handle::ForkServer;
use super::lease::LeaseDeadline;
use super::order::Order;
use super::os;
use super::sandbox::Sandbox;
use super::temp::ProcessTemp;
use crate::documents::DocumentKind;
use crate::error::{Error, Kind, Result};
use crate::limits;

/// Timeout of an `api_key_command`.
const KEY_COMMAND: Duration = Duration::from_secs(10);

/// Starts commands. Create one `ProcessLauncher` per process: its clones share one fork server.
#[derive(Clone, Debug)]
pub struct ProcessLauncher {
    server: ForkServer,
}

impl ProcessLauncher {
    /// Uses the nuncio binary `exe`; see [`ProcessLauncher::of_this_binary`].
    pub fn new(exe: impl Into<PathBuf>) -> ProcessLauncher {
        ProcessLauncher { server: ForkServer::new(exe.into()) }
    }

    /// Uses the running binary, even if its file has been replaced.
    pub(crate) fn of_this_binary() -> ProcessLauncher {
        ProcessLauncher::new(os::own_program())
    }

    /// Sets the soft limit on open files (RLIMIT_NOFILE) for commands. The caller passes the limit
    /// from before nuncio raised its own.
    pub(crate) fn open_files(mut self, soft: u64) -> ProcessLauncher {
        self.server.arguments.open_files = soft;
        self
    }

    /// Replaces the environment of the fork server and all commands, which is that of this process.
    pub(crate) fn with_environment(mut self, variables: Vec<(String, String)>) -> ProcessLauncher {
        self.server.environment = Some(variables.into());
        self
    }

    /// Runs the commands that have no sandbox in this one, and all commands without a network.
    pub(crate) fn with_confinement(mut self, sandbox: Sandbox) -> ProcessLauncher {
        self.server.confinement = Some(sandbox.into());
        self
    }

    /// Runs all commands under the lease of this node. They end when its deadline passes, and none
    /// starts after it.
    pub fn with_lease(mut self, lease: Arc<LeaseDeadline>) -> ProcessLauncher {
        self.server.lease = Some(lease);
        self
    }

    /// Returns the deadline of the lease, if commands run under one.
    pub(crate) fn lease(&self) -> Option<&Arc<LeaseDeadline>> {
        self.server.lease.as_ref()
    }

    /// Starts the fork server. Fails if this program does not serve as one, see [`super::init`].
    /// Blocks, usually for a few milliseconds.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.server.check()
    }

    /// Sets an environment variable of the fork server and all commands.
    pub(crate) fn with_variable(mut self, name: &'static str, value: String) -> ProcessLauncher {
        self.server.variable = Some((name, value));
        self
    }

    /// Sets the directories that variables of the environment name as git directories.
    pub(crate) fn with_git_dirs(mut self, directories: Vec<PathBuf>) -> ProcessLauncher {
        self.server.arguments.git_dirs = directories.into();
        self
    }

    /// Removes these environment variables from the fork server and all commands.
    pub(crate) fn without(mut self, names: Vec<String>) -> ProcessLauncher {
        self.server.hidden = names.into();
        self
    }

    /// Returns the environment of commands: the soft limit on open files, the names of the removed
    /// variables, and an added variable.
    pub(super) fn environment(&self) -> (u64, &[String], Option<&(&'static str, String)>) {
        let ForkServer { arguments, hidden, variable, .. } = &self.server;
        (arguments.open_files, hidden, variable.as_ref())
    }

    /// Starts `command`, which runs until it exits or until the [`Child`] is ended or dropped. Must
    /// be called within a tokio runtime.
    pub fn spawn(&self, command: &Command) -> Result<Child> {
        self.start(command, &[])
    }

    /// Starts a program, not a shell, with a piped stdin. Also returns the write end of the pipe;
    /// dropping it closes the program's stdin. The program's stderr is discarded.
    pub fn spawn_piped(&self, command: &Command) -> Result<(Child, pipe::Sender)> {
        let (reader, writer) = io::pipe().map_err(|error| Error::io("creating a pipe", error))?;
        let input = pipe::Sender::from_owned_fd(writer.into()).map_err(|error| Error::io("creating a pipe", error))?;
        Ok((self.start(command, &[reader.as_fd()])?, input))
    }

    /// Starts a program like [`ProcessLauncher::spawn_piped`], but also returns the program's
    /// stderr.
    pub fn spawn_captured(&self, command: &Command) -> Result<(Child, pipe::Sender, Output)> {
        let fail = |error| Error::io("creating a pipe", error);
        let (reader, writer) = io::pipe().map_err(fail)?;
        let input = pipe::Sender::from_owned_fd(writer.into()).map_err(fail)?;
        let (errors, error_writer) = io::pipe().map_err(fail)?;
        let errors = Output::new(pipe::Receiver::from_owned_fd(errors.into()).map_err(fail)?);
        Ok((self.start(command, &[reader.as_fd(), error_writer.as_fd()])?, input, errors))
    }

    /// Runs a program, whose stderr is discarded, and returns what it printed, without white space
    /// at both ends. The error is a message: a failure, a timeout ([`KEY_COMMAND`]), or
    /// empty output.
    pub(crate) async fn printed(&self, command: &Command) -> std::result::Result<String, String> {
        let run = async {
            let (mut child, stdin) = self.spawn_piped(command)?;
            drop(stdin);
            let mut output = Vec::new();
            while output.len() < limits::KEY_BYTES_MAX && child.output.read(&mut output).await.unwrap_or(0) > 0 {}
            let status = child.wait().await?;
            Ok::<_, Error>((status.code, output))
        };
        let ran = tokio::time::timeout(KEY_COMMAND, run).await;
        let (code, output) = ran.map_err(|_| "timed out".to_owned())?.map_err(|error| error.message)?;
        let printed = String::from_utf8_lossy(&output).trim().to_string();
        match (code, printed.is_empty()) {
            (0, false) => Ok(printed),
            (0, true) => Err("printed nothing".into()),
            (code, _) => Err(format!("exited with status {code}")),
        }
    }

    /// Returns whether sandboxes can protect files inside writable directories by mounts.
    pub(crate) fn can_mount(&self) -> bool {
        self.server.can_mount()
    }

    /// Ends all commands, and waits until they have ended.
    pub(crate) async fn shut_down(&self) {
        let server = self.server.clone();
        // Fails only if the runtime is shutting down, which also ends the commands.
        let _ = tokio::task::spawn_blocking(move || server.end()).await;
    }

    fn start(&self, command: &Command, pipes: &[BorrowedFd<'_>]) -> Result<Child> {
        let fail = |error: io::Error| match &command.kind {
            CommandKind::Shell(_) if error.kind() == io::ErrorKind::ArgumentListTooLong => {
                let message = format!("the command and its variables are larger than {} KiB", limits::ORDER_BYTES_MAX >> 10);
                Error::new(Kind::TooLarge, message)
                    .hint("write a script, or a file with the long value, with the tool write, and use it in the command")
            }
            CommandKind::Shell(_) => Error::io("starting a shell", error),
            CommandKind::Program(arguments) => {
                let name = arguments.first().map_or("nothing".into(), |name| name.to_string_lossy());
                Error::io(format_args!("starting {name}"), error)
            }
        };
        let confined = self.server.confinement.as_ref().map(|sandbox| confined(command, sandbox));
        let command = confined.as_ref().unwrap_or(command);
        command.check()?;
        if let Some(lease) = &self.server.lease {
            lease.check()?;
        }
        if !command.cwd.is_dir() {
            let missing = io::Error::new(io::ErrorKind::NotFound, format!("{} is not a directory", command.cwd.display()));
            return Err(fail(missing));
        }
        let parent = command.sandbox.as_ref().filter(|sandbox| sandbox.new_temp);
        let temp = parent.map(|sandbox| ProcessTemp::new(&sandbox.temp)).transpose()?;
        let with_temp = |(sandbox, temp): (&Sandbox, &ProcessTemp)| {
            let sandbox = Sandbox { temp: temp.path.clone(), new_temp: false, ..sandbox.clone() };
            command.clone().sandbox(Some(sandbox))
        };
        let own = parent.zip(temp.as_ref()).map(with_temp).unwrap_or_else(|| command.clone());
        self.send(|number| Order::Run(number, Box::new(own)), pipes, temp).map_err(fail)
    }

    /// Starts a reader of one document. Also returns the write end of the pipe for the document.
    pub(super) fn spawn_reader(&self, kind: DocumentKind) -> io::Result<(Child, pipe::Sender)> {
        let (reader, writer) = io::pipe()?;
        let input = pipe::Sender::from_owned_fd(writer.into())?;
        Ok((self.send(|number| Order::Read(number, kind), &[reader.as_fd()], None)?, input))
    }

    /// Returns the permits of concurrent readers.
    pub(super) fn readers(&self) -> &Semaphore {
        &self.server.readers
    }

    /// Sends the order for a child process with these pipes, and with a temporary directory that is
    /// removed after it.
    fn send(&self, order: impl FnOnce(u64) -> Order, pipes: &[BorrowedFd<'_>], temp: Option<ProcessTemp>) -> io::Result<Child> {
        let (lifeline, theirs) = UnixStream::pair()?;
        lifeline.set_nonblocking(true)?;
        let lifeline = tokio::net::UnixStream::from_std(lifeline)?;
        let (output, writer) = io::pipe()?;
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(output))?;
        let descriptors: Vec<BorrowedFd<'_>> = [theirs.as_fd(), writer.as_fd()].into_iter().chain(pipes.iter().copied()).collect();
        let number = self.server.start(order, &descriptors)?;
        Ok(Child::new(lifeline, output, self.server.clone(), number, temp))
    }
}

/// Returns the command in its own sandbox or in this one, without a network.
fn confined(command: &Command, default: &Sandbox) -> Command {
    match &command.sandbox {
        Some(sandbox) => {
            let private = sandbox.private.iter().chain(&default.private).cloned().collect();
            let readable = sandbox.readable.iter().chain(&default.readable).cloned().collect();
            Command { sandbox: Some(Sandbox { network: false, private, readable, ..sandbox.clone() }), ..command.clone() }
        }
        None => command.clone().sandbox(Some(default.clone())),
    }
}
