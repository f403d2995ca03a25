//! Finds processes by their working directory.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids.retain(|pid| *pid != std::process::id());
    let inside = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(directory));
    let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned();
    pids.into_iter().filter(inside).take(limit).map(|pid| RunningProcess { pid, name: name(pid) }).collect()
}
