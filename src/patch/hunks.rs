//! Divides the change of a text into hunks, each of which can be applied on its own.

use std::ops::Range;

use similar::group_diff_ops;

use super::diff::CONTEXT_LINES;
use super::line_diff::compare;

/// A hunk: the lines that it replaces, and the lines in their place, both with the unchanged lines
/// around the change. Ranges count lines from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffHunk {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// The lines that a hunk contributes to the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HunkChoice {
    Old,
    New,
    Text(String),
}

/// Computes the hunks of the change from `old` to `new`, in order. Hunks do not overlap.
pub(crate) fn hunks(old: &[u8], new: &[u8]) -> Vec<DiffHunk> {
    let hunk = |group: &Vec<similar::DiffOp>| {
        let (first, last) = (group.first()?, group.last()?);
        Some(DiffHunk { old: first.old_range().start..last.old_range().end, new: first.new_range().start..last.new_range().end })
    };
    group_diff_ops(compare(&lines(old), &lines(new)), CONTEXT_LINES).iter().filter_map(hunk).collect()
}

/// Returns `new` with the chosen lines for each of `hunks`, which are those of [`hunks`].
pub(crate) fn merge(old: &[u8], new: &[u8], hunks: &[DiffHunk], choices: &[HunkChoice]) -> Vec<u8> {
    let (old, new) = (lines(old), lines(new));
    let (mut merged, mut at) = (Vec::new(), 0);
    for (hunk, choice) in hunks.iter().zip(choices) {
        merged.extend(new[at..hunk.new.start].concat());
        match choice {
            HunkChoice::Old => merged.extend(old[hunk.old.clone()].concat()),
            HunkChoice::New => merged.extend(new[hunk.new.clone()].concat()),
            HunkChoice::Text(text) => {
                merged.extend(text.as_bytes());
                // The next line must not continue the user's last line.
                if !text.is_empty() && !text.ends_with('\n') && hunk.new.end < new.len() {
                    merged.push(b'\n');
                }
            }
        }
        at = hunk.new.end;
    }
    merged.extend(new[at..].concat());
    merged
}

/// Returns the lines of a range, as text.
pub(crate) fn line_text(bytes: &[u8], range: &Range<usize>) -> String {
    String::from_utf8_lossy(&lines(bytes)[range.clone()].concat()).into_owned()
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}
