//! Multi-file patches in the two formats that models write: `*** Begin Patch` and unified diffs.
//! [`parse`] reads a patch, [`apply`] computes the new content of one file.

mod envelope;
mod hunk;
mod hunk_builder;
mod placement;
mod unified;

pub use hunk::Operation;
pub(crate) use hunk::{FilePatch, Hunk};
pub(crate) use placement::PatchOutcome;
pub use placement::apply;

/// Parses a patch. Text around the patch (a heredoc, a code fence, an email header) is ignored. The
/// error message contains the line number in the patch, from 1, and the reason.
pub fn parse(patch: &str) -> Result<Vec<FilePatch>, String> {
    let patch = patch.strip_prefix('\u{feff}').unwrap_or(patch);
    let mut lines: Vec<&str> = patch.strip_suffix('\n').unwrap_or(patch).split('\n').collect();
    let begins = |line: &&str| envelope::is_begin(line) || unified::is_head(line);
    let Some(first) = lines.iter().position(begins) else {
        return Err("nothing to apply: there is neither `*** Begin Patch` nor the `--- ` and `+++ ` lines of a unified diff".into());
    };
    if lines[first].ends_with('\r') {
        // Here the whole patch has CRLF line endings. In any other patch, a `\r` before a line feed
        // belongs to the text of the line.
        lines.iter_mut().for_each(|line| *line = line.strip_suffix('\r').unwrap_or(line));
    }
    let files = if envelope::is_begin(lines[first]) { envelope::parse(&lines, first)? } else { unified::parse(&lines, first)? };
    if files.is_empty() { Err("the patch is empty: it names no file".into()) } else { Ok(files) }
}
