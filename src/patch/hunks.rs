//! Divides the change of a text into hunks, each of which can be applied on its own.

use std::ops::Range;

use similar::{DiffTag, group_diff_ops};

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
        append(&mut merged, &new[at..hunk.new.start].concat());
        match choice {
            HunkChoice::Old => append(&mut merged, &old[hunk.old.clone()].concat()),
            HunkChoice::New => append(&mut merged, &new[hunk.new.clone()].concat()),
            HunkChoice::Text(text) => append(&mut merged, text.as_bytes()),
        }
        at = hunk.new.end;
    }
    append(&mut merged, &new[at..].concat());
    merged
}

/// Returns `base` with the changes of two other texts of it. Returns `None` if both change the same
/// lines in different ways.
pub(crate) fn merge_texts(base: &[u8], one: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let base = lines(base);
    let changes_to = |text: &[u8]| -> Vec<(Range<usize>, Vec<u8>)> {
        let text = lines(text);
        let changes = compare(&base, &text).into_iter().filter(|change| change.tag() != DiffTag::Equal);
        changes.map(|change| (change.old_range(), text[change.new_range()].concat())).collect()
    };
    let mut changes = [changes_to(one), changes_to(other)].concat();
    changes.sort_by_key(|(replaced, _)| (replaced.start, replaced.end));
    changes.dedup();
    let touch = |one: &Range<usize>, next: &Range<usize>| next.start < one.end || one == next;
    if changes.windows(2).any(|pair| touch(&pair[0].0, &pair[1].0)) {
        return None;
    }
    let (mut merged, mut at) = (Vec::new(), 0);
    for (replaced, text) in changes {
        append(&mut merged, &base[at..replaced.start].concat());
        append(&mut merged, &text);
        at = replaced.end;
    }
    append(&mut merged, &base[at..].concat());
    Some(merged)
}

/// Appends whole lines. They do not continue a last line without line end.
fn append(text: &mut Vec<u8>, lines: &[u8]) {
    if !lines.is_empty() && text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text.extend(lines);
}

pub(crate) fn line_text(bytes: &[u8], range: &Range<usize>) -> String {
    String::from_utf8_lossy(&lines(bytes)[range.clone()].concat()).into_owned()
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}
