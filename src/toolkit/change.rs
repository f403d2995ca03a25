//! File changes: how `write`, `edit` and `apply_patch` read, write and show files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tokio::sync::OwnedMutexGuard;

use super::attributes::FormerAttributes;
use super::change_notes::{differences, saved_by_editors};
use super::client_copy::{ClientCopy, editors_preserve, is_derived, with_endings_of};
use super::context::ToolContext;
use super::files_seen::{ContentHash, FileState};
use super::output::{ToolError, ToolOutput};
use super::shown_change::shown;
use super::text::Encoding;
use super::turn_changes::{ChangeOrigin, TurnFile};
use crate::content::{Location, ToolContent};
use crate::patch::{self, Diff, Side};
use crate::workspace::{self, ChangeFailure, FileChange, ResolvedPath};

/// Maximum size of a file that `edit` changes, in bytes.
const EDIT_BYTES_MAX: u64 = 64 << 20;

/// A change to one file, with the file's content before and after the change.
pub(crate) struct PlannedChange {
    /// The file's path; for a move, the new path.
    pub resolved: ResolvedPath,
    /// The path as shown to users.
    pub shown: String,
    /// The file before the change.
    pub old: FileSnapshot,
    /// The new content; `None` deletes the file.
    pub new: Option<Vec<u8>>,
    /// The new content that the model proposed, if the user decided on another one.
    pub proposed: Option<Vec<u8>>,
    /// Why the user's decision cannot be applied.
    pub refused: Option<String>,
    /// For a move: the old path, and the old path as shown to users. No file is at the new path.
    pub from: Option<(ResolvedPath, String)>,
    /// The first changed line, from 1.
    pub line: Option<usize>,
}

/// A file as read before a change.
#[derive(Default)]
pub(crate) struct FileSnapshot {
    /// The content, including unsaved changes in a client; `None` if the file does not exist.
    pub bytes: Option<Vec<u8>>,
    pub(super) client_copy: ClientCopy,
    /// True if editors preserve the content on disk byte for byte.
    plain: bool,
    /// The content on disk.
    disk: Option<ContentHash>,
    /// A hash of the file's content, of which `bytes` may have other line endings. `None`: there is
    /// no file.
    seen: Option<ContentHash>,
}

/// The changes that a call makes, computed before anything is written.
pub(crate) struct ChangePlan<D> {
    /// The changes, each of a different file.
    pub changes: Vec<PlannedChange>,
    /// The result for the model.
    pub text: String,
    /// The tool's details.
    pub details: D,
}

/// Returns the changes that a call would make, to be shown with its permission request. An error
/// says why the call would fail.
pub(crate) async fn preview<D: Send + 'static>(
    context: &ToolContext,
    plan: impl FnOnce(&ToolContext) -> Result<ChangePlan<D>, ToolError> + Send + 'static,
) -> Result<Vec<ToolContent>, ToolError> {
    let inner = context.clone();
    let plan = context.read_blocking(move || plan(&inner)).await?;
    Ok(plan.changes.iter().map(PlannedChange::content).collect())
}

/// Plans the changes and makes them, all or none, with `paths` locked against other calls.
pub(crate) async fn run<D: Send + 'static>(
    context: &ToolContext,
    paths: impl IntoIterator<Item = &str>,
    plan: impl FnOnce(&ToolContext) -> Result<ChangePlan<D>, ToolError> + Send + 'static,
) -> Result<ToolOutput<D>, ToolError> {
    let locks = lock(context, paths.into_iter().map(|path| context.workspace.resolve(path).real).collect()).await;
    let inner = context.clone();
    context
        .write_blocking(move || {
            let _locks = locks;
            let ChangePlan { mut changes, mut text, details } = plan(&inner)?;
            text += &decisions(&changes)?;
            changes.retain(|change| change.proposed.is_none() || change.new != change.old.bytes);
            let touched = touched(&changes, &inner);
            let replaced = changes.iter().filter(|change| change.new.is_some());
            let former = FormerAttributes::read(replaced.map(PlannedChange::paths));
            let written = commit(&changes, &inner)?;
            let saved = changes.iter().zip(&written);
            text += &saved_by_editors(saved.map(|(change, saved)| (&*change.shown, change.new.as_deref(), saved.as_deref())));
            changes.iter_mut().zip(written).for_each(|(change, saved)| change.new = saved.or(change.new.take()));
            text += &former.lost();
            let recorded: Vec<ResolvedPath> = touched.iter().map(|file| file.resolved.clone()).collect();
            inner.changes.record(touched);
            recorded.iter().for_each(|file| refresh(&inner, file, None, ChangeOrigin::Turn));
            let (content, locations) = (changes.iter().map(PlannedChange::content), changes.iter().map(PlannedChange::location));
            Ok(ToolOutput { content: content.collect(), locations: locations.collect(), ..ToolOutput::text(text, details) })
        })
        .await
}

