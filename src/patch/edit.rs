//! Replacing a piece of a file by another. Finds the piece, if need be by looser and looser matchers, and leaves every other byte
//! as it was.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use super::block::merged;
use super::indentation::{Adoption, Style};
use super::lines::{Lines, is_blank, words};
use super::locate::{Strategy, single_out};
use super::nearest::{Nearest, nearest};
use super::refusal::EditError;
use super::splice::{LineChange, Splice, splice};
use super::view::View;
use crate::limits;

/// A file after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    pub bytes: Vec<u8>,
    /// How the piece was found.
    pub strategy: &'static str,
    pub match_count: usize,
    /// Line of the first match, from 1.
    pub line: usize,
}

/// Replaces `old` by `new` at its only place. Line endings and byte order marks never count, and what is put in takes the
/// endings of the place.
///
/// What is not there literally is looked for as whole lines, with and then without their blanks, then (if it is one line) as words
/// inside a line, then as a block of which both ends fit. Of whole lines the ending belongs to both sides or to none; what is put
/// in is indented as the file is, and lines that `old` and `new` share stay as the file has them; so do lines of a block that `old`
/// does not have, unless all of the block is new. Of several places the only one that is indented like `old` is taken, if there is
/// one.
///
/// With `replace_all`, all places are replaced that the first matcher finds which finds any; blocks must still be unique.
pub fn edit(content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<Edited, EditError> {
    if old.is_empty() {
        return Err(EditError::Empty);
    }
    if old == new {
        return Err(EditError::Identical);
    }
    let (old, new) = (plain(old), plain(new));
    if old == new {
        return Err(EditError::EndingsOnly);
    }
    let edited = match literal(content, &old, &new, replace_all)? {
        Some(edited) => edited,
        None => loose(content, &old, &new, replace_all)?,
    };
    if edited.bytes == content { Err(EditError::Unchanged { line: edited.line }) } else { Ok(edited) }
}

fn plain(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

fn literal(content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<Option<Edited>, EditError> {
    if old.is_empty() {
        return Err(EditError::Empty);
    }
    let view = View::of(content);
    let finder = memmem::Finder::new(old);
    let mut places: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(place) = finder.find(&view.bytes[from..])
        && (replace_all || places.len() < limits::EDIT_PLACES_MAX)
    {
        let start = from + place;
        places.push(start..start + old.len());
        // Places that overlap are several, too; but only one of them can be replaced.
        from = if replace_all { start + old.len() } else { start + 1 };
    }
    if places.is_empty() {
        return Ok(None);
    }
    replace(content, &view, places, new, Strategy::Exact, replace_all).map(Some)
}

fn loose(content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<Edited, EditError> {
    let lines = Lines::of(content);
    let wanted: Vec<&[u8]> = old.strip_suffix('\n').unwrap_or(old).split('\n').map(str::as_bytes).collect();
    for strategy in [Strategy::LineTrimmed, Strategy::WhitespaceNormalized, Strategy::BlockAnchor] {
        let found = strategy.places(&lines, &wanted);
        let all = replace_all && strategy != Strategy::BlockAnchor;
        match found.as_slice() {
            [] if strategy == Strategy::WhitespaceNormalized => {
                let view = View::of(content);
                let runs = runs(&view.bytes, old);
                let runs = if replace_all { apart(runs) } else { runs };
                if !runs.is_empty() {
                    return replace(content, &view, runs, unpadded(old, new), strategy, replace_all);
                }
            }
            [] => {}
            [_] => return replace_lines(&lines, &found, &wanted, old, new, strategy),
            _ if all => return replace_lines(&lines, &apart(found), &wanted, old, new, strategy),
            _ => {
                let numbers = found.iter().map(|place| place.start + 1).collect();
                let alike = single_out(&lines, &wanted, found);
                if alike.len() == 1 {
                    return replace_lines(&lines, &alike, &wanted, old, new, Strategy::IndentationFlexible);
                }
                return Err(EditError::Several { lines: numbers, strategy: strategy.name() });
            }
        }
    }
    Err(EditError::NotFound(nearest(&lines, &wanted)))
}

/// The words of `old` inside lines, at least two of them, whatever blanks are between; a name at an end of `old` is a whole one.
/// Gives up, with nothing found, when there is more to compare than `limits::EDIT_COMPARE_STEPS_MAX`.
fn runs(bytes: &[u8], old: &str) -> Vec<Range<usize>> {
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
        if fits && !inside_name(before, bytes.get(start)) && !inside_name(bytes.get(end - 1), after) {
            found.push(start..end);
        }
    }
    found
}

/// Whether two bytes that follow each other belong to one name.
fn inside_name(one: Option<&u8>, other: Option<&u8>) -> bool {
    let of_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii());
    of_name(one) && of_name(other)
}

/// Without those that overlap the one before.
fn apart(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut end = 0;
    places.retain(|place| {
        let apart = place.start >= end;
        if apart {
            end = place.end;
        }
        apart
    });
    places
}

/// `new` without the blanks at the ends at which `old` has some, too: those of the file stay.
fn unpadded<'n>(old: &str, mut new: &'n str) -> &'n str {
    if old.starts_with([' ', '\t']) {
        new = new.trim_start_matches([' ', '\t']);
    }
    if old.ends_with([' ', '\t']) {
        new = new.trim_end_matches([' ', '\t']);
    }
    new
}

