//! The review of the changes in a hosted agent's turn. They come from two snapshots of the working
//! tree, because the agent does not report what its commands change.

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::turn_environment::TurnEnvironment;
use crate::config::{LoadedSettings, ReviewMode, excludes};
use crate::content::listed;
use crate::error::Result;
use crate::event::Severity;
use crate::limits;
use crate::runtime::{NOT_REVIEWED, review_changes, review_notice};
use crate::session::Turn;
use crate::task;
use crate::toolkit::TurnFile;
use crate::workspace::{self, Workspace};
use crate::worktrees::{FormerContent, SnapshotChange, TreeSnapshot};

/// Maximum time in which the files of the working tree are read.
const SNAPSHOT: Duration = Duration::from_secs(20);
/// Title of the notice about changed settings of git.
const HIDDEN: &str = "The review may miss changes";
/// Maximum total size of the changed files of a review, in bytes.
const FILES_BYTES_MAX: u64 = 64 << 20;

/// The files before a turn.
pub(super) struct TurnReview(TreeSnapshot);

impl TurnReview {
    /// Takes the snapshot before the turn, if its changes are reviewed. A failure is a notice.
    pub(super) async fn begin(environment: &TurnEnvironment<'_>, loaded: &LoadedSettings) -> Option<TurnReview> {
        if loaded.settings.review.mode == ReviewMode::Off {
            return None;
        }
        let (turn, services) = (environment.turn, environment.services);
        let cwd = turn.log.state(|state| state.cwd.clone());
        let excludes = excludes(&services.environment);
        let snapshot = TreeSnapshot::take(services.launcher.clone(), &services.places, &cwd, excludes);
        within_limit(turn, snapshot).await.map(TurnReview)
    }

    /// Offers the changes since the begin for review. `out_of_time` is true if the time budget
    /// cancelled the turn.
    pub(super) async fn end(self, environment: &TurnEnvironment<'_>, out_of_time: bool) -> Result<()> {
        let (turn, TurnReview(snapshot)) = (environment.turn, self);
        if turn.cancel.is_cancelled() && !out_of_time {
            return Ok(());
        }
        let Some(changed) = within_limit(turn, snapshot.changed_files()).await else { return Ok(()) };
        let Some(settings) = within_limit(turn, snapshot.changed_settings()).await else { return Ok(()) };
        if changed.is_empty() && settings.is_empty() {
            return Ok(());
        }
        let own = environment.get().await?;
        let context = own.tool_context();
        if !settings.is_empty() {
            let names: Vec<String> = settings.iter().map(|path| context.workspace.show(path)).collect();
            let names = listed(&names, limits::DIRTY_FILES_SHOWN);
            let description = format!("{names} changed during the turn, so that git may hide other changes: check them yourself");
            turn.emit(review_notice(Severity::Warning, HIDDEN, description)).await;
        }
        let (workspace, began) = (context.workspace.clone(), snapshot.taken());
        let read = move || -> Vec<_> {
            let mut left = FILES_BYTES_MAX;
            changed.into_iter().map(|file| turn_file(file, &workspace, began, &mut left)).collect()
        };
        let files = task::blocking("reading the changed files", read).await?;
        let unknown = files.iter().filter_map(|file| file.as_ref().err());
        let unknown: Vec<String> = unknown.map(|path| context.workspace.show(path)).collect();
        let files: Vec<TurnFile> = files.into_iter().flatten().collect();
        if !unknown.is_empty() {
            let names = listed(&unknown, limits::DIRTY_FILES_SHOWN);
            let description = format!("{names}: not a regular file, too large, or not stored byte for byte by git");
            turn.emit(review_notice(Severity::Warning, "Some changes are not reviewed", description)).await;
        }
        if !files.is_empty() {
            let announced = environment.announced.lock().clone();
            let silent = files.iter().map(|file| &file.resolved.path).filter(|path| !announced.contains(*path));
            let silent: Vec<String> = silent.map(|path| context.workspace.show(path)).collect();
            turn.emit(review_notice(Severity::Info, "The review contains all changes during the turn", origin(&silent))).await;
        }
        context.changes.record(files);
        review_changes(turn, own, out_of_time).await
    }
}

/// Describes whose changes a review contains.
fn origin(silent: &[String]) -> String {
    let all = "changes of the user and of other programs cannot be told apart from those of the agent";
    if silent.is_empty() {
        return all.into();
    }
    let names = listed(silent, limits::DIRTY_FILES_SHOWN);
    format!("{all}; changed by a command or another program, as far as the agent reports: {names}")
}

/// Returns the result of reading the working tree. An error is a notice.
async fn within_limit<R>(turn: &Turn, read: impl Future<Output = Result<R>>) -> Option<R> {
    let result = tokio::select! {
        result = tokio::time::timeout(SNAPSHOT, read) => result,
        () = turn.cancel.cancelled() => return None,
    };
    let why = match result {
        Ok(Ok(read)) => return Some(read),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("git needed more than {} s to read the files", SNAPSHOT.as_secs()),
    };
    turn.emit(review_notice(Severity::Warning, NOT_REVIEWED, why)).await;
    None
}

/// Reads the present content of a changed file of at most `left` bytes, which are subtracted from
/// `left`. Returns its path if a review could not restore the former content.
fn turn_file(file: SnapshotChange, workspace: &Workspace, began: SystemTime, left: &mut u64) -> Result<TurnFile, PathBuf> {
    let former = match file.former {
        FormerContent::Missing => None,
        FormerContent::File { bytes, executable } => Some((bytes, executable)),
        FormerContent::Unknown => return Err(file.path),
    };
    let resolved = file.path.to_str().map(|path| workspace.resolve(path));
    // A directory may have become a symlink.
    let Some(resolved) = resolved.filter(|resolved| resolved.real == file.path) else { return Err(file.path) };
    let mut after = Vec::new();
    let read = workspace::open(&file.path).and_then(|open| open.take(*left + 1).read_to_end(&mut after));
    match read {
        Ok(size) if size as u64 > *left => Err(file.path),
        Ok(size) => {
            *left -= size as u64;
            Ok(TurnFile::changed(resolved, former, Some(after), began))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(TurnFile::changed(resolved, former, None, began))
        }
        Err(_) => Err(file.path),
    }
}
