//! Why an edit was not made, in words that say what to do instead.

use super::nearest::Nearest;
use crate::limits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// Old and new are the same.
    Identical,
    /// They differ in their line endings only.
    EndingsOnly,
    /// There is nothing to look for.
    Empty,
    NotFound(Option<Nearest>),
    /// The lines at which it was found, from 1, and how. `limits::EDIT_PLACES_MAX` mean that there may be more.
    Several {
        lines: Vec<usize>,
        strategy: &'static str,
    },
    /// The file says already what it should say.
    Unchanged {
        line: usize,
    },
}

/// Line numbers that an error lists, and characters of a line that it quotes.
const NUMBERS_MAX: usize = 20;
const QUOTE_CHARS_MAX: usize = 200;

impl EditError {
    /// `shown` is the file.
    pub fn message(&self, shown: &str) -> String {
        match self {
            EditError::Identical => "old_string and new_string are identical: there is nothing to change".into(),
            EditError::EndingsOnly => {
                "old_string and new_string differ in their line endings only, and an edit keeps those of the file; use bash to change them"
                    .into()
            }
            EditError::Empty => {
                format!("old_string is empty, but {shown} has content; give the text to replace, or use write to overwrite the file")
            }
            EditError::NotFound(None) => format!("old_string was not found in {shown}; read the file and copy the text exactly"),
            EditError::NotFound(Some(nearest)) => {
                format!("old_string was not found in {shown}; {}", nearest.message("old_string", "read the file and copy the text exactly"))
            }
            EditError::Several { lines, strategy } => {
                let how = if *strategy == "exact" { String::new() } else { format!(" (by {strategy})") };
                let (times, numbers) = (times(lines.len()), numbers(lines));
                format!(
                    "old_string was found {times} in {shown}{how}, at lines {numbers}; add lines around it until it is unique, or set replace_all"
                )
            }
            EditError::Unchanged { line } => {
                format!("{shown} says at line {line} already what new_string says: there is nothing to change")
            }
        }
    }
}

fn times(count: usize) -> String {
    if count < limits::EDIT_PLACES_MAX { format!("{count} times") } else { format!("at least {count} times") }
}

/// As a list, of which a long one is cut.
pub fn numbers(lines: &[usize]) -> String {
    let numbers: Vec<String> = lines.iter().take(NUMBERS_MAX).map(usize::to_string).collect();
    let more = if lines.len() > NUMBERS_MAX { ", …" } else { "" };
    format!("{}{more}", numbers.join(", "))
}

impl Nearest {
    /// `wanted_in` is what was looked for, and `otherwise` what to do about it, where anything can be done.
    pub fn message(&self, wanted_in: &str, otherwise: &str) -> String {
        let (line, wanted) = (self.line, String::from_utf8_lossy(&self.wanted));
        match self.found.as_deref().map(std::str::from_utf8) {
            Some(Ok(found)) => {
                let (found, wanted) = (found.trim(), wanted.trim());
                let same = found.chars().zip(wanted.chars()).take_while(|(one, other)| one == other).count();
                let (found, wanted) = (quote(found, same), quote(wanted, same));
                format!("the nearest place is line {line}, which is `{found}` where {wanted_in} has `{wanted}`; {otherwise}")
            }
            Some(Err(_)) => format!(
                "the nearest place is line {line}, which is no UTF-8, so {wanted_in} cannot have it; choose other lines, or use bash"
            ),
            None => {
                format!("the file ends before line {line}, where {wanted_in} has `{}`; {otherwise}", quote(wanted.trim(), 0))
            }
        }
    }
}

/// What a long text has around the character at `place`.
fn quote(text: &str, place: usize) -> String {
    let start = if place < QUOTE_CHARS_MAX { 0 } else { place - QUOTE_CHARS_MAX / 2 };
    let piece: String = text.chars().skip(start).take(QUOTE_CHARS_MAX).collect();
    let more = |is: bool| if is { "…" } else { "" };
    format!("{}{piece}{}", more(start > 0), more(text.chars().nth(start + QUOTE_CHARS_MAX).is_some()))
}