/// Puts `new` at `places` of the view.
fn replace(
    content: &[u8],
    view: &View<'_>,
    places: Vec<Range<usize>>,
    new: &str,
    strategy: Strategy,
    replace_all: bool,
) -> Result<Edited, EditError> {
    if places.len() > 1 && !replace_all {
        return Err(EditError::Several { lines: view.lines(places.iter().map(|place| place.start)), strategy: strategy.name() });
    }
    let mut bytes = Vec::with_capacity(content.len() + places.len() * new.len());
    let mut done = 0;
    // A line of it needs none.
    let breaks = if new.contains('\n') { view.breaks() } else { Vec::new() };
    for place in &places {
        bytes.extend_from_slice(&content[done..view.origin(place.start)]);
        put(&mut bytes, new, &view.endings(place.clone(), &breaks));
        done = view.origin(place.end);
    }
    bytes.extend_from_slice(&content[done..]);
    let line = view.lines(places.iter().take(1).map(|place| place.start)).first().copied().unwrap_or(1);
    Ok(Edited { bytes, strategy: strategy.name(), match_count: places.len(), line })
}

/// Each line of `new` takes the ending of the line whose place it has; what is more, the last one.
fn put(bytes: &mut Vec<u8>, new: &str, endings: &[&str]) {
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

fn replace_lines(
    lines: &Lines<'_>,
    places: &[Range<usize>],
    wanted: &[&[u8]],
    old: &str,
    new: &str,
    strategy: Strategy,
) -> Result<Edited, EditError> {
    let mut new_lines: Vec<&[u8]> = new.strip_suffix('\n').unwrap_or(new).split('\n').map(str::as_bytes).collect();
    if new.is_empty() && old.ends_with('\n') {
        new_lines.clear();
    }
    let style = Style::of(lines);
    let splice_at = |place: &Range<usize>| {
        let adoption = Adoption::new(wanted, &new_lines, lines, place.clone(), &style);
        let add = |line: &[u8], index| LineChange::Add { text: adoption.adopt(line, index), ending: None };
        let found: Vec<&[u8]> = lines.texts(place.clone()).collect();
        let another =
            |(index, line): (usize, usize)| EditError::NotFound(Some(Nearest::new(lines, place.start + line, wanted[index])));
        let changes = merged(wanted, &new_lines, &found, add).map_err(another)?;
        Ok(Splice { at: place.start, changes, terminated: None })
    };
    let splices: Vec<Splice> = places.iter().map(splice_at).collect::<Result<_, EditError>>()?;
    let line = places.first().map_or(1, |place| place.start + 1);
    Ok(Edited { bytes: splice(lines, &splices), strategy: strategy.name(), match_count: places.len(), line })
}
