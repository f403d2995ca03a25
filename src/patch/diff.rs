//! Writes unified diffs in the format of `diff -u`, with git's header lines for renamed files.

use std::fmt::Write;
use std::ops::Range;

use similar::{DiffTag, group_diff_ops};

use super::line_diff::compare;
use crate::limits;

/// A file before or after a change.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// Path as shown in the header.
    pub name: &'a str,
    /// The content.
    pub bytes: &'a [u8],
}

impl<'a> Side<'a> {
    /// Creates a side with a text as its content.
    pub fn text(name: &'a str, text: &'a str) -> Side<'a> {
        Side { name, bytes: text.as_bytes() }
    }
}

/// Number of unchanged lines shown before and after each change.
pub(super) const CONTEXT_LINES: usize = 3;

/// A unified diff.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Empty if neither the name nor the content changes. Text beyond `limits::DIFF_TEXT_BYTES_MAX`
    /// is replaced by a note.
    pub text: String,
    /// Number of removed lines.
    pub removed: usize,
    /// Number of added lines.
    pub added: usize,
}

/// Computes the unified diff from `old` (`None` for a new file) to `new` (`None` for a deleted
/// file). After `limits::DIFF_TIME`, the rest of the content is compared coarsely. Invalid UTF-8 is
/// shown as U+FFFD.
pub fn unified_diff(old: Option<Side<'_>>, new: Option<Side<'_>>) -> Diff {
    let mut diff = Diff::default();
    let side =
        |side: Option<Side<'_>>, prefix| side.map_or_else(|| "/dev/null".to_owned(), |side| format!("{prefix}/{}", side.name));
    let (before, after) = (side(old, 'a'), side(new, 'b'));
    if let (Some(old), Some(new)) = (old, new)
        && old.name != new.name
    {
        diff.text = format!("diff --git {before} {after}\nrename from {}\nrename to {}\n", old.name, new.name);
    }
    let (old, new) = (old.map_or(&[][..], |side| side.bytes), new.map_or(&[][..], |side| side.bytes));
    if old != new {
        let _ = write!(diff.text, "--- {before}\n+++ {after}\n");
        diff.hunks(old, new);
    }
    if diff.text.len() > limits::DIFF_TEXT_BYTES_MAX {
        diff.text.truncate(diff.text.floor_char_boundary(limits::DIFF_TEXT_BYTES_MAX));
        diff.text.push_str("\n[diff truncated]\n");
    }
    diff
}

impl Diff {
    fn hunks(&mut self, old: &[u8], new: &[u8]) {
        let (start, lines_before) = common_start(old, new);
        let (old, new) = (&old[start..], &new[start..]);
        let end = common_end(old, new);
        let old: Vec<&[u8]> = old[..old.len() - end].split_inclusive(|byte| *byte == b'\n').collect();
        let new: Vec<&[u8]> = new[..new.len() - end].split_inclusive(|byte| *byte == b'\n').collect();
        for group in group_diff_ops(compare(&old, &new), CONTEXT_LINES) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let before = header_range(first.old_range().start..last.old_range().end, lines_before);
            let after = header_range(first.new_range().start..last.new_range().end, lines_before);
            self.line(format_args!("@@ -{before} +{after} @@\n"));
            for operation in group {
                let (tag, before, after) = operation.as_tag_tuple();
                if tag == DiffTag::Equal {
                    self.lines(' ', &old[before]);
                } else {
                    self.removed += before.len();
                    self.added += after.len();
                    self.lines('-', &old[before]);
                    self.lines('+', &new[after]);
                }
            }
        }
    }

    fn lines(&mut self, sign: char, lines: &[&[u8]]) {
        for line in lines {
            let missing = if line.ends_with(b"\n") { "" } else { "\n\\ No newline at end of file\n" };
            self.line(format_args!("{sign}{}{missing}", String::from_utf8_lossy(line)));
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        if self.text.len() <= limits::DIFF_TEXT_BYTES_MAX {
            let _ = self.text.write_fmt(line);
        }
    }
}

/// Formats a line range for a hunk header. An empty range is given by the number of the line before
/// it.
fn header_range(range: Range<usize>, lines_before: usize) -> String {
    let start = range.start + lines_before;
    match range.len() {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    }
}

/// Returns the byte offset of the first line that the diff needs (a few lines before the first
/// difference), and the number of lines before this offset.
fn common_start(old: &[u8], new: &[u8]) -> (usize, usize) {
    let blocks = old.chunks_exact(BLOCK_BYTES).zip(new.chunks_exact(BLOCK_BYTES));
    let mut same = blocks.take_while(|(old, new)| old == new).count() * BLOCK_BYTES;
    same += old[same..].iter().zip(&new[same..]).take_while(|(old, new)| old == new).count();
    let mut line_starts = memchr::memrchr_iter(b'\n', &old[..same]).map(|place| place + 1);
    let start = line_starts.nth(CONTEXT_LINES).unwrap_or(0);
    (start, memchr::memchr_iter(b'\n', &old[..start]).count())
}

/// Returns the number of equal bytes at the end of both contents that the diff does not need.
fn common_end(old: &[u8], new: &[u8]) -> usize {
    let blocks = old.rchunks_exact(BLOCK_BYTES).zip(new.rchunks_exact(BLOCK_BYTES));
    let mut same = blocks.take_while(|(old, new)| old == new).count() * BLOCK_BYTES;
    let (old_rest, new_rest) = (&old[..old.len() - same], &new[..new.len() - same]);
    same += old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let end = &old[old.len() - same..];
    let mut line_starts = memchr::memchr_iter(b'\n', end).map(|place| place + 1);
    line_starts.nth(CONTEXT_LINES).map_or(0, |start| end.len() - start)
}

/// Number of bytes compared at once when measuring the common start and the common end.
const BLOCK_BYTES: usize = 4 << 10;
