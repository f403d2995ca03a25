//! Finds processes by their working directory.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::os;

/// A process of this user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunningProcess {
    pub pid: u32,
    /// Name of the program.
    pub name: String,
}

/// Returns up to `limit` processes whose working directory is `directory` or below it, ordered by
/// their ids. Omits this process, and processes that it may not inspect.
pub(crate) fn processes_in(directory: &Path, limit: usize) -> Vec<RunningProcess> {
    let mut pids = os::pids();
    pids.sort_unstable();
    pids.retain(|pid| *pid != std::process::id());
    let inside = |pid: &u32| os::directory(*pid).is_some_and(|cwd| cwd.starts_with(directory));
    let name = |pid: u32| String::from_utf8_lossy(&os::name(pid)).into_owned();
    pids.into_iter().filter(inside).take(limit).map(|pid| RunningProcess { pid, name: name(pid) }).collect()
}
