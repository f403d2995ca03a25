//! Starts commands by sending orders to the fork server.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use tokio::net::unix::pipe;

use super::child::Child;
use super::command::{Command, CommandKind};
use super::fork_server_handle::ForkServer;
use crate::error::{Error, Result};

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
        ProcessLauncher::new("/proc/self/exe")
    }

    /// Sets the soft limit on open files (RLIMIT_NOFILE) for commands. The caller passes the limit
    /// from before nuncio raised its own.
    pub(crate) fn open_files(mut self, soft: u64) -> ProcessLauncher {
        self.server.open_files = soft;
        self
    }

    /// Removes these environment variables from the fork server and all commands.
    pub(crate) fn without(mut self, names: Vec<String>) -> ProcessLauncher {
        self.server.hidden = names.into();
        self
    }

    /// Starts `command`, which runs until it exits or until the [`Child`] is ended or dropped. Must
    /// be called within a tokio runtime.
    pub fn spawn(&self, command: &Command) -> Result<Child> {
        self.start(command, None)
    }

    /// Starts a program, not a shell, with a piped stdin. Also returns the write end of the pipe;
    /// dropping it closes the program's stdin. The program's stderr is discarded.
    pub fn spawn_piped(&self, command: &Command) -> Result<(Child, pipe::Sender)> {
        let (reader, writer) = io::pipe().map_err(|error| Error::io("creating a pipe", error))?;
        let input = pipe::Sender::from_owned_fd(writer.into()).map_err(|error| Error::io("creating a pipe", error))?;
        Ok((self.start(command, Some(reader.as_fd()))?, input))
    }

    fn start(&self, command: &Command, input: Option<BorrowedFd<'_>>) -> Result<Child> {
        let fail = |error: io::Error| match &command.kind {
            CommandKind::Shell(_) => Error::io("starting a shell", error),
            CommandKind::Program(arguments) => {
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
        let number = self.server.run(command, &descriptors).map_err(fail)?;
        Ok(Child::new(lifeline, output, self.server.clone(), number))
    }
}
