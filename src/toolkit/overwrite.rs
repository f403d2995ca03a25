//! Protects the files that a model does not know from being replaced or deleted by its tools.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::change::FileSnapshot;
use super::context::ToolContext;
use super::files_seen::KnownContent;
use super::output::ToolError;
use super::text::Encoding;
use crate::patch::pasted_numbers::without_numbers;
use crate::workspace::ResolvedPath;

/// Maximum number of lines, and of bytes, of a file that the refusal to replace it shows.
const SHOWN_LINES_MAX: usize = 200;
const SHOWN_BYTES_MAX: usize = 16 << 10;

/// Fails if a call of a model would replace or delete a file that its session was not shown whole
/// and did not write. The error shows a small file, and the next call may replace it.
pub(crate) fn check(resolved: &ResolvedPath, old: &FileSnapshot, context: &ToolContext) -> Result<(), ToolError> {
    let Some(known_files) = &context.known_files else { return Ok(()) };
    let Some(bytes) = old.bytes.as_deref().filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
    let shown = context.workspace.show(&resolved.path);
    let known = known_files(&resolved.path).or_else(|| known_files(&resolved.real));
    if known.is_some() {
        old.check(resolved, &shown, context)?;
    }
    // The content that the session saw last was compared above. Otherwise, the time of the file
    // tells whether it changed; text that only an editor has is not on the disk.
    let is_unchanged = |known: KnownContent| {
        (known.is_last_seen && context.files.has_seen(&resolved.real))
            || modified_ms(&resolved.real).is_none_or(|modified| modified <= known.at_ms)
    };
    if known.is_some_and(is_unchanged) || context.files.is_refused(&resolved.real, bytes) {
        return Ok(());
    }
    let why = format!("{shown} exists, and this session has not read all of it, so it is not replaced or deleted");
    let text = std::str::from_utf8(bytes).ok().filter(|text| Encoding::detect(text.as_bytes()) == Encoding::Utf8);
    let Some(text) = text.filter(|text| !text.contains('\0')) else {
        return Err(ToolError(format!("{why}; it is not text: use bash if it is to go")));
    };
    let count = text.lines().count();
    if count > SHOWN_LINES_MAX || text.len() > SHOWN_BYTES_MAX || !context.may_read {
        return Err(ToolError(format!("{why}; it has {count} lines: change a part of it with edit, or read all of it first")));
    }
    context.files.set_refused(&resolved.real, bytes);
    let lines: String = text.lines().enumerate().map(|(index, line)| format!("{:>6}\t{line}\n", index + 1)).collect();
    Err(ToolError(format!("{why}. This is the file; change a part of it with edit, or call again to replace all of it:\n{lines}")))
}

/// Fails once if all lines of a text for a whole file have the line numbers of `read`, which are
/// not text of a file. The same text is accepted if it is sent again.
pub(crate) fn check_numbers(resolved: &ResolvedPath, text: &str, context: &ToolContext) -> Result<(), ToolError> {
    // Without the right to read the file, a preview shows the error, and the call follows it.
    let is_checked = context.known_files.is_some() && context.may_read;
    if !is_checked || without_numbers(text).is_none() || context.files.is_refused(&resolved.real, text.as_bytes()) {
        return Ok(());
    }
    context.files.set_refused(&resolved.real, text.as_bytes());
    Err(ToolError::new(
        "each line begins with a line number and a tab, as read shows them: leave them out, or send the same text again if the file has them",
    ))
}

fn modified_ms(real: &Path) -> Option<u64> {
    let metadata = real.metadata().ok()?;
    u64::try_from(metadata.mtime() * 1_000 + metadata.mtime_nsec() / 1_000_000).ok()
}
