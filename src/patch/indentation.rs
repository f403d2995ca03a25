//! How lines are indented, and how new ones are so that they fit between those of a file.

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

/// From how somebody indented lines to how they are in the file.
pub struct Adoption<'a> {
    /// Of lines that are in both: their indentation as written, and in the file.
    pairs: Vec<(&'a [u8], &'a [u8])>,
    /// The file has tabs, or spaces; none: it has no indentation.
    tabs: Option<bool>,
    /// Columns of a tab.
    tab: usize,
}

impl<'a> Adoption<'a> {
    /// `wanted` was found at `place`, a line for a line unless their numbers differ; `new` are the lines to come.
    pub fn new(wanted: &[&'a [u8]], new: &[&'a [u8]], lines: &Lines<'a>, place: std::ops::Range<usize>) -> Adoption<'a> {
        let alike = if place.len() == wanted.len() { wanted.len() } else { 1 };
        let last = wanted.last().copied().zip(lines.texts(place.clone()).last());
        let pairs: Vec<_> = (wanted.iter().copied().zip(lines.texts(place.clone())).take(alike))
            .chain(last)
            .filter(|(wanted, line)| !trim(line).is_empty() && words(wanted).eq(words(line)))
            .map(|(wanted, line)| (indented(wanted).0, indented(line).0))
            .collect();
        let here: Vec<&[u8]> = lines.texts(place).map(|line| indented(line).0).collect();
        let file: Vec<&[u8]> = lines.texts(0..lines.count().min(LINES_LOOKED_AT)).map(|line| indented(line).0).collect();
        let tabs = has_tabs(&here).or_else(|| has_tabs(&file));
        let written: Vec<&[u8]> =
            wanted.iter().chain(new).filter(|line| !trim(line).is_empty()).map(|line| indented(line).0).collect();
        let spaces = if tabs == Some(true) { step(&written) } else { step(&here).or_else(|| step(&file)) };
        Adoption { tab: ratio(&pairs).or(spaces).unwrap_or(TAB_COLUMNS), pairs, tabs }
    }

    /// `line` as it should stand in the file: like a line that was indented as it is, or as far from the nearest such one.
    pub fn adopt(&self, line: &[u8]) -> Vec<u8> {
        let (own, rest) = indented(line);
        if rest.is_empty() {
            return line.to_vec();
        }
        let wide = columns(own, self.tab);
        let far = |pair: &&(&[u8], &[u8])| (wide.abs_diff(columns(pair.0, self.tab)), pair.0 != own);
        let Some((written, there)) = self.pairs.iter().min_by_key(far) else { return line.to_vec() };
        let mut adopted = there.to_vec();
        match (own.strip_prefix(*written), self.tabs) {
            (Some(more), None) => adopted.extend_from_slice(more),
            _ => {
                let from = columns(written, self.tab);
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
fn ratio(pairs: &[(&[u8], &[u8])]) -> Option<usize> {
    pairs.windows(2).find_map(|two| {
        let steps = [two[0].0.len().abs_diff(two[1].0.len()), two[0].1.len().abs_diff(two[1].1.len())];
        let mixed =
            two.iter().any(|(one, other)| one.contains(&b'\t') != other.contains(&b'\t') && !one.is_empty() && !other.is_empty());
        let (most, least) = (*steps.iter().max()?, *steps.iter().min()?);
        (mixed && least > 0 && most.is_multiple_of(least) && most > least).then(|| most / least)
    })
}
