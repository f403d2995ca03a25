//! Detects the indentation style of a file, and converts the indentation of new lines to this
//! style.

use std::ops::Range;

use super::lines::{Lines, indented, trim, words};

/// Assumed width of a tab, in columns, if neither the file nor the edit shows the width.
const TAB_COLUMNS: usize = 4;
/// Tab widths that are tried when the relative indentation of two texts is compared.
const TAB_WIDTHS: [usize; 4] = [TAB_COLUMNS, 2, 8, 3];
/// Maximum number of lines, from the start of a file, from which the indentation style is detected.
const STYLE_LINES_MAX: usize = 10_000;

fn columns(indentation: &[u8], tab: usize) -> usize {
    indentation.iter().map(|byte| if *byte == b'\t' { tab } else { 1 }).sum()
}

/// Returns true if the indentation of each line differs from that of the wanted line by the same
/// number of columns. Blank lines are ignored.
pub(crate) fn same_shape<'l>(wanted: &[&[u8]], lines: impl Iterator<Item = &'l [u8]>) -> bool {
    let pairs: Vec<_> = wanted.iter().copied().zip(lines).filter(|(_, line)| !trim(line).is_empty()).collect();
    TAB_WIDTHS.iter().any(|tab| {
        let shift =
            |(wanted, line): &(&[u8], &[u8])| columns(indented(line).0, *tab) as isize - columns(indented(wanted).0, *tab) as isize;
        pairs.windows(2).all(|two| shift(&two[0]) == shift(&two[1]))
    })
}

/// Indentation style of a file or of a part of it.
pub(crate) struct IndentationStyle {
    /// True for tabs, false for spaces, `None` without indented lines.
    tabs: Option<bool>,
    /// Number of spaces per indentation level.
    step: Option<usize>,
}

impl IndentationStyle {
    /// Detects the style of a whole file by its first `STYLE_LINES_MAX` lines.
    pub(crate) fn from_lines(lines: &Lines<'_>) -> IndentationStyle {
        IndentationStyle::detect(lines.texts(0..lines.count().min(STYLE_LINES_MAX)))
    }

    fn detect<'l>(lines: impl Iterator<Item = &'l [u8]>) -> IndentationStyle {
        let indentations: Vec<&[u8]> = lines.filter(|line| !trim(line).is_empty()).map(|line| indented(line).0).collect();
        IndentationStyle { tabs: has_tabs(&indentations), step: step(&indentations) }
    }
}

/// Converts the indentation that an edit uses to the indentation of the file.
pub(crate) struct Reindenter<'a> {
    /// For each line that occurs in both the edit and the file: its indentation in each of them.
    pairs: Vec<Pair<'a>>,
    /// True for tabs, false for spaces, `None` without indented lines in the file.
    tabs: Option<bool>,
    /// Width of a tab, in columns.
    tab: usize,
}

/// The indentations of one line in the edit and in the file.
struct Pair<'a> {
    /// Index among the wanted lines.
    index: usize,
    /// Indentation in the edit.
    written: &'a [u8],
    /// Indentation in the file.
    there: &'a [u8],
}

