//! Finding lines in a file although they were not written down exactly: the matchers that look at whole lines.

use std::ops::Range;

use rapidfuzz::distance::levenshtein::{Args, BatchComparator};

use super::indentation::same_shape;
use super::lines::{Lines, trim, words};
use crate::limits;

/// How something was found, by the name that `details` have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Exact,
    /// Blanks at both ends of a line do not count.
    LineTrimmed,
    /// Nor how many there are between words.
    WhitespaceNormalized,
    /// One of several places whose lines are indented as those looked for, all of them shifted by the same.
    IndentationFlexible,
    /// The first and the last line fit, and what is between is alike.
    BlockAnchor,
}

impl Strategy {
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Exact => "exact",
            Strategy::LineTrimmed => "line_trimmed",
            Strategy::WhitespaceNormalized => "whitespace_normalized",
            Strategy::IndentationFlexible => "indentation_flexible",
            Strategy::BlockAnchor => "block_anchor",
        }
    }

    /// The places of `wanted`, one or more lines, in their order; they may overlap.
    pub fn places(self, lines: &Lines<'_>, wanted: &[&[u8]]) -> Vec<Range<usize>> {
        match self {
            Strategy::Exact => repeats(lines, wanted, |one, other| one == other),
            // Blank lines fit anywhere, so at least one has to say something.
            _ if wanted.iter().all(|line| trim(line).is_empty()) => Vec::new(),
            Strategy::LineTrimmed => repeats(lines, wanted, |one, other| trim(one) == trim(other)),
            Strategy::WhitespaceNormalized => repeats(lines, wanted, |one, other| words(one).eq(words(other))),
            Strategy::IndentationFlexible => single_out(lines, wanted, Strategy::LineTrimmed.places(lines, wanted)),
            Strategy::BlockAnchor => blocks(lines, wanted),
        }
    }
}

/// Those of `places` that have the shape of `wanted`.
pub fn single_out(lines: &Lines<'_>, wanted: &[&[u8]], mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.retain(|place| place.len() == wanted.len() && same_shape(wanted, lines.texts(place.clone())));
    places
}

/// All places of `wanted` by Knuth, Morris and Pratt, in linear time; `same` is an equivalence.
fn repeats(lines: &Lines<'_>, wanted: &[&[u8]], same: impl Fn(&[u8], &[u8]) -> bool) -> Vec<Range<usize>> {
    // Of each beginning of `wanted`, how long a shorter one is that it ends with.
    let mut borders = vec![0; wanted.len()];
    let mut border = 0;
    for index in 1..wanted.len() {
        while border > 0 && !same(wanted[index], wanted[border]) {
            border = borders[border - 1];
        }
        border += usize::from(same(wanted[index], wanted[border]));
        borders[index] = border;
    }
    let mut places = Vec::new();
    let mut matched = 0;
    for line in 0..lines.count() {
        let text = lines.text(line);
        while matched > 0 && !same(text, wanted[matched]) {
            matched = borders[matched - 1];
        }
        matched += usize::from(same(text, wanted[matched]));
        if matched == wanted.len() {
            places.push(line + 1 - matched..line + 1);
            matched = borders[matched - 1];
        }
    }
    places
}

/// How alike the middles of two blocks must be, by normalized Levenshtein distance.
const ALIKE: f64 = 0.75;
/// Lines of a block: its anchors and something between.
const BLOCK_LINES_MIN: usize = 3;

/// Blocks whose first and last line are those of `wanted`, and whose middle is at least `ALIKE`. Of blocks that overlap the most
/// alike counts. Gives up, with nothing found, when there is more to compare than `limits::EDIT_COMPARE_STEPS_MAX`.
fn blocks(lines: &Lines<'_>, wanted: &[&[u8]]) -> Vec<Range<usize>> {
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