/// Describes for the model how the user changed what the call writes. Fails if nothing is to be
/// written, or if the user's decisions cannot be applied.
fn decisions(changes: &[PlannedChange]) -> Result<String, ToolError> {
    if let Some(why) = changes.iter().find_map(|change| change.refused.clone()) {
        return Err(ToolError(why));
    }
    let decided: Vec<&PlannedChange> = changes.iter().filter(|change| change.proposed.is_some()).collect();
    if decided.is_empty() {
        return Ok(String::new());
    }
    if changes.iter().all(|change| change.proposed.is_some() && change.new == change.old.bytes) {
        return Err(ToolError("denied by the user: all changes were rejected".into()));
    }
    let files = decided.iter().map(|change| (&*change.shown, change.proposed.as_deref(), change.new.as_deref()));
    Ok(differences("the user changed this before it was written; the differences to your version", files))
}

/// Locks files against other calls. All calls lock in the same order, which prevents deadlocks.
pub(super) async fn lock(context: &ToolContext, files: BTreeSet<PathBuf>) -> Vec<OwnedMutexGuard<()>> {
    let mut locks = Vec::new();
    for file in &files {
        locks.push(context.files.locks.lock(file).await);
    }
    locks
}

/// Reads a file that the call will create or replace: the client's copy, else the file on disk, at
/// most `EDIT_BYTES_MAX`. The client is asked for a file that does not exist on disk only
/// if the session has read it from the client before, because clients show each failed read to the
/// user.
pub(crate) fn current(resolved: &ResolvedPath, context: &ToolContext) -> Result<FileSnapshot, ToolError> {
    load(resolved, context, context.files.is_unsaved(&resolved.real))
}

/// Reads a file. With `ask_if_missing`, the client is asked for a file that does not exist on disk.
fn load(resolved: &ResolvedPath, context: &ToolContext, ask_if_missing: bool) -> Result<FileSnapshot, ToolError> {
    let disk = on_disk(resolved, context)?;
    let on_disk = disk.as_deref().map(ContentHash::new);
    let client_copy = match &disk {
        None if !ask_if_missing => ClientCopy::Same,
        disk => context.client_copy(resolved, disk.as_deref())?,
    };
    let plain = disk.as_deref().is_none_or(editors_preserve);
    let seen = client_copy.unsaved().map(|text| ContentHash::new(text.as_bytes())).or(on_disk);
    let bytes = match (client_copy.unsaved(), disk) {
        (None, disk) => disk,
        (Some(_), Some(_)) if !plain => {
            let shown = context.workspace.show(&resolved.path);
            return Err(ToolError(format!(
                "{shown} has unsaved changes in the editor, which would not preserve its line endings or byte order mark; \
                 ask the user to save it first"
            )));
        }
        (Some(text), Some(disk)) => Some(with_endings_of(text, &disk)),
        (Some(text), None) => Some(text.as_bytes().to_vec()),
    };
    Ok(FileSnapshot { bytes, client_copy, plain, disk: on_disk, seen })
}

