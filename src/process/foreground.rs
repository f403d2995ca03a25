//! Programs in the foreground of the terminal.

use std::os::unix::process::CommandExt;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::command::{Command, CommandKind};
use super::launcher::ProcessLauncher;
use crate::error::{Error, Result};

impl ProcessLauncher {
    /// Replaces this process by a program (execve(2)), which keeps the terminal, the process id and
    /// thus the exit code. The program receives the environment of commands. Returns only on
    /// failure.
    pub(crate) fn replace_process(&self, command: &Command) -> Error {
        match self.try_replace(command) {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    fn try_replace(&self, command: &Command) -> Result<std::convert::Infallible> {
        let (mut process, doing) = self.foreground(command)?;
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(self.environment().0), maximum: limit.maximum })
            .map_err(|error| Error::io(&doing, error.into()))?;
        Err(Error::io(doing, process.exec()))
    }

    /// Runs a program, such as an editor, with the terminal of this process, and blocks until it
    /// ends. The program has no supervisor: the terminal sends it the user's signals. Returns
    /// whether it succeeded.
    pub(crate) fn run_on_terminal(&self, command: &Command) -> Result<bool> {
        let (mut process, doing) = self.foreground(command)?;
        process.status().map(|status| status.success()).map_err(|error| Error::io(doing, error))
    }

    /// Prepares a program that inherits the standard streams. Also returns the name of the
    /// operation for error messages.
    fn foreground(&self, command: &Command) -> Result<(std::process::Command, String)> {
        let CommandKind::Program(line) = &command.kind else { return Err(Error::internal("a shell has no terminal")) };
        let Some((program, arguments)) = line.split_first() else { return Err(Error::internal("the command is empty")) };
        let mut process = std::process::Command::new(program);
        process.args(arguments).current_dir(&command.cwd);
        let (_, hidden, variable) = self.environment();
        for name in hidden {
            process.env_remove(name);
        }
        process.envs(variable.iter().map(|(name, value)| (name, value)));
        for name in &command.env_removed {
            process.env_remove(name);
        }
        process.envs(command.env_set.iter().map(|(name, value)| (name, value)));
        Ok((process, format!("starting {}", program.to_string_lossy())))
    }
}
