//! Blocks of which both ends are those looked for, and what is between is alike: where they are, and which of their lines are which.

use std::ops::Range;
use std::time::Instant;

use rapidfuzz::distance::levenshtein::{self, Args, BatchComparator};
use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use super::lines::{Lines, trim, words};
use super::splice::LineChange;
use crate::limits;

/// How alike the middles of two blocks must be, or two lines of them, by normalized Levenshtein distance.
const ALIKE: f64 = 0.75;
/// Lines of a block: its anchors and something between.
const BLOCK_LINES_MIN: usize = 3;

/// Blocks whose first and last line are those of `wanted`, and whose middle is at least `ALIKE`. Of blocks that overlap the most
/// alike counts. Gives up, with nothing found, when there is more to compare than `limits::EDIT_COMPARE_STEPS_MAX`.
pub fn blocks(lines: &Lines<'_>, wanted: &[&[u8]]) -> Vec<Range<usize>> {
    let (Some(first), Some(last)) = (wanted.first().map(|line| trim(line)), wanted.last().map(|line| trim(line))) else {
        return Vec::new();
    };
    if wanted.len() < BLOCK_LINES_MIN || first.is_empty() || last.is_empty() {
        return Vec::new();
    }
    let middle = joined(wanted[1..wanted.len() - 1].iter().copied());
    // What is longer or shorter cannot be alike enough.
    let bytes = (middle.len() as f64 * ALIKE).ceil() as usize..=(middle.len() as f64 / ALIKE) as usize;
    let comparator = BatchComparator::new(middle.iter().copied());
    let at_least = Args::default().score_cutoff(ALIKE);
    let mut steps = limits::EDIT_COMPARE_STEPS_MAX;
    let mut found: Vec<(f64, Range<usize>)> = Vec::new();
    for start in (0..lines.count()).filter(|line| trim(lines.text(*line)) == first) {
        let mut length = 0;
        for end in start + 1..lines.count() {
            let text = trim(lines.text(end));
            if text == last && end > start + 1 && bytes.contains(&(length - 1)) {
                let other = joined(lines.texts(start + 1..end));
                steps = steps.saturating_sub(other.len() * middle.len().div_ceil(64));
                if let Some(score) = comparator.normalized_similarity_with_args(other.iter().copied(), &at_least) {
                    found.push((score, start..end + 1));
                }
            }
            steps = steps.saturating_sub(1);
            if steps == 0 {
                return Vec::new();
            }
            if found.len() == limits::EDIT_PLACES_MAX {
                return most_alike(found);
            }
            length += text.len() + 1;
            if length > bytes.end() + 1 {
                break;
            }
        }
    }
    most_alike(found)
}

fn joined<'l>(lines: impl Iterator<Item = &'l [u8]>) -> Vec<u8> {
    lines.map(trim).collect::<Vec<_>>().join(&b'\n')
}

/// Without those that overlap one that is more alike.
fn most_alike(mut found: Vec<(f64, Range<usize>)>) -> Vec<Range<usize>> {
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut kept: Vec<(f64, Range<usize>)> = Vec::new();
    for (score, place) in found {
        let hidden = |(better, other): &(f64, Range<usize>)| *better > score && other.start < place.end && place.start < other.end;
        if !kept.iter().any(hidden) {
            kept.push((score, place));
        }
    }
    kept.sort_by_key(|(_, place)| place.start);
    kept.into_iter().map(|(_, place)| place).collect()
}

/// For each line of `wanted` the index of the line of `block` that it is: the same but for blanks, or one that is alike enough and
/// stands next to such ones.
pub fn pairs(wanted: &[&[u8]], block: &[&[u8]]) -> Vec<Option<usize>> {
    let deadline = Instant::now() + limits::DIFF_TIME;
    let (before, after) = (keys(wanted), keys(block));
    let mut pairs = vec![None; wanted.len()];
    for operation in capture_diff_slices_deadline(Algorithm::Myers, &before, &after, Some(deadline)) {
        let (tag, mut before, mut after) = operation.as_tag_tuple();
        let same = |one: usize, other: usize| tag == DiffTag::Equal || alike(wanted[one], block[other]);
        while !before.is_empty() && !after.is_empty() && same(before.start, after.start) {
            pairs[before.start] = Some(after.start);
            (before.start, after.start) = (before.start + 1, after.start + 1);
        }
        while !before.is_empty() && !after.is_empty() && same(before.end - 1, after.end - 1) {
            (before.end, after.end) = (before.end - 1, after.end - 1);
            pairs[before.end] = Some(after.end);
        }
    }
    pairs
}

