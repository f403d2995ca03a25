//! The files that the tool calls of a turn changed.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::files_seen::FileState;
use crate::workspace::ResolvedPath;

/// Maximum size of the former contents that are kept for the review of a turn's changes, in bytes.
/// Further files are not reviewed.
const REVIEW_BYTES_MAX: usize = 64 << 20;
/// Maximum number of files in a review.
const REVIEW_FILES_MAX: usize = 500;

/// The states of the files of the workspace, as hashes of their sizes and times by the hashes of
/// their paths.
pub(super) type Scan = HashMap<u64, u64>;

/// A record of the changes of the running turn. Each turn starts with an empty record.
#[derive(Debug, Default)]
pub struct TurnChanges {
    state: Mutex<State>,
    /// Held while a program of the turn starts.
    pub(super) start: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// True if the changes are reviewed, so that the contents of the files are kept.
    keeps_content: bool,
    /// True if changes by commands are tracked, because checks follow.
    watches: bool,
    /// True if a tool that edits files made a change since the last check.
    edited: bool,
    /// The state of the workspace before the first command since the last check.
    scanned: Option<Arc<Scan>>,
    /// True if a command ran in the turn.
    ran_command: bool,
    /// The number of running commands and hooks.
    programs: usize,
    /// The state of the workspace before the first command of the turn.
    before_commands: Option<Arc<Scan>>,
    files: BTreeMap<PathBuf, TurnFile>,
    /// Size of the kept contents.
    bytes: usize,
    /// Files that are not reviewed, because the contents are too large.
    left_out: Vec<PathBuf>,
}

/// The programs that may have changed a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeOrigin {
    /// Tools, commands and hooks of the turn.
    Turn,
    Other,
}

/// A file that a turn changed.
#[derive(Clone, Debug)]
pub(crate) struct TurnFile {
    pub resolved: ResolvedPath,
    /// The content before the turn; `None` if the file did not exist.
    pub before: Option<Vec<u8>>,
    /// The content after the last change in the turn.
    pub after: Option<Vec<u8>>,
    /// True if another program changed the file after the turn's first change.
    pub conflict: bool,
    /// The state of the file when `after` was read; `None` before that.
    read: Option<FileState>,
    /// The mode bits before the turn.
    mode: Option<u32>,
    /// The parent directories that did not exist before the turn, innermost first.
    missing: Vec<PathBuf>,
}

impl TurnFile {
    /// Records a file that is about to be changed, with its content.
    pub(crate) fn new(resolved: &ResolvedPath, before: Option<Vec<u8>>) -> TurnFile {
        let mode = fs::metadata(&resolved.real).ok().map(|metadata| metadata.permissions().mode());
        let missing = resolved.real.ancestors().skip(1).take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
        TurnFile { resolved: resolved.clone(), after: before.clone(), before, conflict: false, read: None, mode, missing }
    }

    /// Creates a file that another program has changed since `began`. `former` is its former
    /// content, and whether it was executable.
    pub(crate) fn changed(
        resolved: ResolvedPath,
        former: Option<(Vec<u8>, bool)>,
        after: Option<Vec<u8>>,
        began: SystemTime,
    ) -> TurnFile {
        let mode = fs::metadata(&resolved.real).map_or(0o644, |metadata| metadata.permissions().mode());
        let mode = former.as_ref().map(|(_, executable)| mode & !0o111 | if *executable { (mode & 0o444) >> 2 } else { 0 });
        let is_new = |dir: &&Path| created(dir).is_some_and(|created| created >= began);
        let missing = resolved.real.ancestors().skip(1).take_while(is_new).map(Path::to_owned).collect();
        TurnFile { resolved, before: former.map(|(bytes, _)| bytes), after, conflict: false, read: None, mode, missing }
    }

    /// Restores what the content does not include, after the content was restored: the mode of a
    /// file that `exists`, else the parent directories, as far as they are empty.
    pub(crate) fn restored(&self, exists: bool) {
        match self.mode {
            // Errors are ignored: the content is restored, and that is reported.
            Some(mode) if exists => drop(fs::set_permissions(&self.resolved.real, Permissions::from_mode(mode))),
            None if !exists => self.missing.iter().for_each(|dir| drop(fs::remove_dir(dir))),
            _ => {}
        }
    }
}

/// Returns when a directory was created. `std` reports it on Linux only with glibc.
#[cfg(not(posix))]
fn created(dir: &Path) -> Option<SystemTime> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let found = statx(CWD, dir, AtFlags::empty(), StatxFlags::BTIME).ok()?;
    let is_known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let since = std::time::Duration::new(found.stx_btime.tv_sec.try_into().ok()?, found.stx_btime.tv_nsec);
    is_known.then(|| SystemTime::UNIX_EPOCH + since)
}

