//! Child processes. Each command runs under a supervisor, which is this binary re-executed. The
//! supervisor terminates all remaining descendants when the command exits, when the command is
//! cancelled, and when nuncio dies for any reason. No other module starts processes.

mod child;
mod command;
mod exported;
mod find;
mod foreground;
mod fork_server;
mod fork_server_handle;
mod git;
mod git_control;
mod in_directory;
mod launcher;
mod masked;
mod oom;
mod order;
mod private;
mod report;
mod sandbox;
mod signals;
mod snapshot;
mod supervisor;
mod syscalls;
mod tree;

use std::io;

pub use child::{Child, Output};
pub(crate) use child::{ChildExit, ProcessTree};
pub(crate) use command::CommandKind;
pub use command::{Command, ProgramConfinement};
pub(crate) use exported::ExportedChange;
pub(crate) use find::find_program;
pub use fork_server::helper_main;
pub use fork_server_handle::HELPER;
pub(crate) use git::{GIT_ATTEMPTS_MAX, NO_GIT_HOOKS, SAFE_GIT_SETTINGS, met_removed_placeholder};
pub(crate) use in_directory::{RunningProcess, processes_in};
pub use launcher::ProcessLauncher;
pub use report::ExitStatus;
pub use sandbox::Sandbox;
pub(crate) use tree::StartTime;

/// Returns the resident memory of this process (proc(5), /proc/self/statm).
pub(crate) fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Raises the soft limit on open files to the hard limit (RLIMIT_NOFILE, getrlimit(2)). Returns the
/// previous soft limit.
pub(crate) fn raise_open_files() -> io::Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(limit.current.unwrap_or(u64::MAX))
}

/// Prevents other processes of the same user from reading this process's memory, environment and
/// open files (PR_SET_DUMPABLE, prctl(2)), which hold keys and tokens. Call this before reading any
/// secret. Child programs are not affected.
pub fn hide_memory() {
    // Ignore the error: the call does not fail on Linux, and nuncio works without this protection.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