impl<'a> Reindenter<'a> {
    /// Creates a reindenter for one edit. `wanted` matched the range `place` of `lines`; if both
    /// have the same number of lines, they correspond line by line. `new` are the lines that will
    /// be inserted, `style` is the style of the whole file.
    pub(crate) fn new(
        wanted: &[&'a [u8]],
        new: &[&'a [u8]],
        lines: &Lines<'a>,
        place: Range<usize>,
        style: &IndentationStyle,
    ) -> Reindenter<'a> {
        let alike = if place.len() == wanted.len() { wanted.len() } else { 1 };
        let numbered = || wanted.iter().copied().enumerate();
        let pairs: Vec<Pair<'a>> = (numbered().zip(lines.texts(place.clone())).take(alike))
            .chain(numbered().next_back().zip(lines.texts(place.clone()).last()))
            .filter(|((_, wanted), line)| !trim(line).is_empty() && words(wanted).eq(words(line)))
            .map(|((index, wanted), line)| Pair { index, written: indented(wanted).0, there: indented(line).0 })
            .collect();
        let here = IndentationStyle::detect(lines.texts(place));
        let written = IndentationStyle::detect(wanted.iter().chain(new).copied());
        let tabs = here.tabs.or(style.tabs);
        let spaces = if tabs == Some(true) { written.step } else { here.step.or(style.step) };
        Reindenter { tab: ratio(&pairs).or(spaces).unwrap_or(TAB_COLUMNS), pairs, tabs }
    }

    /// Returns `line` with its indentation converted to that of the file. `index` is the index of
    /// the wanted line that `line` replaces or follows. The pair with the nearest indentation
    /// serves as the base, and the difference from this base is kept.
    pub(crate) fn reindent(&self, line: &[u8], index: usize) -> Vec<u8> {
        let (own, rest) = indented(line);
        if rest.is_empty() || self.fits(own) {
            return line.to_vec();
        }
        let wide = columns(own, self.tab);
        let distance =
            |pair: &&Pair<'_>| (wide.abs_diff(columns(pair.written, self.tab)), pair.written != own, pair.index.abs_diff(index));
        let Some(pair) = self.pairs.iter().min_by_key(distance) else { return line.to_vec() };
        let mut indented = pair.there.to_vec();
        match own.strip_prefix(pair.written) {
            // Tabs, and alignment spaces after them, are copied, unless the file has spaces there.
            Some(more) if self.tabs.is_none() || (own.contains(&b'\t') && !self.has_spaces_for_tabs()) => {
                indented.extend_from_slice(more);
            }
            _ => {
                let from = columns(pair.written, self.tab);
                if wide >= from {
                    self.widen(&mut indented, wide - from);
                } else {
                    self.narrow(&mut indented, from - wide);
                }
            }
        }
        indented.extend_from_slice(rest);
        indented
    }

    /// Returns true if the edit and the file are indented alike, so that the indentation `own`
    /// needs no conversion. Spaces in `own` where the file has tabs require a conversion.
    fn fits(&self, own: &[u8]) -> bool {
        let spaces_are_right = self.tabs != Some(true) || self.pairs.iter().any(|pair| pair.there.starts_with(b" "));
        (spaces_are_right || own.contains(&b'\t')) && self.pairs.iter().all(|pair| pair.written == pair.there)
    }

    fn has_spaces_for_tabs(&self) -> bool {
        self.pairs.iter().any(|pair| pair.written.contains(&b'\t') && pair.there.starts_with(b" "))
    }

    fn widen(&self, indentation: &mut Vec<u8>, by: usize) {
        let tabs = if self.tabs == Some(true) { by / self.tab } else { 0 };
        indentation.extend(std::iter::repeat_n(b'\t', tabs));
        indentation.extend(std::iter::repeat_n(b' ', by - tabs * self.tab));
    }

    fn narrow(&self, indentation: &mut Vec<u8>, by: usize) {
        let goal = columns(indentation, self.tab).saturating_sub(by);
        while columns(indentation, self.tab) > goal {
            indentation.pop();
        }
        let missing = goal - columns(indentation, self.tab);
        self.widen(indentation, missing);
    }
}

/// Returns true if the lines are mostly indented with tabs, false if they are mostly indented with
/// spaces, and `None` if no line is indented.
fn has_tabs(indentations: &[&[u8]]) -> Option<bool> {
    let tabs = indentations.iter().filter(|indentation| indentation.contains(&b'\t')).count();
    let spaces = indentations.iter().filter(|indentation| indentation.starts_with(b"  ")).count();
    (tabs + spaces > 0).then_some(tabs > 0 && tabs >= spaces)
}

/// Returns the number of spaces per level: the smallest difference above one between successive
/// indentations that consist of spaces.
fn step(indentations: &[&[u8]]) -> Option<usize> {
    let wide = |pair: &[&[u8]]| pair[0].len().abs_diff(pair[1].len());
    let spaces: Vec<&[u8]> = indentations.iter().copied().filter(|indentation| !indentation.contains(&b'\t')).collect();
    spaces.windows(2).map(wide).filter(|step| *step > 1).min()
}

/// Returns the number of spaces on one side (edit or file) per tab on the other side, derived from
/// successive lines that are indented with tabs on one side and with spaces on the other.
fn ratio(pairs: &[Pair<'_>]) -> Option<usize> {
    pairs.windows(2).find_map(|two| {
        let step = |side: fn(&Pair<'_>) -> usize| side(&two[0]).abs_diff(side(&two[1]));
        let steps = [step(|pair| pair.written.len()), step(|pair| pair.there.len())];
        let mixed = two.iter().any(|Pair { written, there, .. }| {
            written.contains(&b'\t') != there.contains(&b'\t') && !written.is_empty() && !there.is_empty()
        });
        let (most, least) = (*steps.iter().max()?, *steps.iter().min()?);
        (mixed && least > 0 && most.is_multiple_of(least) && most > least).then(|| most / least)
    })
}
