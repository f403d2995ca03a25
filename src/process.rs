//! Child processes. Each command runs under a supervisor, which is this binary re-executed. The
//! supervisor terminates all remaining descendants when the command exits, when the command is
//! cancelled, and when nuncio dies for any reason. No other module starts processes.

mod child;
mod command;
mod detached;
mod document;
mod exported;
mod find;
mod foreground;
mod fork;
mod fork_server;
mod fork_server_handle;
mod git;
mod in_directory;
mod launcher;
mod lease;
mod oom;
mod order;
mod os;
mod reader;
mod readers;
mod report;
mod resource_limits;
mod sandbox;
mod signals;
mod supervisor;
mod temp;
mod tree;

use std::io;

pub use child::{Child, Output};
pub(crate) use child::{ChildExit, ProcessTree};
pub(crate) use command::CommandKind;
pub use command::{Command, ProgramConfinement};
pub(crate) use detached::{DetachedStart, detach_output, leave_streams, leave_terminal, start_detached, start_program};
pub(crate) use exported::ExportedChange;
pub(crate) use find::find_program;
pub(crate) use fork_server::GIT_DIR_VARIABLES;
use fork_server::helper_main;
use fork_server_handle::{HELPER, HELPER_NAME};
pub(crate) use git::{
    GIT_ATTEMPTS_MAX, GIT_SETTINGS_VARIABLE, NO_EMBEDDED_REPOSITORIES, NO_GIT_HOOKS, PLAIN_GIT_NAMES, SAFE_GIT_SETTINGS,
    met_removed_placeholder,
};
pub(crate) use in_directory::{RunningProcess, processes_in};
pub use launcher::ProcessLauncher;
pub use lease::LeaseDeadline;
pub(crate) use os::{PLATFORM, StartTime, resident_bytes};
pub use report::ExitStatus;
pub use sandbox::Sandbox;

/// Raises the soft limit on open files to the hard limit (RLIMIT_NOFILE, getrlimit(2)). Returns the
/// previous soft limit.
pub(crate) fn raise_open_files() -> io::Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(limit.current.unwrap_or(u64::MAX))
}

/// Prevents other processes of the same user from reading this process's memory, environment and
/// open files, which hold keys and tokens, if the system supports it. Call this before reading any
/// secret. Child programs are not affected.
pub fn hide_memory() {
    os::hide_memory();
}

/// Runs the helper process of an agent, if this process was started as one; otherwise returns.
/// Must be called at the start of `main`, before any thread is started.
pub fn init() {
    if is_helper() {
        helper_main(std::env::args_os().skip(2));
    }
}

/// Returns whether this process was started as the helper process of an agent.
pub(crate) fn is_helper() -> bool {
    let mut arguments = std::env::args_os();
    arguments.next().is_some_and(|name| name == HELPER_NAME) && arguments.next().is_some_and(|first| first == HELPER)
}

/// Returns whether a process exists.
pub(crate) fn is_running(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}