fn on_disk(resolved: &ResolvedPath, context: &ToolContext) -> Result<Option<Vec<u8>>, ToolError> {
    let read = |file: File| {
        let mut bytes = Vec::with_capacity(file.metadata()?.len().min(EDIT_BYTES_MAX) as usize + 1);
        file.take(EDIT_BYTES_MAX + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    match workspace::open(&resolved.real).and_then(read) {
        Ok(bytes) if bytes.len() as u64 > EDIT_BYTES_MAX => {
            let (shown, most) = (context.workspace.show(&resolved.path), EDIT_BYTES_MAX >> 20);
            Err(ToolError(format!("{shown} is larger than {most} MiB; use bash to change it")))
        }
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(context.failed("reading", &resolved.path, error)),
    }
}

/// Reads a file that the call will change in part: the client's copy, else the file on disk. Fails
/// if the file is UTF-16, or if it changed since the session last saw it.
pub(crate) fn current_text(resolved: &ResolvedPath, context: &ToolContext) -> Result<FileSnapshot, ToolError> {
    let shown = context.workspace.show(&resolved.path);
    let content = load(resolved, context, true)?;
    content.check(resolved, &shown, context)?;
    match content.bytes.as_deref().map(Encoding::detect) {
        Some(Encoding::Utf16Little | Encoding::Utf16Big) => Err(ToolError(format!("{shown} is UTF-16; use bash to change it"))),
        Some(Encoding::Utf8 | Encoding::Utf8Marked) | None => Ok(content),
    }
}

/// Makes all `changes`, or none if a file changed since the session last saw it or cannot be
/// written. Returns for each change what the client made of its new content; `None`: the client has
/// not made the change.
pub(super) fn commit(changes: &[PlannedChange], context: &ToolContext) -> Result<Vec<Option<Vec<u8>>>, ToolError> {
    for change in changes {
        let (resolved, shown) = change.from.as_ref().map_or((&change.resolved, &change.shown), |(from, shown)| (from, shown));
        change.old.check(resolved, shown, context)?;
        change.old.check_unchanged(resolved, shown)?;
        if change.from.is_some() && change.resolved.real.symlink_metadata().is_ok() {
            return Err(ToolError(format!("{} exists, so no file is moved there; nothing was changed", change.shown)));
        }
        if context.client_may_write(&change.resolved) {
            return Err(ToolError(format!(
                "a write of {} by the editor is still pending and could overwrite this change; try again in a minute",
                change.shown
            )));
        }
    }
    let mut written = Vec::new();
    let done = changes.iter().try_for_each(|change| {
        written.push(change.try_client(context)?);
        Ok(())
    });
    let made = |by_client: bool| {
        let all = changes.iter().zip(&written).filter(move |(_, written)| written.is_some() == by_client);
        all.map(|(change, _)| change).collect::<Vec<_>>()
    };
    let by_us = made(false);
    if let Err(mut error) = done.and_then(|()| commit_by_us(&by_us, context)) {
        for change in made(true).iter().filter(|change| !change.undo(context)) {
            error.0.push_str(&format!("; {} could not be restored", change.shown));
        }
        return Err(error);
    }
    by_us.iter().for_each(|change| context.files.note(&change.resolved.real, None));
    Ok(written)
}

/// Makes, directly on disk, the changes that the client has not made.
fn commit_by_us(changes: &[&PlannedChange], context: &ToolContext) -> Result<(), ToolError> {
    let mut files = Vec::new();
    for change in changes {
        let real = &change.resolved.real;
        if let Some((from, _)) = &change.from {
            files.push(FileChange::Remove { real: &from.real });
        }
        files.push(match &change.new {
            Some(bytes) => FileChange::Put { real, bytes, like: change.from.as_ref().map(|(from, _)| from.real.as_path()) },
            None => FileChange::Remove { real },
        });
    }
    workspace::commit(&files).map_err(|failed| not_changed(failed, context))
}

/// Returns the files that `changes` touch, with their current content. Returns nothing if the
/// turn's changes are not reviewed.
fn touched(changes: &[PlannedChange], context: &ToolContext) -> Vec<TurnFile> {
    let mut touched = Vec::new();
    for change in changes.iter().filter(|_| context.changes.keeps_content()) {
        let replaced = match &change.from {
            Some((from, _)) => {
                touched.push(TurnFile::new(from, change.old.bytes.clone()));
                None
            }
            None => change.old.bytes.clone(),
        };
        touched.push(TurnFile::new(&change.resolved, replaced));
    }
    touched
}

/// Reads the current content of a file that the turn changed, unless the file is in the state
/// `known`. Changes count as those of `by`. Blocks the thread.
pub(super) fn refresh(context: &ToolContext, resolved: &ResolvedPath, known: Option<FileState>, by: ChangeOrigin) {
    // The state is read first, so that a concurrent change is detected later.
    let state = FileState::read(&resolved.real);
    // Unsaved changes in a client leave the file on disk as it is.
    if known == Some(state) && context.client_of(resolved).is_none() {
        return;
    }
    // A file that cannot be read any more counts as a file that another program changed.
    if let Ok(now) = current(resolved, context) {
        context.changes.set_after(&resolved.real, now.bytes, state, by);
    }
}

fn not_changed(failed: ChangeFailure, context: &ToolContext) -> ToolError {
    let all = if failed.left.is_empty() { "; nothing was changed" } else { "" };
    let mut error = context.failed("writing", &failed.real, format!("{}{all}", failed.error));
    for (file, former) in failed.left {
        let (file, former) = (context.workspace.show(&file), context.workspace.show(&former));
        error.0.push_str(&format!("; {file} could not be restored: its former content is in {former}"));
    }
    error
}

impl FileSnapshot {
    /// Fails if the file changed since the session last saw it.
    pub(super) fn check(&self, resolved: &ResolvedPath, shown: &str, context: &ToolContext) -> Result<(), ToolError> {
        context.files.check(&resolved.real, shown, self.seen)
    }

    /// Fails if the file changed on disk since it was read for this change.
    fn check_unchanged(&self, resolved: &ResolvedPath, shown: &str) -> Result<(), ToolError> {
        if self.disk == ContentHash::read(&resolved.real) {
            return Ok(());
        }
        Err(ToolError(format!("stale: {shown} was changed by another program; read it again")))
    }
}

impl PlannedChange {
    /// Creates a change to a file that is not moved.
    pub(crate) fn new(resolved: ResolvedPath, context: &ToolContext, old: FileSnapshot, new: Option<Vec<u8>>) -> PlannedChange {
        let shown = context.workspace.show(&resolved.path);
        let (mut new, mut proposed, mut refused) = (new, None, None);
        if let Some(review) = &context.review
            && let Some(content) = new.take()
        {
            match review.apply(&resolved, &shown, old.bytes.as_deref(), &content) {
                Ok(decided) => {
                    proposed = (decided.as_ref() != Some(&content)).then_some(content);
                    new = decided;
                }
                Err(why) => (new, refused) = (Some(content), Some(why)),
            }
        }
        PlannedChange { shown, resolved, old, new, proposed, refused, from: None, line: None }
    }

    /// Lets the client make the change, and returns the content that the file has then: an editor
    /// may format it as it saves it. Returns `None` if the client did not write the new content. It
    /// is distrusted then, and the caller writes the file to disk.
    fn try_client(&self, context: &ToolContext) -> Result<Option<Vec<u8>>, ToolError> {
        let (Some(new), None) = (&self.new, &self.from) else { return Ok(None) };
        // Clients follow symlinks, which a program can create at any time, so they create no files.
        let is_new = self.old.seen.is_none() && self.old.client_copy.unsaved().is_none();
        // If the client's copy could not be read, it may have unsaved changes.
        if self.old.client_copy == ClientCopy::Unknown || !self.old.plain || is_new {
            return Ok(None);
        }
        let real = &self.resolved.real;
        let before = FileState::read(real);
        let by_client = context.client_writes(&self.resolved, new)?;
        let disk = on_disk(&self.resolved, context).unwrap_or_default();
        if !by_client {
            let written = context.client_wrote_silently(&self.resolved, new, disk.as_deref());
            if written {
                context.files.note(real, None);
            }
            return Ok(written.then(|| new.clone()));
        }
        let is_saved = FileState::read(real) != before;
        let client_copy = context.client_copy(&self.resolved, disk.as_deref()).unwrap_or_default();
        let found = client_copy.unsaved().map(|text| with_endings_of(text, new)).or(disk);
        // An editor that saved the old text has undone the change, for example an unused import.
        let is_changed = found != self.old.bytes || (is_saved && client_copy == ClientCopy::Same);
        let kept = found.filter(|found| found == new || (is_changed && is_derived(new, found)));
        match kept {
            Some(_) => context.files.note(real, client_copy.unsaved()),
            None => context.distrust_client(&self.resolved),
        }
        Ok(kept)
    }

    /// Undoes a change that the client has made. Returns false if that fails.
    fn undo(&self, context: &ToolContext) -> bool {
        let real = &self.resolved.real;
        let done = match &self.old.bytes {
            Some(old) if matches!(context.client_writes(&self.resolved, old), Ok(true)) => true,
            Some(bytes) => workspace::commit(&[FileChange::Put { real, bytes, like: None }]).is_ok(),
            None => workspace::commit(&[FileChange::Remove { real }]).is_ok(),
        };
        context.files.note(real, self.old.client_copy.unsaved());
        done
    }

    /// Returns the change in the form shown to users.
    fn content(&self) -> ToolContent {
        shown(&self.resolved.path, &self.shown, self.old.bytes.as_deref(), self.new.as_deref())
    }

    /// Returns the unified diff of the change.
    pub(crate) fn diff(&self) -> Diff {
        let old_name = self.from.as_ref().map_or(&self.shown, |(_, shown)| shown);
        let old = self.old.bytes.as_deref().map(|bytes| Side { name: old_name, bytes });
        patch::unified_diff(old, self.new.as_deref().map(|bytes| Side { name: &self.shown, bytes }))
    }

    /// Returns the path before the change, the path after it, and the shown path.
    fn paths(&self) -> (&Path, &Path, &str) {
        let before = self.from.as_ref().map_or(&self.resolved, |(from, _)| from);
        (&before.real, &self.resolved.real, &self.shown)
    }

    fn location(&self) -> Location {
        Location { path: self.resolved.path.clone(), line: self.line.and_then(|line| u32::try_from(line).ok()) }
    }
}
