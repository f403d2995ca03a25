//! Block matching: finds blocks of lines whose first and last line equal those of the wanted text
//! and whose middle is similar, and aligns the lines of such a block with the wanted lines.

use std::collections::HashSet;
use std::ops::Range;

use rapidfuzz::distance::levenshtein::{self, Args, BatchComparator};
use similar::DiffTag;

use super::line_diff::compare;
use super::lines::{Lines, trim, words};
use super::splice::LineChange;
use crate::limits;

/// Minimum normalized Levenshtein similarity between the middles of two blocks, or between two
/// lines in the blocks.
const SIMILARITY_MIN: f64 = 0.75;
/// Minimum number of lines of a block: two anchor lines and one line between them.
const BLOCK_LINES_MIN: usize = 3;
/// Minimum number of lines of a long block. Long blocks are compared only if at least `SHARED_MIN`
/// of their text is in equal lines, because the comparison is slow and an anchor line such as a
/// bracket gives many candidates.
const LONG_BLOCK_LINES: usize = 10;
/// Minimum share of a long block's bytes in lines that also occur in the wanted text, from 0 to 1.
const SHARED_MIN: f64 = 0.5;
/// Number of comparison steps charged for each candidate, to bound the number of candidates.
const CANDIDATE_STEPS: usize = 64;

/// Finds the blocks whose first and last line equal those of `wanted` and whose middle has a
/// similarity of at least `SIMILARITY_MIN`, as line ranges in ascending order. Of overlapping
/// blocks, only the most similar one is returned. Returns no blocks if the search exceeds
/// `limits::EDIT_COMPARE_STEPS_MAX`.
pub(crate) fn blocks(lines: &Lines<'_>, wanted: &[&[u8]]) -> Vec<Range<usize>> {
    let [first, between @ .., last] = wanted else { return Vec::new() };
    let (first, last) = (trim(first), trim(last));
    if wanted.len() < BLOCK_LINES_MIN || first.is_empty() || last.is_empty() {
        return Vec::new();
    }
    let middle = joined(between.iter().copied());
    let comparator = BatchComparator::new(middle.iter().copied());
    let at_least = Args::default().score_cutoff(SIMILARITY_MIN);
    let mut steps = limits::EDIT_COMPARE_STEPS_MAX;
    let Some(places) = candidates(lines, (first, between, last), middle.len(), &mut steps) else { return Vec::new() };
    let mut found: Vec<(f64, f64, Range<usize>)> = Vec::new();
    for (shared, place) in places {
        // Of overlapping blocks, the one with the largest shared part is assumed to be the most
        // similar.
        if found.iter().any(|(more, _, other)| *more > shared && overlap(other, &place)) {
            continue;
        }
        let other = joined(lines.texts(place.start + 1..place.end - 1));
        steps = steps.saturating_sub(found.len() + other.len() * middle.len().div_ceil(64));
        if steps == 0 {
            return Vec::new();
        }
        if let Some(score) = comparator.normalized_similarity_with_args(other.iter().copied(), &at_least) {
            found.push((shared, score, place));
        }
        if found.len() == limits::EDIT_PLACES_MAX {
            break;
        }
    }
    most_similar(found.into_iter().map(|(_, score, place)| (score, place)).collect())
}

/// Finds the blocks that start with `first`, end with `last`, and have a middle of about `bytes`
/// bytes. Each block is returned with the share of its middle that is in lines of `between` (0 for
/// short blocks), largest share first. Returns `None` if the search exceeds `steps`.
fn candidates(
    lines: &Lines<'_>,
    (first, between, last): (&[u8], &[&[u8]], &[u8]),
    bytes: usize,
    steps: &mut usize,
) -> Option<Vec<(f64, Range<usize>)>> {
    // A middle outside these lengths cannot reach the minimum similarity.
    let (least, most) = ((bytes as f64 * SIMILARITY_MIN).ceil() as usize, (bytes as f64 / SIMILARITY_MIN) as usize);
    let long = between.len() + 2 >= LONG_BLOCK_LINES;
    let known: HashSet<&[u8]> = between.iter().map(|line| trim(line)).collect();
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    // For each line: the number of bytes in all earlier lines, and the number of bytes in the
    // earlier lines that also occur in `between`, both including line endings.
    let mut before = vec![(0, 0)];
    let (mut all, mut same) = (0, 0);
    for (number, text) in lines.texts(0..lines.count()).map(trim).enumerate() {
        all += text.len() + 1;
        same += if known.contains(text) { text.len() + 1 } else { 0 };
        before.push((all, same));
        if text == first {
            starts.push(number);
        }
        if text == last {
            ends.push(number);
        }
    }
    let mut places = Vec::new();
    for start in starts {
        let length = |end: usize| before[end].0 - before[start + 1].0 - 1;
        let nearest = ends.partition_point(|end| *end < start + 2 || length(*end) < least);
        for end in ends[nearest..].iter().copied().take_while(|end| length(*end) <= most) {
            let shared = (before[end].1 - before[start + 1].1) as f64 / (length(end).max(bytes) + 1) as f64;
            let eligible = !long || shared >= SHARED_MIN;
            *steps = steps.checked_sub(if eligible { CANDIDATE_STEPS } else { 1 })?;
            if eligible {
                places.push((if long { shared } else { 0.0 }, start..end + 1));
            }
        }
    }
    places.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    Some(places)
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

fn joined<'l>(lines: impl Iterator<Item = &'l [u8]>) -> Vec<u8> {
    lines.map(trim).collect::<Vec<_>>().join(&b'\n')
}

