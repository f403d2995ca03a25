//! State that a session's commands share: working directory, exported variables, a directory for
//! temporary files, and background jobs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::jobs::Jobs;
use crate::limits;
use crate::process::ExportedChange;
use crate::workspace::{Workspace, create_private_dir};

/// The shell state of a session. A command starts with the state left by the last command that
/// exited by itself.
#[derive(Debug)]
pub struct Shell {
    next: Mutex<CommandStart>,
    /// The background jobs.
    pub jobs: Arc<Jobs>,
    /// Directory for temporary files. Its name contains the process ID of nuncio, which shows
    /// whether a directory was left behind by a killed process.
    temp: PathBuf,
}

/// Working directory and variables with which a command starts.
#[derive(Clone, Debug)]
pub struct CommandStart {
    pub cwd: PathBuf,
    /// Environment variables to set. Variables without a value are unset.
    pub exported: BTreeMap<OsString, Option<OsString>>,
}

/// Variables that every shell sets when it starts, so they are not carried over.
const SET_BY_SHELL: [&str; 5] = ["PWD", "OLDPWD", "SHLVL", "_", "TMPDIR"];

/// Environment variables that keep programs from waiting for a user at a terminal.
pub(crate) const NON_INTERACTIVE: [(&str, &str); 4] =
    [("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("TERM", "dumb")];

const TEMP: &str = "temp-";

impl Shell {
    /// Creates the state of a new session.
    pub fn new(workspace: &Workspace) -> Shell {
        let next = CommandStart { cwd: workspace.cwd.clone(), exported: BTreeMap::new() };
        let temp = workspace.artifacts.join(format!("{TEMP}{}", std::process::id()));
        Shell { next: Mutex::new(next), jobs: Arc::default(), temp }
    }

    /// Returns the state with which a command would start now. If the working directory no longer
    /// exists, that of the workspace is used.
    pub fn start(&self, workspace: &Workspace) -> CommandStart {
        let next = self.next.lock().clone();
        if next.cwd.is_dir() { next } else { CommandStart { cwd: workspace.cwd.clone(), ..next } }
    }

    /// Sets the working directory of the next command.
    pub(crate) fn set_cwd(&self, cwd: PathBuf) {
        self.next.lock().cwd = cwd;
    }

    /// Keeps the variables that a command exported, except those that are reserved. Returns false
    /// and keeps none of them if all kept variables together are too large.
    pub(crate) fn export(&self, changes: Vec<ExportedChange>, is_reserved: impl Fn(&str) -> bool) -> bool {
        let mut next = self.next.lock();
        let mut exported = next.exported.clone();
        let kept = |name: &OsString| name.to_str().is_none_or(|name| !SET_BY_SHELL.contains(&name) && !is_reserved(name));
        exported.extend(changes.into_iter().filter(|(name, _)| kept(name)));
        let size = |(name, value): (&OsString, &Option<OsString>)| name.len() + value.as_ref().map_or(0, |value| value.len());
        let fits = exported.iter().map(size).sum::<usize>() <= limits::SHELL_EXPORTED_BYTES_MAX;
        if fits {
            next.exported = exported;
        }
        fits
    }

    /// Returns the directory for temporary files of sandboxed commands, and creates it if it is
    /// missing. The directory is removed when the `Shell` is dropped.
    pub fn temp(&self) -> &Path {
        if !self.temp.is_dir() {
            self.temp.parent().into_iter().for_each(remove_orphans);
            if let Err(error) = create_private_dir(&self.temp) {
                // The failure is only logged, because commands that do not use the directory still
                // work.
                tracing::warn!(%error, "creating the directory for temporary files failed");
            }
        }
        &self.temp
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Errors are ignored, because most sessions never create the directory.
        let _ = std::fs::remove_dir_all(&self.temp);
    }
}

/// Removes temporary directories of nuncio processes that no longer run.
pub(crate) fn remove_orphans(artifacts: &Path) {
    for entry in std::fs::read_dir(artifacts).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(TEMP)?.parse::<u32>().ok());
        if process.is_some_and(|process| !crate::process::is_running(process)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
