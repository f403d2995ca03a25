//! What a session's commands share: the directory in which the next one starts, what they exported, a directory for temporary files,
//! and the jobs that run beside them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::jobs::Jobs;
use crate::limits;
use crate::process::Change;
use crate::store::create_private_dir;
use crate::workspace::Workspace;

/// The shell of a session, as far as it outlives its commands. Each starts from what the ones before it left that ended by themselves.
#[derive(Debug)]
pub struct Shell {
    left: Mutex<Start>,
    pub jobs: Jobs,
    /// Ours alone: one that was killed may have left another beside it.
    temp: PathBuf,
}

/// What the next command begins with.
#[derive(Clone, Debug)]
pub struct Start {
    pub cwd: PathBuf,
    /// Variables that it begins with, or, without a value, begins without.
    pub exported: BTreeMap<OsString, Option<OsString>>,
}

/// What a shell sets anew at each beginning.
const ITS_OWN: [&str; 5] = ["PWD", "OLDPWD", "SHLVL", "_", "TMPDIR"];

const TEMP: &str = "temp-";

impl Shell {
    pub fn new(workspace: &Workspace) -> Shell {
        let left = Start { cwd: workspace.cwd.clone(), exported: BTreeMap::new() };
        let temp = workspace.artifacts.join(format!("{TEMP}{}", std::process::id()));
        Shell { left: Mutex::new(left), jobs: Jobs::default(), temp }
    }

    fn left(&self) -> MutexGuard<'_, Start> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a command would begin with now; in the workspace's directory where the one that was left is gone.
    pub fn start(&self, workspace: &Workspace) -> Start {
        let left = self.left().clone();
        if left.cwd.is_dir() { left } else { Start { cwd: workspace.cwd.clone(), ..left } }
    }

    pub fn set_cwd(&self, cwd: PathBuf) {
        self.left().cwd = cwd;
    }

    /// Keeps what a command exported, except what `is_ours`. False, and nothing is kept of it, when that is too much.
    pub fn export(&self, changes: Vec<Change>, is_ours: impl Fn(&str) -> bool) -> bool {
        let mut left = self.left();
        let mut exported = left.exported.clone();
        let kept = |name: &OsString| name.to_str().is_none_or(|name| !ITS_OWN.contains(&name) && !is_ours(name));
        exported.extend(changes.into_iter().filter(|(name, _)| kept(name)));
        let size = |(name, value): (&OsString, &Option<OsString>)| name.len() + value.as_ref().map_or(0, |value| value.len());
        let fits = exported.iter().map(size).sum::<usize>() <= limits::SHELL_EXPORTED_BYTES_MAX;
        if fits {
            left.exported = exported;
        }
        fits
    }

    /// The directory for temporary files of confined commands. It is removed with the shell.
    pub fn temp(&self) -> &Path {
        if !self.temp.is_dir() {
            self.temp.parent().into_iter().for_each(remove_orphans);
            if let Err(error) = create_private_dir(&self.temp) {
                // A command can do without; it is told when it writes there.
                tracing::warn!(%error, "no directory for temporary files");
            }
        }
        &self.temp
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Most sessions never made it.
        let _ = std::fs::remove_dir_all(&self.temp);
    }
}

/// Removes temporary directories of nuncio processes that no longer run.
pub fn remove_orphans(artifacts: &Path) {
    for entry in std::fs::read_dir(artifacts).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(TEMP)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
