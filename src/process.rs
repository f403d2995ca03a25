//! Child processes. Each command runs under a supervisor, our own binary re-executed, that leaves nothing behind when the
//! command ends, is cancelled, or when we die by any means. Nothing else in the house spawns.

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

pub use child::{Child, Ending, ExitStatus, Input, Output};
pub use exported::Change;
pub use helper::{HELPER, helper_main};
pub use sandbox::Sandbox;
pub use supervisor::Supervisor;

/// What to run, where, and with which environment. Its stdin is null, unless it is talked to ([`Supervisor::spawn_piped`]).
#[derive(Clone, Debug)]
pub struct Command {
    pub what: What,
    /// An existing directory.
    pub cwd: PathBuf,
    /// Set on top of our own environment.
    pub env_set: Vec<(OsString, OsString)>,
    /// Removed from our own environment.
    pub env_removed: Vec<OsString>,
    pub sandbox: Option<Sandbox>,
}

#[derive(Clone, Debug)]
pub enum What {
    /// A line for `bash`, or for `sh` where there is no bash. What it leaves to the next one is in [`ExitStatus`].
    Shell(String),
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

    /// Confines it, and all that it starts; None: not at all.
    pub fn sandbox(mut self, sandbox: Option<Sandbox>) -> Command {
        self.env_set.extend(sandbox.iter().map(|sandbox| ("TMPDIR".into(), sandbox.temp.clone().into())));
        self.sandbox = sandbox;
        self
    }
}

/// Memory of this process that is in RAM (proc(5), /proc/self/statm).
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Raises our soft limit of open files to the hard one (RLIMIT_NOFILE, getrlimit(2)). Returns what it was.
pub fn raise_open_files() -> io::Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(limit.current.unwrap_or(u64::MAX))
}

/// Keeps other processes of the same user from our memory, environment and files (PR_SET_DUMPABLE, prctl(2)): they hold keys and
/// tokens. For the beginning of the process; what it starts is not affected.
pub fn hide_memory() {
    // It fails nowhere on Linux; without it nuncio works as well.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