/// Returns when a directory was created.
#[cfg(posix)]
fn created(dir: &Path) -> Option<SystemTime> {
    dir.metadata().ok()?.created().ok()
}

impl TurnChanges {
    /// Starts a turn. `keeps_content`: the changes will be reviewed; `watches`: checks run after
    /// changes.
    pub(crate) fn begin(&self, keeps_content: bool, watches: bool) {
        *self.state.lock() = State { keeps_content, watches, ..State::default() };
    }

    /// Returns whether contents are kept for a review.
    pub(crate) fn keeps_content(&self) -> bool {
        self.state.lock().keeps_content
    }

    /// Records that a tool has edited files, with their content before. The content before the
    /// first change of each file is kept.
    pub(crate) fn record(&self, touched: Vec<TurnFile>) {
        let mut state = self.state.lock();
        let idle = state.programs == 0;
        state.edited = true;
        for file in touched {
            let real = file.resolved.real.clone();
            if let Some(known) = state.files.get_mut(&real) {
                known.conflict |= idle && known.after != file.before;
                continue;
            }
            if state.left_out.contains(&real) {
                continue;
            }
            let bytes = file.before.as_ref().map_or(0, Vec::len);
            if state.bytes + bytes > REVIEW_BYTES_MAX || state.files.len() >= REVIEW_FILES_MAX {
                state.left_out.push(real);
            } else {
                state.bytes += bytes;
                state.files.insert(real, file);
            }
        }
    }

    /// Sets the current content of a recorded file, which was read in the state `read`, and
    /// which the program `by` changed if it differs.
    pub(super) fn set_after(&self, real: &Path, after: Option<Vec<u8>>, read: FileState, by: ChangeOrigin) {
        if let Some(file) = self.state.lock().files.get_mut(real) {
            file.conflict |= by == ChangeOrigin::Other && file.after != after;
            (file.after, file.read) = (after, Some(read));
        }
    }

    /// Returns whether commands or hooks of the turn run.
    pub(super) fn runs_programs(&self) -> bool {
        self.state.lock().programs > 0
    }

    /// Counts a command or hook that starts.
    pub(super) fn program_started(&self) {
        self.state.lock().programs += 1;
    }

    /// Counts a command or hook that has ended.
    pub(super) fn program_ended(&self) {
        let mut state = self.state.lock();
        state.programs = state.programs.saturating_sub(1);
    }

    /// Returns the recorded files, each with its state when its content was read.
    pub(super) fn recorded(&self) -> Vec<(ResolvedPath, Option<FileState>)> {
        self.state.lock().files.values().map(|file| (file.resolved.clone(), file.read)).collect()
    }

    /// Returns the recorded files, by path.
    pub(crate) fn files(&self) -> Vec<TurnFile> {
        self.state.lock().files.values().cloned().collect()
    }

    /// Returns the changed files that a review omits, because there are too many files or their
    /// contents are too large.
    pub(crate) fn left_out(&self) -> Vec<PathBuf> {
        self.state.lock().left_out.clone()
    }

    /// Returns whether the state of the workspace is needed before a command runs.
    pub(super) fn needs_scan(&self) -> bool {
        let state = self.state.lock();
        (state.watches && !state.edited && state.scanned.is_none()) || (state.keeps_content && !state.ran_command)
    }

    /// Sets the state of the workspace before a command. If it is unknown, files count as edited.
    pub(super) fn set_scan(&self, scan: Option<Scan>) {
        let mut state = self.state.lock();
        let scan = scan.map(Arc::new);
        state.edited |= scan.is_none();
        if !state.ran_command {
            state.ran_command = true;
            state.before_commands.clone_from(&scan);
        }
        if state.scanned.is_none() {
            state.scanned = scan;
        }
    }

    /// Returns the state of the workspace before the first command of the turn, if it is known.
    pub(super) fn before_commands(&self) -> Option<Arc<Scan>> {
        self.state.lock().before_commands.clone()
    }

    /// Returns the paths of all files that tools have edited.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let state = self.state.lock();
        state.files.keys().chain(&state.left_out).cloned().collect()
    }

    /// Returns whether a tool has edited files, and the state of the workspace before the first
    /// command.
    pub(super) fn since_check(&self) -> (bool, Option<Arc<Scan>>) {
        let state = self.state.lock();
        (state.edited, state.scanned.clone())
    }

    /// Records that the checks have to run for the current files.
    pub(crate) fn require_check(&self) {
        self.state.lock().edited = true;
    }

    /// Records that the checks passed for the current files.
    pub(crate) fn checked(&self) {
        let mut state = self.state.lock();
        (state.edited, state.scanned) = (false, None);
    }
}
