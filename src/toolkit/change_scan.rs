//! Detects whether commands changed files of the workspace, and which of the changes to files of
//! the review are those of other programs.

use std::collections::HashSet;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use parking_lot::Mutex;

use super::change;
use super::context::ToolContext;
use super::turn_changes::{ChangeOrigin, Scan};

/// Maximum number of files whose state is compared to detect changes by commands. With more files,
/// every command counts as a change.
const CHANGE_SCAN_FILES_MAX: usize = 200_000;

/// Prepares for a command, which may change files.
pub(crate) async fn before_command(context: &ToolContext) {
    before_program(context).await;
    if context.changes.needs_scan() {
        context.changes.set_scan(scan(context).await.map(states));
    }
}

/// Prepares for a command or a hook: files of the review that another program changed so far are
/// conflicts. [`after_program`] must follow.
pub(crate) async fn before_program(context: &ToolContext) {
    if context.changes.keeps_content() {
        // Another program that starts waits, so that its changes do not count as changes by others.
        let _start = context.changes.start.lock().await;
        if !context.changes.runs_programs() {
            refresh(context, ChangeOrigin::Other).await;
        }
        context.changes.program_started();
    }
}

/// Adds changes that a command or a hook made to files of the review. Runs even if the call was
/// cancelled.
pub(crate) async fn after_program(context: &ToolContext) {
    if context.changes.keeps_content() {
        refresh(context, ChangeOrigin::Turn).await;
        context.changes.program_ended();
    }
}

/// Reads the files of the review that changed. Changes count as those of `by`.
async fn refresh(context: &ToolContext, by: ChangeOrigin) {
    for (resolved, known) in context.changes.recorded() {
        // A call that edits the file records its change before it releases the lock.
        let lock = context.files.locks.lock(&resolved.real).await;
        let inner = context.clone();
        let read = move || {
            let _lock = lock;
            change::refresh(&inner, &resolved, known, by);
        };
        // A failure leaves the content as it was recorded.
        let _ = tokio::task::spawn_blocking(read).await;
    }
}

/// Returns whether tools or commands have changed files since the last check.
pub(crate) async fn files_changed(context: &ToolContext) -> bool {
    match context.changes.since_check() {
        (true, _) => true,
        (false, None) => false,
        (false, Some(before)) => scan(context).await.map(states).as_ref() != Some(&*before),
    }
}

/// Finds the files that commands of the turn changed and that no editing tool changed. Returns the
/// paths of existing files and the number of deleted files. Finds none if the state of the
/// workspace is unknown.
pub(crate) async fn changed_by_commands(context: &ToolContext) -> (Vec<PathBuf>, usize) {
    let Some(before) = context.changes.before_commands() else { return Default::default() };
    let Some(now) = scan(context).await else { return Default::default() };
    let known: HashSet<u64> = context.changes.paths().iter().map(hash).collect();
    let exist: HashSet<u64> = now.iter().map(|(path, _)| hash(path)).collect();
    let deleted = before.keys().filter(|path| !exist.contains(path) && !known.contains(path)).count();
    let differs = |(path, state): &(PathBuf, u64)| before.get(&hash(path)) != Some(state) && !known.contains(&hash(path));
    let mut changed: Vec<PathBuf> = now.into_iter().filter(differs).map(|(path, _)| path).collect();
    changed.sort();
    (changed, deleted)
}

fn states(files: Vec<(PathBuf, u64)>) -> Scan {
    files.into_iter().map(|(path, state)| (hash(&path), state)).collect()
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the files in the session's directory, except files that ignore files or permission rules
/// exclude, and the files with these rules, each with a hash of its size, inode and times. `None`
/// if there are too many files, or if the call was cancelled.
async fn scan(context: &ToolContext) -> Option<Vec<(PathBuf, u64)>> {
    let inner = context.clone();
    let scanned = context.search(move || {
        let walk = inner.walk(&inner.workspace.cwd).hidden(true).rules();
        let outer = walk.outer_rules().into_iter().filter_map(|path| Some((state(&path.metadata().ok()?), path)));
        let files = Mutex::new(outer.map(|(state, path)| (path, state)).collect::<Vec<_>>());
        walk.parallel(|| {
            |entry| {
                let Ok(metadata) = entry.metadata() else { return true };
                let mut files = files.lock();
                files.push((entry.path, state(&metadata)));
                files.len() <= CHANGE_SCAN_FILES_MAX
            }
        });
        Ok(files.into_inner())
    });
    scanned.await.ok().filter(|files| files.len() <= CHANGE_SCAN_FILES_MAX)
}

/// Returns a hash of what identifies a version of a file.
fn state(metadata: &Metadata) -> u64 {
    let times = (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec());
    hash((metadata.len(), metadata.ino(), times))
}
