//! Changing files: the one place where `write`, `edit` and `apply_patch` read what is there, write what is to be, and show both.

use std::fs::File;
use std::io::{self, Read};

use serde_json::Value;

use super::client::{Held, is_kept, spelled_like, survives_an_editor};
use super::files_seen::Seen;
use super::text::Encoding;
use super::{Output, ToolContext, ToolError};
use crate::content::{Location, ToolContent};
use crate::limits;
use crate::patch::{self, Diff, Side};
use crate::workspace::{self, FileChange, NotChanged, Placed};

/// A file before and after.
pub struct Change {
    /// Where it is, or will be when it is moved.
    pub placed: Placed,
    /// How people know it.
    pub shown: String,
    pub old: Current,
    /// None: it is deleted.
    pub new: Option<Vec<u8>>,
    /// It is moved: where `old` is, and how people know that. What is at `placed` is overwritten.
    pub from: Option<(Placed, String)>,
    /// The first line that changes, from 1.
    pub line: Option<usize>,
}

/// The content of a file, before it is changed.
#[derive(Default)]
pub struct Current {
    /// None: there is no such file.
    pub bytes: Option<Vec<u8>>,
    held: Held,
    /// An editor keeps what the disk has.
    plain: bool,
    /// As which state of the file it was read.
    seen: Seen,
}

/// What a call comes to, worked out before anything is written.
pub struct Plan {
    /// Each of other files.
    pub changes: Vec<Change>,
    /// What the model is told when it is done, and the tool's details.
    pub text: String,
    pub details: Value,
}

/// What people are shown before they decide: what would change. An error says why nothing can.
pub async fn preview(
    context: &ToolContext,
    plan: impl FnOnce(&ToolContext) -> Result<Plan, ToolError> + Send + 'static,
) -> Result<Vec<ToolContent>, ToolError> {
    let inner = context.clone();
    let plan = context.look(move || plan(&inner)).await?;
    Ok(plan.changes.iter().map(Change::content).collect())
}

/// Plans and does it, while nobody else writes `paths`: everything, or nothing when it fails.
pub async fn run(
    context: &ToolContext,
    paths: impl IntoIterator<Item = &str>,
    plan: impl FnOnce(&ToolContext) -> Result<Plan, ToolError> + Send + 'static,
) -> Result<Output, ToolError> {
    let mut files: Vec<_> = paths.into_iter().map(|path| context.workspace.resolve(path).real).collect();
    // In one order for all, so that no two wait for each other.
    files.sort();
    files.dedup();
    let mut locks = Vec::new();
    for file in &files {
        locks.push(context.files.lock(file).await);
    }
    let inner = context.clone();
    context
        .change(move || {
            let _locks = locks;
            let Plan { changes, text, details } = plan(&inner)?;
            commit(&changes, &inner)?;
            let (content, locations) = (changes.iter().map(Change::content), changes.iter().map(Change::location));
            Ok(Output { content: content.collect(), locations: locations.collect(), ..Output::text(text, details) })
        })
        .await
}

/// The content of a file that is to be created or replaced, as the client has it, else as the disk
/// has it: at most `limits::EDIT_BYTES_MAX`. A client is asked for a file that is not on the disk only
/// if the session has seen its text there: clients show each failed read to the user.
pub fn current(placed: &Placed, context: &ToolContext) -> Result<Current, ToolError> {
    load(placed, context, context.files.is_unsaved(&placed.real))
}

/// `ask_if_missing`: whether the client is asked for a file that is not on the disk.
fn load(placed: &Placed, context: &ToolContext, ask_if_missing: bool) -> Result<Current, ToolError> {
    // First the state: what changes after it is found to have changed.
    let before = Seen::of(&placed.real, None);
    let disk = on_disk(placed, context)?;
    let held = match &disk {
        None if !ask_if_missing => Held::Same,
        disk => context.held(placed, disk.as_deref())?,
    };
    let plain = disk.as_deref().is_none_or(survives_an_editor);
    let seen = Seen { unsaved: Seen::of(&placed.real, held.unsaved()).unsaved, ..before };
    let bytes = match (held.unsaved(), disk) {
        (None, disk) => disk,
        (Some(_), Some(_)) if !plain => {
            let shown = context.workspace.show(&placed.path);
            return Err(ToolError(format!(
                "{shown} is changed and not saved in the editor, which would not keep its line endings or its byte order mark; \
                 have it saved first"
            )));
        }
        (Some(text), Some(disk)) => Some(spelled_like(text, &disk)),
        (Some(text), None) => Some(text.as_bytes().to_vec()),
    };
    Ok(Current { bytes, held, plain, seen })
}

