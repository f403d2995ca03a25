//! A command to start: what it runs, its directory, its environment and its sandbox.

use std::ffi::OsString;
use std::path::PathBuf;

use super::sandbox::Sandbox;
use crate::config::ProjectProgram;
use crate::error::{Error, Kind, Result};

/// A command with its directory and environment. Its stdin is null, unless it is started with
/// [`super::ProcessLauncher::spawn_piped`].
#[derive(Clone, Debug)]
pub struct Command {
    /// A shell with a command line, or a program.
    pub kind: CommandKind,
    /// An existing directory.
    pub cwd: PathBuf,
    /// Variables added to nuncio's environment.
    pub env_set: Vec<(OsString, OsString)>,
    /// Variables removed from nuncio's environment.
    pub env_removed: Vec<OsString>,
    /// The sandbox of the command and its descendants; `None` runs them without a sandbox.
    pub sandbox: Option<Sandbox>,
    /// Set if the command starts only while the project is trusted, and only with its sandbox.
    pub project: Option<ProjectProgram>,
}

/// The confinement of a program that runs in a project without a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProgramConfinement {
    pub sandbox: Sandbox,
    pub program: ProjectProgram,
}

/// The kind of a command.
#[derive(Clone, Debug)]
pub enum CommandKind {
    /// A command line for `bash`, or for `sh` if there is no bash. [`super::ExitStatus`] reports
    /// the shell's final directory and the exported variables that changed.
    Shell(String),
    /// A program with its arguments.
    Program(Vec<OsString>),
}

impl Command {
    /// Creates a command that runs a command line in a shell.
    pub fn shell(line: impl Into<String>, cwd: impl Into<PathBuf>) -> Command {
        Command::new(CommandKind::Shell(line.into()), cwd.into())
    }

    /// Creates a command that runs a program, found through PATH, with its arguments.
    pub fn program(arguments: impl IntoIterator<Item = impl Into<OsString>>, cwd: impl Into<PathBuf>) -> Command {
        Command::new(CommandKind::Program(arguments.into_iter().map(Into::into).collect()), cwd.into())
    }

    fn new(kind: CommandKind, cwd: PathBuf) -> Command {
        Command { kind, cwd, env_set: Vec::new(), env_removed: Vec::new(), sandbox: None, project: None }
    }

    /// Adds arguments to a program. Ignored for a shell.
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
        if let CommandKind::Program(line) = &mut self.kind {
            line.extend(arguments.into_iter().map(Into::into));
        }
        self
    }

    /// Adds a variable to the command's environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Command {
        let name = name.into();
        self.env_removed.retain(|removed| *removed != name);
        self.env_set.push((name, value.into()));
        self
    }

    /// Sets or removes variables.
    pub fn variables<'a>(self, variables: impl IntoIterator<Item = &'a (&'static str, Option<OsString>)>) -> Command {
        variables.into_iter().fold(self, |command, (name, value)| match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        })
    }

    /// Removes a variable from the command's environment.
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Command {
        self.env_removed.push(name.into());
        self
    }

    /// Sandboxes the command and its descendants; `None` runs it without a sandbox.
    pub fn sandbox(mut self, sandbox: Option<Sandbox>) -> Command {
        self.env_set.extend(sandbox.iter().map(|sandbox| ("TMPDIR".into(), sandbox.temp.clone().into())));
        self.sandbox = sandbox;
        self
    }

    /// Confines a program of a project.
    pub fn confined(self, confined: &ProgramConfinement) -> Command {
        Command { project: Some(confined.program.clone()), ..self.sandbox(Some(confined.sandbox.clone())) }
    }

    /// Fails if the command may not start now.
    pub(super) fn check(&self) -> Result<()> {
        let Some(program) = &self.project else { return Ok(()) };
        if self.sandbox.is_some() && !Sandbox::is_available() {
            let message = "not started: this system cannot confine it, because its kernel has no Landlock, or it is turned off";
            return Err(Error::new(Kind::Unsupported, message));
        }
        program.check_trust()
    }
}
