//! The matchers that find a sequence of whole lines in a file, exactly or with tolerance.

use std::ops::Range;

use super::block::blocks;
use super::indentation::same_shape;
use super::lines::{Lines, indented, trim, words};
use super::look_alike::FoldedText;

/// How a text was matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// All bytes of each line are equal.
    Exact,
    /// Lines are equal except for whitespace at both ends.
    LineTrimmed,
    /// Lines consist of the same words; any whitespace separates them.
    WhitespaceNormalized,
    /// Lines are equal except for whitespace at both ends and characters that look alike.
    LookAlike,
    /// Of several matches, the only one with the same relative indentation as the wanted text; see
    /// [`with_same_shape`].
    IndentationFlexible,
    /// The first and the last line are equal, and the lines between are similar.
    BlockAnchor,
}

impl Strategy {
    /// Returns the name in `details` and in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Strategy::Exact => "exact",
            Strategy::LineTrimmed => "line_trimmed",
            Strategy::WhitespaceNormalized => "whitespace_normalized",
            Strategy::LookAlike => "look_alike",
            Strategy::IndentationFlexible => "indentation_flexible",
            Strategy::BlockAnchor => "block_anchor",
        }
    }

    /// Finds all matches of `wanted`, which has at least one line. Returns line ranges in ascending
    /// order; they may overlap.
    pub(crate) fn find_all(self, lines: &Lines<'_>, wanted: &[&[u8]]) -> Vec<Range<usize>> {
        match self {
            Strategy::Exact => find_sequence(lines, wanted, |one, other| one == other),
            // Blank lines match anywhere, so at least one line must have text.
            _ if wanted.iter().all(|line| trim(line).is_empty()) => Vec::new(),
            // Callers with `IndentationFlexible` filter these matches by their relative
            // indentation.
            Strategy::LineTrimmed | Strategy::IndentationFlexible => {
                find_sequence(lines, wanted, |one, other| trim(one) == trim(other))
            }
            Strategy::WhitespaceNormalized => find_sequence(lines, wanted, |one, other| words(one).eq(words(other))),
            Strategy::LookAlike => look_alikes(lines, wanted),
            Strategy::BlockAnchor => blocks(lines, wanted),
        }
    }
}

/// Finds the lines that look like `wanted`.
fn look_alikes(lines: &Lines<'_>, wanted: &[&[u8]]) -> Vec<Range<usize>> {
    if lines.content.is_ascii() && wanted.iter().all(|line| line.is_ascii()) {
        return Vec::new();
    }
    let plain: Vec<FoldedText<'_>> = wanted.iter().map(|line| FoldedText::new(line)).collect();
    let plain: Vec<&[u8]> = plain.iter().map(|line| &*line.bytes).collect();
    Strategy::LineTrimmed.find_all(&Lines::new(&FoldedText::new(lines.content).bytes), &plain)
}

/// Returns the ranges of `places` whose lines have the same relative indentation as `wanted`, and
/// only those with the same indentation if there are any.
pub(crate) fn with_same_shape(lines: &Lines<'_>, wanted: &[&[u8]], mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.retain(|place| place.len() == wanted.len() && same_shape(wanted, lines.texts(place.clone())));
    let first = wanted.iter().position(|line| !trim(line).is_empty()).unwrap_or_default();
    let is_same = |place: &Range<usize>| indented(lines.text(place.start + first)).0 == indented(wanted[first]).0;
    if places.iter().any(is_same) {
        places.retain(is_same);
    }
    places
}

/// Finds all matches of `wanted` by the Knuth-Morris-Pratt algorithm, in linear time; `same` must
/// be an equivalence relation.
fn find_sequence(lines: &Lines<'_>, wanted: &[&[u8]], same: impl Fn(&[u8], &[u8]) -> bool) -> Vec<Range<usize>> {
    // For each prefix of `wanted`: the length of its longest proper prefix that is also its suffix.
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
