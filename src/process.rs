//! Child processes. Each command runs under a supervisor, which is this binary re-executed. The
//! supervisor ends all descendants when the command ends, when it is cancelled, and when nuncio
//! dies for any reason. No other module starts processes.

mod child;
mod exported;
mod fork_server;
mod helper;
mod masked;
mod oom;
mod private;
mod report;
mod sandbox;
mod supervisor;
mod syscalls;
mod tree;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

pub use child::{Child, Ending, ExitStatus, Output};
pub use exported::Change;
pub use helper::{HELPER, helper_main};
pub use sandbox::Sandbox;
pub use supervisor::Supervisor;

/// A command with its directory and environment. Its stdin is null, unless it is started with
/// [`Supervisor::spawn_piped`].
#[derive(Clone, Debug)]
pub struct Command {
    pub what: What,
    /// An existing directory.
    pub cwd: PathBuf,
    /// Variables added to nuncio's environment.
    pub env_set: Vec<(OsString, OsString)>,
    /// Variables removed from nuncio's environment.
    pub env_removed: Vec<OsString>,
    pub sandbox: Option<Sandbox>,
}

/// The kind of a command.
#[derive(Clone, Debug)]
pub enum What {
    /// A command line for `bash`, or for `sh` if there is no bash. [`ExitStatus`] reports the
    /// directory and the variables that it leaves behind.
    Shell(String),
    /// A program with its arguments.
    Program(Vec<OsString>),
}

impl Command {
    pub fn shell(line: impl Into<String>, cwd: impl Into<PathBuf>) -> Command {
        Command::new(What::Shell(line.into()), cwd.into())
    }

    pub fn program(arguments: impl IntoIterator<Item = impl Into<OsString>>, cwd: impl Into<PathBuf>) -> Command {
        Command::new(What::Program(arguments.into_iter().map(Into::into).collect()), cwd.into())
    }

    fn new(what: What, cwd: PathBuf) -> Command {
        Command { what, cwd, env_set: Vec::new(), env_removed: Vec::new(), sandbox: None }
    }

    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Command {
        self.env_set.push((name.into(), value.into()));
        self
    }

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
}

/// Returns the resident memory of this process (proc(5), /proc/self/statm).
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Raises the soft limit of open files to the hard limit (RLIMIT_NOFILE, getrlimit(2)). Returns the
/// former soft limit.
pub fn raise_open_files() -> io::Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(limit.current.unwrap_or(u64::MAX))
}

/// Prevents other processes of the same user from reading the memory, environment and files of this
/// process (PR_SET_DUMPABLE, prctl(2)), which hold keys and tokens. To be called first; started
/// programs are not affected.
pub fn hide_memory() {
    // Does not fail on Linux, and nuncio works without it.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
