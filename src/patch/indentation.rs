//! How lines are indented, and how new ones are so that they fit between those of a file.

use std::ops::Range;

use super::lines::{Lines, indented, trim, words};

/// Columns of a tab when nothing tells: those that people mostly take.
const TAB_COLUMNS: usize = 4;
/// Widths of a tab under which two texts may have the same shape.
const TAB_WIDTHS: [usize; 4] = [TAB_COLUMNS, 2, 8, 3];
/// Lines of a file that are looked at to see what it is indented with.
const LINES_LOOKED_AT: usize = 10_000;

fn columns(indentation: &[u8], tab: usize) -> usize {
    indentation.iter().map(|byte| if *byte == b'\t' { tab } else { 1 }).sum()
}

/// Whether the lines of both are indented alike, but for one shift of all. Blank lines do not count.
pub fn same_shape<'l>(wanted: &[&[u8]], lines: impl Iterator<Item = &'l [u8]>) -> bool {
    let pairs: Vec<_> = wanted.iter().copied().zip(lines).filter(|(_, line)| !trim(line).is_empty()).collect();
    TAB_WIDTHS.iter().any(|tab| {
        let shift =
            |(wanted, line): &(&[u8], &[u8])| columns(indented(line).0, *tab) as isize - columns(indented(wanted).0, *tab) as isize;
        pairs.windows(2).all(|two| shift(&two[0]) == shift(&two[1]))
    })
}

/// What a file is indented with.
pub struct Style {
    /// Tabs, or spaces; none: it has no indentation.
    tabs: Option<bool>,
    /// Spaces of a level.
    step: Option<usize>,
}

impl Style {
    pub fn of(lines: &Lines<'_>) -> Style {
        Style::among(lines.texts(0..lines.count().min(LINES_LOOKED_AT)))
    }

    fn among<'l>(lines: impl Iterator<Item = &'l [u8]>) -> Style {
        let indentations: Vec<&[u8]> = lines.filter(|line| !trim(line).is_empty()).map(|line| indented(line).0).collect();
        Style { tabs: has_tabs(&indentations), step: step(&indentations) }
    }
}

/// From how somebody indented lines to how they are in the file.
pub struct Adoption<'a> {
    /// Of lines that are in both.
    pairs: Vec<Pair<'a>>,
    /// The file has tabs, or spaces; none: it has no indentation.
    tabs: Option<bool>,
    /// Columns of a tab.
    tab: usize,
}

/// The indentation of a line.
struct Pair<'a> {
    /// Which one of those looked for.
    index: usize,
    written: &'a [u8],
    there: &'a [u8],
}

impl<'a> Adoption<'a> {
    /// `wanted` was found at `place`, a line for a line unless their numbers differ; `new` are the lines to come.
    pub fn new(wanted: &[&'a [u8]], new: &[&'a [u8]], lines: &Lines<'a>, place: Range<usize>, style: &Style) -> Adoption<'a> {
        let alike = if place.len() == wanted.len() { wanted.len() } else { 1 };
        let numbered = || wanted.iter().copied().enumerate();
        let pairs: Vec<Pair<'a>> = (numbered().zip(lines.texts(place.clone())).take(alike))
            .chain(numbered().last().zip(lines.texts(place.clone()).last()))
            .filter(|((_, wanted), line)| !trim(line).is_empty() && words(wanted).eq(words(line)))
            .map(|((index, wanted), line)| Pair { index, written: indented(wanted).0, there: indented(line).0 })
            .collect();
        let here = Style::among(lines.texts(place));
        let written = Style::among(wanted.iter().chain(new).copied());
        let tabs = here.tabs.or(style.tabs);
        let spaces = if tabs == Some(true) { written.step } else { here.step.or(style.step) };
        Adoption { tab: ratio(&pairs).or(spaces).unwrap_or(TAB_COLUMNS), pairs, tabs }
    }

    /// `line`, which comes in the place of the line `index` of those looked for, or after it, as it should stand in the file: like a
    /// line that was indented as it is, or as far from the nearest such one.
    pub fn adopt(&self, line: &[u8], index: usize) -> Vec<u8> {
        let (own, rest) = indented(line);
        if rest.is_empty() || self.fits(own) {
            return line.to_vec();
        }
        let wide = columns(own, self.tab);
        let far =
            |pair: &&Pair<'_>| (wide.abs_diff(columns(pair.written, self.tab)), pair.written != own, pair.index.abs_diff(index));
        let Some(pair) = self.pairs.iter().min_by_key(far) else { return line.to_vec() };
        let mut adopted = pair.there.to_vec();
        match own.strip_prefix(pair.written) {
            // Tabs stay tabs, and spaces after them are there to align, unless the file has spaces for them.
            Some(more) if self.tabs.is_none() || (own.contains(&b'\t') && !self.has_spaces_for_tabs()) => {
                adopted.extend_from_slice(more);
            }
            _ => {
                let from = columns(pair.written, self.tab);
                if wide >= from {
                    self.widen(&mut adopted, wide - from);
                } else {
                    self.narrow(&mut adopted, from - wide);
                }
            }
        }
        adopted.extend_from_slice(rest);
        adopted
    }

    /// Whether lines are written as the file has them, so that one that is indented by `own` is right, too. It is not when the
    /// file has tabs where it has spaces.
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

/// None: nothing is indented.
fn has_tabs(indentations: &[&[u8]]) -> Option<bool> {
    let tabs = indentations.iter().filter(|indentation| indentation.contains(&b'\t')).count();
    let spaces = indentations.iter().filter(|indentation| indentation.starts_with(b"  ")).count();
    (tabs + spaces > 0).then_some(tabs > 0 && tabs >= spaces)
}

/// The smallest step from one indentation to the next, of those that are all spaces.
fn step(indentations: &[&[u8]]) -> Option<usize> {
    let wide = |pair: &[&[u8]]| pair[0].len().abs_diff(pair[1].len());
    let spaces: Vec<&[u8]> = indentations.iter().copied().filter(|indentation| !indentation.contains(&b'\t')).collect();
    spaces.windows(2).map(wide).filter(|step| *step > 1).min()
}

/// Spaces of one side for a tab of the other, as the steps between lines tell.
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