/// Removes the blocks that overlap a more similar block, and returns the others in ascending order.
fn most_similar(mut found: Vec<(f64, Range<usize>)>) -> Vec<Range<usize>> {
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut kept: Vec<(f64, Range<usize>)> = Vec::new();
    for (score, place) in found {
        if !kept.iter().any(|(better, other)| *better > score && overlap(other, &place)) {
            kept.push((score, place));
        }
    }
    kept.sort_by_key(|(_, place)| place.start);
    kept.into_iter().map(|(_, place)| place).collect()
}

/// Returns, for each line of `wanted`, the index of the corresponding line of `block`, or `None` if
/// there is no such line. Lines correspond if they are equal except for whitespace, or if they are
/// similar and adjacent to such equal lines.
pub(crate) fn align(wanted: &[&[u8]], block: &[&[u8]]) -> Vec<Option<usize>> {
    let (before, after) = (keys(wanted), keys(block));
    let mut pairs = vec![None; wanted.len()];
    for operation in compare(&before, &after) {
        let (tag, mut before, mut after) = operation.as_tag_tuple();
        let same = |one: usize, other: usize| tag == DiffTag::Equal || similar(wanted[one], block[other]);
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

fn similar(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (trim(one).iter().copied(), trim(other).iter().copied());
    levenshtein::normalized_similarity_with_args(one, other, &Args::default().score_cutoff(SIMILARITY_MIN)).is_some()
}

/// Transfers the change from `wanted` to `new` onto `block`, the lines that matched `wanted`. `add`
/// creates an inserted line from a line of `new` and the index of the line of `wanted` that the
/// inserted line replaces or follows.
///
/// Lines of the block without a counterpart in `wanted` stay, unless everything between the first
/// and the last line is replaced. Fails if the change touches a part of `wanted` that differs from
/// the block; the error contains the indices of the first differing lines of `wanted` and of the
/// block.
pub(crate) fn merge(
    wanted: &[&[u8]],
    new: &[&[u8]],
    block: &[&[u8]],
    add: impl Fn(&[u8], usize) -> LineChange,
) -> Result<Vec<LineChange>, (usize, usize)> {
    let pairs = align(wanted, block);
    let operations = compare(wanted, new);
    let mut removed = vec![true; wanted.len()];
    for operation in operations.iter().filter(|operation| operation.tag() == DiffTag::Equal) {
        removed[operation.old_range()].fill(false);
    }
    let differs = wanted.len() != block.len() || pairs.contains(&None);
    if differs && !removed[1..wanted.len() - 1].contains(&false) {
        return Ok(replace_middle(wanted, new, block.len(), add));
    }
    let mut changes = Vec::new();
    // The indices of the first line of the block and the first line of `wanted` after the last
    // aligned line, and whether the change removes that aligned line.
    let (mut next, mut since, mut last_removed) = (0, 0, false);
    // True if the change removes a line of `wanted` at or after the index `since`, or adds a line
    // after such a line.
    let mut touched = false;
    for operation in &operations {
        let (tag, before, after) = operation.as_tag_tuple();
        for index in before.clone() {
            let Some(line) = pairs[index] else {
                touched |= removed[index];
                continue;
            };
            if next < line && (touched || last_removed && removed[index]) {
                return Err((since, next));
            }
            changes.extend((next..line).map(|_| LineChange::Keep));
            changes.push(if removed[index] { LineChange::Remove } else { LineChange::Keep });
            (next, since, last_removed, touched) = (line + 1, index + 1, removed[index], false);
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

/// Returns the line changes that replace the whole middle of a block of `count` lines.
fn replace_middle(wanted: &[&[u8]], new: &[&[u8]], count: usize, add: impl Fn(&[u8], usize) -> LineChange) -> Vec<LineChange> {
    let first = usize::from(new.first() == wanted.first());
    let last = usize::from(new.len() > 1 && new.last() == wanted.last());
    let mut changes = Vec::new();
    changes.extend((0..first).map(|_| LineChange::Keep));
    changes.extend((first..count - last).map(|_| LineChange::Remove));
    changes.extend((first..new.len() - last).map(|line| add(new[line], line.min(wanted.len() - 1))));
    changes.extend((0..last).map(|_| LineChange::Keep));
    changes
}