fn on_disk(placed: &Placed, context: &ToolContext) -> Result<Option<Vec<u8>>, ToolError> {
    let read = |file: File| {
        let mut bytes = Vec::with_capacity(file.metadata()?.len().min(limits::EDIT_BYTES_MAX) as usize + 1);
        file.take(limits::EDIT_BYTES_MAX + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    match workspace::open(&placed.real).and_then(read) {
        Ok(bytes) if bytes.len() as u64 > limits::EDIT_BYTES_MAX => {
            let (shown, most) = (context.workspace.show(&placed.path), limits::EDIT_BYTES_MAX >> 20);
            Err(ToolError(format!("{shown} has more than {most} MiB; use bash to change it")))
        }
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(context.failed("reading", &placed.path, error)),
    }
}

/// The content of a file that is changed in part, as the client has it, else as the disk has it. The
/// file must not be UTF-16, and not have changed since the session saw it.
pub fn current_text(placed: &Placed, context: &ToolContext) -> Result<Current, ToolError> {
    let shown = context.workspace.show(&placed.path);
    let content = load(placed, context, true)?;
    content.check(placed, &shown, context)?;
    match content.bytes.as_deref().map(Encoding::of) {
        Some(Encoding::Utf16Little | Encoding::Utf16Big) => Err(ToolError(format!("{shown} is UTF-16; use bash to change it"))),
        Some(Encoding::Utf8 | Encoding::Utf8Marked) | None => Ok(content),
    }
}

/// Makes all `changes` or none: not when a file changed since the session saw it, nor when one cannot be written.
fn commit(changes: &[Change], context: &ToolContext) -> Result<(), ToolError> {
    for change in changes {
        let (placed, shown) = change.from.as_ref().map_or((&change.placed, &change.shown), |(from, shown)| (from, shown));
        change.old.check(placed, shown, context)?;
        change.old.is_still_so(placed, shown)?;
        if change.from.is_some() {
            context.files.check(&change.placed.real, &change.shown, Seen::of(&change.placed.real, None))?;
        }
        if context.client_may_write(&change.placed) {
            return Err(ToolError(format!(
                "the editor was told to write {} and has not answered: it might undo this; try again in a minute",
                change.shown
            )));
        }
    }
    let (mut taken, mut own) = (Vec::new(), Vec::new());
    let done = changes.iter().try_for_each(|change| {
        if change.is_taken(context)? {
            taken.push(change)
        } else {
            own.push(change)
        };
        Ok(())
    });
    if let Err(mut error) = done.and_then(|()| commit_own(&own, context)) {
        for change in taken.iter().filter(|change| !change.is_given_back(context)) {
            error.0.push_str(&format!("; {} could not be put back", change.shown));
        }
        return Err(error);
    }
    own.iter().for_each(|change| context.files.note(&change.placed.real, None));
    Ok(())
}

/// The same for those that the client has not taken.
fn commit_own(changes: &[&Change], context: &ToolContext) -> Result<(), ToolError> {
    let mut files = Vec::new();
    for change in changes {
        let real = &change.placed.real;
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

fn not_changed(failed: NotChanged, context: &ToolContext) -> ToolError {
    let all = if failed.left.is_empty() { "; nothing was changed" } else { "" };
    let mut error = context.failed("writing", &failed.real, format!("{}{all}", failed.error));
    for (file, former) in failed.left {
        let (file, former) = (context.workspace.show(&file), context.workspace.show(&former));
        error.0.push_str(&format!("; {file} could not be put back: what it was is in {former}"));
    }
    error
}

impl Current {
    /// An error when the file changed since the session last saw it.
    fn check(&self, placed: &Placed, shown: &str, context: &ToolContext) -> Result<(), ToolError> {
        context.files.check(&placed.real, shown, self.seen)
    }

    /// An error when somebody else changed the file since it was read for this change.
    fn is_still_so(&self, placed: &Placed, shown: &str) -> Result<(), ToolError> {
        if self.seen.disk == Seen::of(&placed.real, None).disk {
            return Ok(());
        }
        Err(ToolError(format!("stale: {shown} was changed by somebody else meanwhile; read it again")))
    }
}

impl Change {
    /// Of a file that stays where it is.
    pub fn new(placed: Placed, context: &ToolContext, old: Current, new: Option<Vec<u8>>) -> Change {
        Change { shown: context.workspace.show(&placed.path), placed, old, new, from: None, line: None }
    }

    /// Whether the client has made the change. A client that does not return what it was given, or
    /// returns something else than it saved, is distrusted; then the disk is written here.
    fn is_taken(&self, context: &ToolContext) -> Result<bool, ToolError> {
        let (Some(new), None) = (&self.new, &self.from) else { return Ok(false) };
        // A client that cannot be read may have unsaved changes.
        if self.old.held == Held::Unknown || !self.old.plain {
            return Ok(false);
        }
        let taken = context.client_takes(&self.placed, new)?;
        let disk = on_disk(&self.placed, context).unwrap_or_default();
        if !taken {
            let written = context.client_wrote_silently(&self.placed, new, disk.as_deref());
            if written {
                context.files.note(&self.placed.real, None);
            }
            return Ok(written);
        }
        let held = context.held(&self.placed, disk.as_deref()).unwrap_or_default();
        let found = held.unsaved().map(|text| spelled_like(text, new)).or(disk);
        let changed = found != self.old.bytes;
        let kept = found.is_some_and(|found| found == *new || (changed && is_kept(new, &found)));
        if kept {
            context.files.note(&self.placed.real, held.unsaved());
        } else {
            context.distrust_client(&self.placed);
        }
        Ok(kept)
    }

    /// Undoes what the client has made: the rest could not be made.
    fn is_given_back(&self, context: &ToolContext) -> bool {
        let real = &self.placed.real;
        let done = match &self.old.bytes {
            Some(old) if matches!(context.client_takes(&self.placed, old), Ok(true)) => true,
            Some(bytes) => workspace::commit(&[FileChange::Put { real, bytes, like: None }]).is_ok(),
            None => workspace::commit(&[FileChange::Remove { real }]).is_ok(),
        };
        context.files.note(real, self.old.held.unsaved());
        done
    }

    /// Both sides for people; what is too long, or no text, is only said.
    fn content(&self) -> ToolContent {
        let text = |bytes: &[u8]| {
            let short = bytes.len() <= limits::DIFF_TEXT_BYTES_MAX;
            short.then(|| std::str::from_utf8(bytes).ok().map(str::to_owned)).flatten()
        };
        let (old, new) = (self.old.bytes.as_deref().map(text), self.new.as_deref().map_or(Some(String::new()), text));
        let path = self.placed.path.clone();
        match (old, new) {
            (None, Some(new_text)) => ToolContent::Diff { path, old_text: None, new_text },
            (Some(Some(old)), Some(new_text)) => ToolContent::Diff { path, old_text: Some(old), new_text },
            _ => {
                let bytes = self.new.as_ref().or(self.old.bytes.as_ref()).map_or(0, Vec::len);
                ToolContent::text(format!("{}: {bytes} bytes, too long or no text to be shown", self.shown))
            }
        }
    }

    pub fn diff(&self) -> Diff {
        let old_name = self.from.as_ref().map_or(&self.shown, |(_, shown)| shown);
        let old = self.old.bytes.as_deref().map(|bytes| Side { name: old_name, bytes });
        patch::unified_diff(old, self.new.as_deref().map(|bytes| Side { name: &self.shown, bytes }))
    }

    fn location(&self) -> Location {
        Location { path: self.placed.path.clone(), line: self.line.and_then(|line| u32::try_from(line).ok()) }
    }
}
