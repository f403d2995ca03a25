//! Replaces this process by a program in the foreground of the terminal.

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
        let CommandKind::Program(line) = &command.kind else { return Err(Error::internal("a shell cannot replace nuncio")) };
        let Some((program, arguments)) = line.split_first() else { return Err(Error::internal("the command is empty")) };
        let doing = format!("starting {}", program.to_string_lossy());
        let mut process = std::process::Command::new(program);
        process.args(arguments).current_dir(&command.cwd);
        let (soft, hidden, variable) = self.environment();
        for name in hidden {
            process.env_remove(name);
        }
        process.envs(variable.iter().map(|(name, value)| (name, value)));
        for name in &command.env_removed {
            process.env_remove(name);
        }
        process.envs(command.env_set.iter().map(|(name, value)| (name, value)));
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum: limit.maximum })
            .map_err(|error| Error::io(&doing, error.into()))?;
        Err(Error::io(doing, process.exec()))
    }
}
