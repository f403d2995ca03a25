//! Finds the part of a file that is most similar to lines that were not found, for use in error
//! messages.

use std::collections::HashMap;

use super::lines::{Lines, trim};

/// Maximum size of a file that is searched for the text most similar to a text that was not found,
/// in bytes.
const EDIT_NEAREST_BYTES_MAX: usize = 4 << 20;

/// A line of a file and the line that was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Line number, from 1.
    pub line: usize,
    /// The line of the file; `None` if the file ends before it.
    pub found: Option<Vec<u8>>,
    /// The expected line.
    pub wanted: Vec<u8>,
}

impl Nearest {
    /// Creates a comparison of a line of the file with the expected line `wanted`. `number` is the
    /// line number from 0, at most `lines.count()`.
    pub(crate) fn new(lines: &Lines<'_>, number: usize, wanted: &[u8]) -> Nearest {
        let found = (number < lines.count()).then(|| lines.text(number).to_vec());
        Nearest { line: number + 1, found, wanted: wanted.to_vec() }
    }
}

/// Minimum similarity of two lines, as computed by [`similarity`].
const SIMILARITY_MIN: f64 = 0.5;
/// Maximum number of identical wanted lines that take part in the vote.
const SAME_LINES_MAX: usize = 8;

/// Returns the first differing line at the position where most lines of `wanted` match. If no
/// position has a matching line, returns the line that is most similar to the first line of
/// `wanted`. Returns `None` if there is no similar line, or if the file is larger than
/// `EDIT_NEAREST_BYTES_MAX`.
pub(crate) fn nearest(lines: &Lines<'_>, wanted: &[&[u8]]) -> Option<Nearest> {
    if lines.content.len() > EDIT_NEAREST_BYTES_MAX {
        return None;
    }
    match most_voted(lines, wanted) {
        Some(start) => {
            let same = |index: usize| start + index < lines.count() && trim(lines.text(start + index)) == trim(wanted[index]);
            let index = (0..wanted.len()).find(|index| !same(*index))?;
            Some(Nearest::new(lines, start + index, wanted[index]))
        }
        None => {
            let first = wanted.iter().find(|line| !trim(line).is_empty())?;
            most_similar(lines, trim(first)).map(|found| Nearest::new(lines, found, first))
        }
    }
}

/// Returns the line at which `wanted` would start according to a vote of all equal lines, weighted
/// by their length.
fn most_voted(lines: &Lines<'_>, wanted: &[&[u8]]) -> Option<usize> {
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (index, text) in wanted.iter().map(|line| trim(line)).enumerate().filter(|(_, text)| !text.is_empty()) {
        let same = places.entry(text).or_default();
        if same.len() < SAME_LINES_MAX {
            same.push(index);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (number, text) in lines.texts(0..lines.count()).map(trim).enumerate() {
        for start in places.get(text).into_iter().flatten().filter_map(|index| number.checked_sub(*index)) {
            *votes.entry(start).or_default() += text.len();
        }
    }
    votes.into_iter().max_by_key(|(start, votes)| (*votes, std::cmp::Reverse(*start))).map(|(start, _)| start)
}

fn most_similar(lines: &Lines<'_>, wanted: &[u8]) -> Option<usize> {
    let mut pairs: HashMap<&[u8], i32> = HashMap::new();
    for pair in wanted.windows(2) {
        *pairs.entry(pair).or_default() += 1;
    }
    let mut best: Option<(f64, usize)> = None;
    for (number, text) in lines.texts(0..lines.count()).map(trim).enumerate() {
        let score = if text == wanted { 1.0 } else { similarity(&pairs, wanted.len(), text) };
        if score >= SIMILARITY_MIN && best.is_none_or(|(so_far, _)| score > so_far) {
            best = Some((score, number));
        }
    }
    best.map(|(_, number)| number)
}

/// Computes the Sørensen–Dice coefficient over pairs of bytes, from 0 to 1. It is 0 for lines whose
/// lengths differ by more than a factor of 3.
fn similarity(pairs: &HashMap<&[u8], i32>, wanted_bytes: usize, line: &[u8]) -> f64 {
    let total = (wanted_bytes + line.len()).saturating_sub(2);
    if line.len() < 2 || total == 0 || line.len() > wanted_bytes * 3 || wanted_bytes > line.len() * 3 {
        return 0.0;
    }
    let mut left = pairs.clone();
    let mut common = 0;
    for pair in line.windows(2) {
        if let Some(count) = left.get_mut(pair)
            && *count > 0
        {
            *count -= 1;
            common += 1;
        }
    }
    f64::from(common) * 2.0 / total as f64
}
