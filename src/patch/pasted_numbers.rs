//! Line numbers that a model copied from the results of `read` into a text.

use std::borrow::Cow;

/// Minimum number of lines: one line that begins with a number may be of a table.
const LINES_MIN: usize = 2;
/// Number of columns in which `read` aligns a number to the right.
const COLUMNS: usize = 6;

/// Returns the lines without their numbers, if there are several lines and each has the next number
/// in the form of `read`. `None` for any other text.
pub(crate) fn without_numbers(text: &str) -> Option<String> {
    let lines: Vec<(usize, &str)> = text.split_inclusive('\n').map(numbered).collect::<Option<_>>()?;
    let is_next = |pair: &[(usize, &str)]| pair[1].0 == pair[0].0 + 1;
    (lines.len() >= LINES_MIN && lines.windows(2).all(is_next)).then(|| lines.iter().map(|(_, line)| *line).collect())
}

/// Returns the text that replaces a text whose lines had numbers. It may repeat them, in any order.
/// `None` if only some of its lines have one.
pub(crate) fn replacement(text: &str) -> Option<Cow<'_, str>> {
    let lines: Vec<Option<(usize, &str)>> = text.split_inclusive('\n').map(numbered).collect();
    match lines.iter().flatten().count() {
        0 => Some(text.into()),
        count if count == lines.len() => Some(lines.iter().flatten().map(|(_, line)| *line).collect::<String>().into()),
        _ => None,
    }
}

/// Splits a line into its number and its text.
fn numbered(line: &str) -> Option<(usize, &str)> {
    let (number, text) = line.split_once('\t')?;
    let digits = number.trim_start_matches(' ');
    let is_number = !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && number.len() == digits.len().max(COLUMNS)).then(|| Some((digits.parse().ok()?, text))).flatten()
}
