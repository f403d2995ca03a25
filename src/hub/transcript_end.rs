//! The end of a transcript of Claude Code: a file of JSON lines that the agent appends to.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde_json::Value;

/// Maximum number of bytes that are read from the end of a transcript.
const TRANSCRIPT_BYTES_MAX: u64 = 64 << 10;

/// The start of the user message that Claude Code appends when the user interrupts it.
const INTERRUPTED: &str = "[Request interrupted by user";

/// A position in a transcript.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TranscriptEnd {
    path: PathBuf,
    /// The position after the last line that was read.
    position: u64,
}

impl TranscriptEnd {
    /// Creates a position at the current end of the transcript, or at 0 if the file does not exist
    /// yet. Returns `None` if the path is not the absolute path of a readable regular file.
    pub(super) fn new(path: &Path) -> Option<TranscriptEnd> {
        let exists = std::fs::symlink_metadata(path).is_ok();
        if !path.is_absolute() {
            return None;
        }
        let position = match open(path) {
            Some((_, length)) => length,
            None if exists => return None,
            None => 0,
        };
        Some(TranscriptEnd { path: path.into(), position })
    }

    /// Reads the lines that were appended, at most the last [`TRANSCRIPT_BYTES_MAX`] bytes.
    /// Returns whether the last turn in them was interrupted by the user.
    pub(super) fn read(&mut self) -> bool {
        let Some((mut file, length)) = open(&self.path) else { return false };
        if length <= self.position {
            // Continue at the new end of a truncated file.
            self.position = length;
            return false;
        }
        let start = self.position.max(length.saturating_sub(TRANSCRIPT_BYTES_MAX));
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(start)).and_then(|_| (&mut file).take(length - start).read_to_end(&mut bytes));
        if read.is_err() {
            return false;
        }
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        // A line that is longer than the limit is skipped.
        let is_full = bytes.len() as u64 == TRANSCRIPT_BYTES_MAX;
        self.position = if complete == 0 && is_full { length } else { start + complete as u64 };
        let lines = bytes[..complete].split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok()).any(|line| is_interrupt(&line))
    }
}

/// Opens a regular file and returns its length.
fn open(path: &Path) -> Option<(File, u64)> {
    // Opening a device may have an effect.
    std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    // The file may have been replaced: do not wait for the writer of a pipe, follow no link.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((file, metadata.len()))
}

/// Returns whether a line is the user message of an interrupt. Text in a tool result does not
/// count.
fn is_interrupt(line: &Value) -> bool {
    if line["type"] != "user" {
        return false;
    }
    let is_text = |text: &Value| text.as_str().is_some_and(|text| text.starts_with(INTERRUPTED));
    match &line["message"]["content"] {
        Value::Array(parts) => parts.iter().any(|part| part["type"] == "text" && is_text(&part["text"])),
        content => is_text(content),
    }
}
