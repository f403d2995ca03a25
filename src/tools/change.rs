//! A file before and after a change: reading the one, writing the other, and showing both. What `write` and `edit` share.

use std::fs::File;
use std::io::{self, Read};

use super::{ToolContext, ToolError};
use crate::content::{Location, ToolContent};
use crate::limits;
use crate::patch;
use crate::workspace::{self, Placed};

pub struct Change {
    pub placed: Placed,
    /// How people know the file.
    pub shown: String,
    pub old: Current,
    pub new: Vec<u8>,
}

/// The content of a file, before it is changed.
#[derive(Clone, Default)]
pub struct Current {
    /// None: there is no such file.
    pub bytes: Option<Vec<u8>>,
    /// The client has this content, and the disk another one.
    unsaved: Option<String>,
}

/// The content of the file as the client has it, else as the disk has it. At most `limits::EDIT_BYTES_MAX`.
pub fn current(placed: &Placed, context: &ToolContext) -> Result<Current, ToolError> {
    let bytes = on_disk(placed, context)?;
    let unsaved = context.unsaved(placed, bytes.as_deref());
    Ok(Current { bytes: unsaved.clone().map(String::into_bytes).or(bytes), unsaved })
}

impl Current {
    /// An error when the file changed since the session last saw it.
    pub fn check(&self, placed: &Placed, shown: &str, context: &ToolContext) -> Result<(), ToolError> {
        context.files.check(&placed.real, shown, self.unsaved.as_deref())
    }
}

fn on_disk(placed: &Placed, context: &ToolContext) -> Result<Option<Vec<u8>>, ToolError> {
    let read = |file: File| {
        let mut bytes = Vec::new();
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

impl Change {
    /// Makes it so, unless the file changed since the session saw it. To be called with the file's lock held.
    pub fn apply(&self, context: &ToolContext) -> Result<(), ToolError> {
        let real = &self.placed.real;
        self.old.check(&self.placed, &self.shown, context)?;
        if context.client_takes(&self.placed, self.old.bytes.as_deref(), &self.new) {
            let disk = on_disk(&self.placed, context)?;
            let unsaved = context.unsaved(&self.placed, disk.as_deref());
            // It may have formatted what it was given; but if all is as it was, it has not taken it.
            if unsaved != self.old.unsaved || (unsaved.is_none() && disk != self.old.bytes) {
                context.files.note(real, unsaved.as_deref());
                return Ok(());
            }
            context.client_lost(&self.placed);
        }
        workspace::write_atomic(real, &self.new).map_err(|error| context.failed("writing", &self.placed.path, error))?;
        context.files.note(real, None);
        Ok(())
    }

    /// Both sides for people; what is too long, or no text, is only said.
    pub fn content(&self) -> ToolContent {
        let text =
            |bytes: &[u8]| (bytes.len() <= limits::DIFF_TEXT_BYTES_MAX).then(|| String::from_utf8(bytes.to_vec()).ok()).flatten();
        let old_text = self.old.bytes.as_deref().map(text);
        match (old_text, text(&self.new)) {
            (None, Some(new_text)) => ToolContent::Diff { path: self.placed.path.clone(), old_text: None, new_text },
            (Some(Some(old)), Some(new_text)) => {
                ToolContent::Diff { path: self.placed.path.clone(), old_text: Some(old), new_text }
            }
            _ => ToolContent::text(format!("{}: {} bytes, too long or no text to be shown", self.shown, self.new.len())),
        }
    }

    /// As a unified diff, with the lines it removes or adds, whichever are more. Too long a diff is cut.
    pub fn diff(&self) -> (String, usize) {
        let old = String::from_utf8_lossy(self.old.bytes.as_deref().unwrap_or_default());
        let mut diff = patch::unified(&self.shown, &old, &String::from_utf8_lossy(&self.new));
        let count = |sign: char| diff.lines().skip(2).filter(|line| line.starts_with(sign)).count();
        let lines = count('+').max(count('-'));
        if diff.len() > limits::DIFF_TEXT_BYTES_MAX {
            diff.truncate(diff.floor_char_boundary(limits::DIFF_TEXT_BYTES_MAX));
            diff.push_str("\n[the diff goes on]\n");
        }
        (diff, lines)
    }

    pub fn location(&self, line: Option<usize>) -> Location {
        Location { path: self.placed.path.clone(), line: line.and_then(|line| u32::try_from(line).ok()) }
    }
}