fn keys<'l>(lines: &[&'l [u8]]) -> Vec<Vec<&'l [u8]>> {
    lines.iter().map(|line| words(line).collect()).collect()
}

fn alike(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (trim(one).iter().copied(), trim(other).iter().copied());
    levenshtein::normalized_similarity_with_args(one, other, &Args::default().score_cutoff(ALIKE)).is_some()
}

/// From `wanted` to `new` where `block` is what `wanted` was found as. `add` makes a line of one of `new`, given the index of the
/// line of `wanted` in whose place or after which it comes.
///
/// Lines of the block that are none of `wanted` stay, unless all between its ends is replaced. The error is the index of a line of
/// `wanted` and that of the line of the block in its place, when they are different ones and the change touches them.
pub fn merged(
    wanted: &[&[u8]],
    new: &[&[u8]],
    block: &[&[u8]],
    add: impl Fn(&[u8], usize) -> LineChange,
) -> Result<Vec<LineChange>, (usize, usize)> {
    let pairs = pairs(wanted, block);
    let operations = capture_diff_slices_deadline(Algorithm::Myers, wanted, new, Some(Instant::now() + limits::DIFF_TIME));
    let mut removed = vec![true; wanted.len()];
    for operation in operations.iter().filter(|operation| operation.tag() == DiffTag::Equal) {
        removed[operation.old_range()].fill(false);
    }
    let differs = wanted.len() != block.len() || pairs.contains(&None);
    if differs && !removed[1..wanted.len() - 1].contains(&false) {
        return Ok(rewritten(wanted, new, block.len(), add));
    }
    let mut changes = Vec::new();
    // The first line of the block, and of `wanted`, after the last one that both have, and whether that one goes.
    let (mut next, mut since, mut goes) = (0, 0, false);
    // Whether a line of `wanted` changes since then, or one comes after it.
    let mut touched = false;
    for operation in &operations {
        let (tag, before, after) = operation.as_tag_tuple();
        for index in before.clone() {
            let Some(line) = pairs[index] else {
                touched |= removed[index];
                continue;
            };
            if next < line && (touched || goes && removed[index]) {
                return Err((since, next));
            }
            changes.extend((next..line).map(|_| LineChange::Keep));
            changes.push(if removed[index] { LineChange::Remove } else { LineChange::Keep });
            (next, since, goes, touched) = (line + 1, index + 1, removed[index], false);
        }
        if tag != DiffTag::Equal {
            touched |= !after.is_empty() && since < before.end;
            let last = before.end.saturating_sub(1);
            changes.extend(after.zip(before.start..).map(|(line, index)| add(new[line], index.min(last))));
        }
    }
    if next < block.len() && touched {
        return Err((since, next));
    }
    changes.extend((next..block.len()).map(|_| LineChange::Keep));
    Ok(changes)
}

/// The same for a block of `count` lines of which only the ends matter.
fn rewritten(wanted: &[&[u8]], new: &[&[u8]], count: usize, add: impl Fn(&[u8], usize) -> LineChange) -> Vec<LineChange> {
    let first = usize::from(new.first() == wanted.first());
    let last = usize::from(new.len() > 1 && new.last() == wanted.last());
    let mut changes = Vec::new();
    changes.extend((0..first).map(|_| LineChange::Keep));
    changes.extend((first..count - last).map(|_| LineChange::Remove));
    changes.extend((first..new.len() - last).map(|line| add(new[line], line.min(wanted.len() - 1))));
    changes.extend((0..last).map(|_| LineChange::Keep));
    changes
}
