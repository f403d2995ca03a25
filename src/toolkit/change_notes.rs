//! Notes for the model about files whose written content differs from what its call proposed. Pure.

use crate::patch::{self, Side};

/// Maximum size of the differences that the model receives, in bytes.
const DIFFERENCES_BYTES_MAX: usize = 4 << 10;

/// The name of a file, with its content before and after a change.
pub(super) type ChangedFile<'a> = (&'a str, Option<&'a [u8]>, Option<&'a [u8]>);

/// Shows the differences between two contents of files, after a sentence that says what they are.
pub(super) fn differences<'a>(what: &str, files: impl Iterator<Item = (&'a str, Option<&'a [u8]>, Option<&'a [u8]>)>) -> String {
    let mut text = format!("\n[{what}:\n");
    for (name, before, after) in files {
        let side = |bytes| Side { name, bytes };
        text += &patch::unified_diff(before.map(side), after.map(side)).text;
    }
    if text.len() > DIFFERENCES_BYTES_MAX {
        text.truncate(text.floor_char_boundary(DIFFERENCES_BYTES_MAX));
        text += "\n[diff truncated]\n";
    }
    text + "]"
}

/// Describes how editors changed files as they saved them, for example by a formatter. The content
/// before is the one that was to be written. Returns an empty text if no editor changed a file.
pub(super) fn saved_by_editors<'a>(files: impl Iterator<Item = ChangedFile<'a>>) -> String {
    let plain = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n").into_bytes();
    let (mut text, mut changed) = (String::new(), Vec::new());
    for (name, before, after) in files {
        let (Some(before), Some(after)) = (before, after) else { continue };
        let ends = if after.contains(&b'\r') { "CRLF" } else { "LF" };
        match (plain(before), plain(after)) {
            _ if before == after => {}
            (before, after) if before == after => text += &format!("\n[the editor saved {name} with {ends} line endings]"),
            (before, after) => changed.push((name, before, after)),
        }
    }
    if !changed.is_empty() {
        let files = changed.iter().map(|(name, before, after)| (*name, Some(&before[..]), Some(&after[..])));
        text += &differences("the editor changed this as it saved it; the differences to what was written", files);
    }
    text
}
