//! Finding lines in a file although they were not written down exactly: the matchers that look at whole lines.

use std::ops::Range;

use super::block::blocks;
use super::indentation::same_shape;
use super::lines::{Lines, trim, words};

/// How something was found, by the name that `details` have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Exact,
    /// Blanks at both ends of a line do not count.
    LineTrimmed,
    /// Nor how many there are between words.
    WhitespaceNormalized,
    /// One of several places whose lines are indented as those looked for, all of them shifted by the same: [`single_out`].
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
            // Of these one is singled out.
            Strategy::LineTrimmed | Strategy::IndentationFlexible => repeats(lines, wanted, |one, other| trim(one) == trim(other)),
            Strategy::WhitespaceNormalized => repeats(lines, wanted, |one, other| words(one).eq(words(other))),
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
