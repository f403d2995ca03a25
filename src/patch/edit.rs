//! String replacement in a file. The old text is searched for literally, then by increasingly
//! tolerant matchers; all other bytes of the file stay unchanged.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use super::block::merge;
use super::edit_error::EditError;
use super::indentation::{IndentationStyle, Reindenter};
use super::lines::{Lines, is_blank, trim, words};
use super::locate::{Strategy, with_same_shape};
use super::look_alike::{FoldedText, carry, carry_lines};
use super::nearest::{Nearest, nearest};
use super::normalized::NormalizedContent;
use super::pasted_numbers;
use super::splice::{LineChange, Splice, splice};
use crate::limits;

/// The result of editing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditOutcome {
    /// The new content.
    pub bytes: Vec<u8>,
    /// Name of the matcher that found the old text, see [`Strategy::name`].
    pub strategy: &'static str,
    /// Number of replaced matches, at least 1.
    pub match_count: usize,
    /// Line of the first match, from 1.
    pub line: usize,
}

/// Name of the search for a text without its line numbers.
pub(crate) const WITHOUT_NUMBERS: &str = "without line numbers";

/// Replaces the only match of `old` in `content` with `new`. Line endings and byte order marks are
/// ignored in the search, and inserted text receives the line endings of the matched lines.
///
/// Matchers, in this order: literal text; whole lines with surrounding whitespace ignored; whole
/// lines with all whitespace normalized; words inside one line; text, then whole lines, of which
/// some characters only look alike (the file's characters are kept); a block with equal first and
/// last line. Whole-line matchers ignore whether `old` and `new` end with a line ending. Inserted
/// lines get the indentation of the file, and lines that `old` and `new` share keep the text of the
/// file. Lines of a matched block that `old` lacks stay, unless the whole block is replaced. If
/// there are several matches and exactly one is indented like `old`, that match is replaced.
///
/// If nothing matches and the lines of `old` have the line numbers of `read`, they are searched
/// without them.
///
/// With `replace_all`, all matches of the first successful matcher are replaced; a block match must
/// still be unique.
pub fn edit(content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<EditOutcome, EditError> {
    let error = match edit_as_written(content, old, new, replace_all) {
        Err(error @ EditError::NotFound(_)) => error,
        edited => return edited,
    };
    let (Some(old), Some(new)) = (pasted_numbers::without_numbers(old), pasted_numbers::replacement(new)) else {
        return Err(error);
    };
    let edited = edit_as_written(content, &old, &new, replace_all).map_err(|_| error)?;
    Ok(EditOutcome { strategy: WITHOUT_NUMBERS, ..edited })
}

fn edit_as_written(content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<EditOutcome, EditError> {
    if old.is_empty() {
        return Err(EditError::Empty);
    }
    if old == new {
        return Err(EditError::Identical);
    }
    let (old, new) = (normalize(old), normalize(new));
    if old == new {
        return Err(EditError::EndingsOnly);
    }
    let edited = match replace_literal(content, &old, &new, replace_all)? {
        Some(edited) => edited,
        None => replace_tolerant(content, &old, &new, replace_all)?,
    };
    if edited.bytes == content { Err(EditError::Unchanged { line: edited.line }) } else { Ok(edited) }
}

/// Returns `text` without a byte order mark and with `\n` line endings.
fn normalize(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

/// Replaces `old` if it occurs literally. Returns `None` if there is no match.
fn replace_literal(content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<Option<EditOutcome>, EditError> {
    if old.is_empty() {
        return Err(EditError::Empty);
    }
    let normalized = NormalizedContent::new(content);
    let finder = memmem::Finder::new(old);
    let mut places: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(place) = finder.find(&normalized.bytes[from..])
        && (replace_all || places.len() < limits::EDIT_PLACES_MAX)
    {
        let start = from + place;
        places.push(start..start + old.len());
        // Overlapping matches count as several, but `replace_all` replaces only the first of them.
        from = if replace_all { start + old.len() } else { start + 1 };
    }
    if places.is_empty() {
        return Ok(None);
    }
    replace(content, &normalized, places, (old, new), Strategy::Exact, replace_all).map(Some)
}

/// Replaces `old` with the first tolerant matcher that finds it.
fn replace_tolerant(content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<EditOutcome, EditError> {
    let lines = Lines::new(content);
    let wanted: Vec<&[u8]> = old.strip_suffix('\n').unwrap_or(old).split('\n').map(str::as_bytes).collect();
    for strategy in [Strategy::LineTrimmed, Strategy::WhitespaceNormalized, Strategy::LookAlike, Strategy::BlockAnchor] {
        if strategy == Strategy::LookAlike
            && let Some(edited) = replace_look_alike(content, old, new, replace_all)?
        {
            return Ok(edited);
        }
        let found = strategy.find_all(&lines, &wanted);
        let all = replace_all && strategy != Strategy::BlockAnchor;
        match found.as_slice() {
            [] if strategy == Strategy::WhitespaceNormalized => {
                let normalized = NormalizedContent::new(content);
                let runs = word_runs(&normalized.bytes, old);
                let runs = if replace_all { without_overlaps(runs) } else { runs };
                if !runs.is_empty() {
                    return replace(content, &normalized, runs, (old, without_padding(old, new)), strategy, replace_all);
                }
            }
            [] => {}
            [_] => return replace_lines(&lines, &found, &wanted, old, new, strategy),
            _ if all => return replace_lines(&lines, &without_overlaps(found), &wanted, old, new, strategy),
            _ => {
                let numbers = found.iter().map(|place| place.start + 1).collect();
                let alike = with_same_shape(&lines, &wanted, found);
                if alike.len() == 1 {
                    return replace_lines(&lines, &alike, &wanted, old, new, Strategy::IndentationFlexible);
                }
                return Err(EditError::Ambiguous { lines: numbers, strategy: strategy.name() });
            }
        }
    }
    Err(EditError::NotFound(nearest(&lines, &wanted)))
}

/// Replaces text that looks like `old`. Returns `None` if there is no such text.
fn replace_look_alike(content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<Option<EditOutcome>, EditError> {
    let (normalized, plain) = (NormalizedContent::new(content), FoldedText::new(old.as_bytes()));
    if normalized.bytes.is_ascii() && old.is_ascii() || trim(&plain.bytes).is_empty() {
        return Ok(None);
    }
    let there = FoldedText::new(&normalized.bytes);
    let found = memmem::find_iter(&there.bytes, &plain.bytes);
    let places = found.filter_map(|place| there.origin(place..place + plain.bytes.len()));
    let most = if replace_all { usize::MAX } else { limits::EDIT_PLACES_MAX };
    let places: Vec<Range<usize>> = places.take(most).collect();
    if places.is_empty() {
        return Ok(None);
    }
    replace(content, &normalized, places, (old, new), Strategy::LookAlike, replace_all).map(Some)
}

/// Finds the byte ranges inside single lines that consist of the words of `old` with any whitespace
/// between them. `old` must be one line of at least two words. An identifier at the start or end of
/// `old` matches whole identifiers only. Returns nothing if the search exceeds
/// `limits::EDIT_COMPARE_STEPS_MAX`.
fn word_runs(bytes: &[u8], old: &str) -> Vec<Range<usize>> {
    let wanted: Vec<&[u8]> = words(old.as_bytes()).collect();
    let [first, _, ..] = wanted.as_slice() else { return Vec::new() };
    if old.contains('\n') {
        return Vec::new();
    }
    let blanks = |from: usize| bytes[from..].iter().take_while(|byte| is_blank(**byte)).count();
    let padded = |side: Option<&u8>| side.is_none_or(|byte| is_blank(*byte) || *byte == b'\n');
    let mut steps = limits::EDIT_COMPARE_STEPS_MAX;
    let mut found = Vec::new();
    for start in memmem::find_iter(bytes, first) {
        let end = wanted[1..].iter().try_fold(start + first.len(), |end, word| {
            steps = steps.saturating_sub(1);
            let next = end + blanks(end);
            (next > end && bytes[next..].starts_with(word)).then_some(next + word.len())
        });
        if steps == 0 {
            return Vec::new();
        }
        let Some(end) = end else { continue };
        let (before, after) = (start.checked_sub(1).and_then(|before| bytes.get(before)), bytes.get(end));
        let fits = (!old.starts_with([' ', '\t']) || padded(before)) && (!old.ends_with([' ', '\t']) || padded(after));
        if fits && !inside_identifier(before, bytes.get(start)) && !inside_identifier(bytes.get(end - 1), after) {
            found.push(start..end);
        }
    }
    found
}

/// Returns whether two adjacent bytes belong to one identifier.
fn inside_identifier(one: Option<&u8>, other: Option<&u8>) -> bool {
    let in_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii());
    in_name(one) && in_name(other)
}

/// Removes each range that overlaps the previous remaining range.
fn without_overlaps(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut end = 0;
    places.retain(|place| {
        let separate = place.start >= end;
        if separate {
            end = place.end;
        }
        separate
    });
    places
}

/// Removes whitespace from those ends of `new` at which `old` has whitespace, because the file's
/// own whitespace is kept there.
fn without_padding<'n>(old: &str, mut new: &'n str) -> &'n str {
    if old.starts_with([' ', '\t']) {
        new = new.trim_start_matches([' ', '\t']);
    }
    if old.ends_with([' ', '\t']) {
        new = new.trim_end_matches([' ', '\t']);
    }
    new
}

/// Replaces the byte ranges `places` of `normalized`, which have the text `old` or one that looks
/// like it, with `new`.
fn replace(
    content: &[u8],
    normalized: &NormalizedContent<'_>,
    places: Vec<Range<usize>>,
    (old, new): (&str, &str),
    strategy: Strategy,
    replace_all: bool,
) -> Result<EditOutcome, EditError> {
    if places.len() > 1 && !replace_all {
        let lines = normalized.lines(places.iter().map(|place| place.start));
        return Err(EditError::Ambiguous { lines, strategy: strategy.name() });
    }
    let mut bytes = Vec::with_capacity(content.len() + places.len() * new.len());
    let mut done = 0;
    // A replacement within one line needs no line endings.
    let breaks = if new.contains('\n') { normalized.breaks() } else { Vec::new() };
    for place in &places {
        bytes.extend_from_slice(&content[done..normalized.origin(place.start)]);
        let new = std::str::from_utf8(&normalized.bytes[place.clone()]).map_or(new.into(), |found| carry(old, new, found));
        push_with_endings(&mut bytes, &new, &normalized.endings(place.clone(), &breaks));
        done = normalized.origin(place.end);
    }
    bytes.extend_from_slice(&content[done..]);
    let line = normalized.lines(places.iter().take(1).map(|place| place.start)).first().copied().unwrap_or(1);
    Ok(EditOutcome { bytes, strategy: strategy.name(), match_count: places.len(), line })
}

/// Appends `new`. Each line of `new` receives the ending of the line that it replaces; additional
/// lines get the last of `endings`.
fn push_with_endings(bytes: &mut Vec<u8>, new: &str, endings: &[&str]) {
    let mut endings = endings.iter();
    let mut ending = "\n";
    for (number, line) in new.split('\n').enumerate() {
        if number > 0 {
            ending = endings.next().unwrap_or(&ending);
            bytes.extend_from_slice(ending.as_bytes());
        }
        bytes.extend_from_slice(line.as_bytes());
    }
}

fn as_bytes(lines: &[String]) -> Vec<&[u8]> {
    lines.iter().map(String::as_bytes).collect()
}

/// Replaces the line ranges `places` with `new`.
fn replace_lines(
    lines: &Lines<'_>,
    places: &[Range<usize>],
    wanted: &[&[u8]],
    old: &str,
    new: &str,
    strategy: Strategy,
) -> Result<EditOutcome, EditError> {
    let mut new_lines: Vec<&[u8]> = new.strip_suffix('\n').unwrap_or(new).split('\n').map(str::as_bytes).collect();
    if new.is_empty() && old.ends_with('\n') {
        new_lines.clear();
    }
    let style = IndentationStyle::from_lines(lines);
    let splice_at = |place: &Range<usize>| {
        let found: Vec<&[u8]> = lines.texts(place.clone()).collect();
        let carried = carry_lines(wanted, &new_lines, &found);
        let (wanted, new_lines) = match &carried {
            Some((wanted, new)) => (as_bytes(wanted), as_bytes(new)),
            None => (wanted.to_vec(), new_lines.clone()),
        };
        let reindenter = Reindenter::new(&wanted, &new_lines, lines, place.clone(), &style);
        let add = |line: &[u8], index| LineChange::Add { text: reindenter.reindent(line, index), ending: None };
        let mismatch =
            |(index, line): (usize, usize)| EditError::NotFound(Some(Nearest::new(lines, place.start + line, wanted[index])));
        let changes = merge(&wanted, &new_lines, &found, add).map_err(mismatch)?;
        Ok(Splice { at: place.start, changes, terminated: None })
    };
    let splices: Vec<Splice> = places.iter().map(splice_at).collect::<Result<_, EditError>>()?;
    let line = places.first().map_or(1, |place| place.start + 1);
    Ok(EditOutcome { bytes: splice(lines, &splices), strategy: strategy.name(), match_count: places.len(), line })
}
