//! Reasons why an edit fails, and error messages that also tell the model what to do next.

use super::nearest::Nearest;
use crate::limits;

/// Why an edit changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The old and the new text are identical.
    Identical,
    /// The old and the new text differ in their line endings only.
    EndingsOnly,
    /// The old text is empty.
    Empty,
    /// The old text was not found. Contains the most similar line, if there is one.
    NotFound(Option<Nearest>),
    /// The old text was found more than once.
    Ambiguous {
        /// Line numbers of the matches, from 1. With `limits::EDIT_PLACES_MAX` entries there may be
        /// more matches.
        lines: Vec<usize>,
        /// Name of the matcher.
        strategy: &'static str,
    },
    /// The file already contains the new text.
    Unchanged {
        /// Line of the match, from 1.
        line: usize,
    },
}

/// Maximum number of line numbers listed in an error message.
const NUMBERS_MAX: usize = 20;
/// Maximum number of places whose lines an error message shows.
const PLACES_MAX: usize = 4;
/// Number of lines that are shown before and after such a place.
const PLACE_AROUND: usize = 2;
/// Maximum length of a line of a shown place, in bytes. A place with a longer line is not shown.
const PLACE_LINE_BYTES_MAX: usize = 300;
/// Maximum number of characters of a line quoted in an error message.
const QUOTE_CHARS_MAX: usize = 200;

impl EditError {
    /// Returns the error message for the model; `shown` is the displayed path of the file.
    /// `content` is the content of the file.
    pub(crate) fn message(&self, shown: &str, content: &[u8]) -> String {
        match self {
            EditError::Identical => "old_string and new_string are identical: there is nothing to change".into(),
            EditError::EndingsOnly => {
                "old_string and new_string differ only in line endings, which an edit does not change; use bash to convert them"
                    .into()
            }
            EditError::Empty => {
                format!("old_string is empty, but {shown} has content; give the text to replace")
            }
            EditError::NotFound(None) => format!("old_string was not found in {shown}; read the file and copy the text exactly"),
            EditError::NotFound(Some(nearest)) => {
                let places = places(content, &[nearest.line]);
                let advice = if places.is_empty() { "read the file and copy the text exactly" } else { "copy the text exactly" };
                format!("old_string was not found in {shown}; {}{places}", nearest.message("old_string", advice))
            }
            EditError::Ambiguous { lines, strategy } => {
                let how = if *strategy == "exact" { String::new() } else { format!(" (by {strategy})") };
                let (times, numbers) = (times(lines.len()), numbers(lines));
                let places = places(content, lines);
                format!(
                    "old_string was found {times} in {shown}{how}, at lines {numbers}; add lines around it until it is unique, or set replace_all{places}"
                )
            }
            EditError::Unchanged { line } => {
                format!("{shown} already contains new_string at line {line}: there is nothing to change")
            }
        }
    }
}

/// Returns the lines of a file around the given ones, as they can be copied, or an empty string if
/// they are long.
fn places(content: &[u8], lines: &[usize]) -> String {
    let text = String::from_utf8_lossy(content);
    let all: Vec<&str> = text.lines().collect();
    let mut places: Vec<(usize, usize)> = Vec::new();
    for line in lines.iter().take(PLACES_MAX) {
        let (first, last) = (line.saturating_sub(PLACE_AROUND).max(1), (line + PLACE_AROUND).min(all.len()));
        match places.last_mut() {
            Some(place) if first <= place.1 + 1 => place.1 = last,
            _ => places.push((first, last)),
        }
    }
    let mut shown = String::new();
    for (first, last) in places {
        let around = all.get(first - 1..last).unwrap_or_default();
        if !around.is_empty() && around.iter().all(|line| line.len() <= PLACE_LINE_BYTES_MAX) {
            shown += &format!("\nLines {first} to {last}:\n{}", around.join("\n"));
        }
    }
    shown
}

fn times(count: usize) -> String {
    if count < limits::EDIT_PLACES_MAX { format!("{count} times") } else { format!("at least {count} times") }
}

/// Formats line numbers separated by commas; a long list is truncated.
pub(crate) fn numbers(lines: &[usize]) -> String {
    let numbers: Vec<String> = lines.iter().take(NUMBERS_MAX).map(usize::to_string).collect();
    let more = if lines.len() > NUMBERS_MAX { ", …" } else { "" };
    format!("{}{more}", numbers.join(", "))
}

impl Nearest {
    /// Describes the difference between the found line and the expected line. `wanted_in` names the
    /// input that contains the expected line; `otherwise` is the advice to append, unless the line
    /// cannot be written as UTF-8.
    pub(crate) fn message(&self, wanted_in: &str, otherwise: &str) -> String {
        let (line, wanted) = (self.line, String::from_utf8_lossy(&self.wanted));
        match self.found.as_deref().map(std::str::from_utf8) {
            Some(Ok(found)) => {
                let (found, wanted) = (found.trim(), wanted.trim());
                let same = found.chars().zip(wanted.chars()).take_while(|(one, other)| one == other).count();
                let points = code_points(found, wanted, same).map(|(found, wanted)| format!(" ({found}, not {wanted})"));
                let (found, wanted, points) = (quote(found, same), quote(wanted, same), points.unwrap_or_default());
                format!(
                    "the nearest place is line {line}, which is `{found}` where {wanted_in} has `{wanted}`{points}; {otherwise}"
                )
            }
            Some(Err(_)) => format!(
                "the nearest place is line {line}, which is not UTF-8, so {wanted_in} cannot contain it; choose other lines, or use bash"
            ),
            None => {
                format!("the file has no line {line}, where {wanted_in} has `{}`; {otherwise}", quote(wanted.trim(), 0))
            }
        }
    }
}

/// Returns the code points of the first characters that differ, if one of them is not ASCII: such
/// characters can look alike.
fn code_points(found: &str, wanted: &str, place: usize) -> Option<(String, String)> {
    let (found, wanted) = (found.chars().nth(place)?, wanted.chars().nth(place)?);
    let name = |character: char| format!("U+{:04X}", u32::from(character));
    (!found.is_ascii() || !wanted.is_ascii()).then(|| (name(found), name(wanted)))
}

/// Returns the part of `text` around the character at `place`, at most `QUOTE_CHARS_MAX`
/// characters, with `…` where text is omitted.
fn quote(text: &str, place: usize) -> String {
    let start = if place < QUOTE_CHARS_MAX { 0 } else { place - QUOTE_CHARS_MAX / 2 };
    let piece: String = text.chars().skip(start).take(QUOTE_CHARS_MAX).collect();
    let more = |is: bool| if is { "…" } else { "" };
    format!("{}{piece}{}", more(start > 0), more(text.chars().nth(start + QUOTE_CHARS_MAX).is_some()))
}
