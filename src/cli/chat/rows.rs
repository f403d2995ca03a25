//! Breaks lines with colours into rows of the terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Breaks a line into rows of at most `columns` columns. Colour sequences take no columns.
pub(crate) fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let (mut rows, mut used, mut in_sequence) = (vec![String::new()], 0, false);
    for character in line.chars() {
        let width = match character {
            '\x1b' => {
                in_sequence = true;
                0
            }
            _ if in_sequence => {
                in_sequence = !character.is_ascii_alphabetic();
                0
            }
            '\t' => 1,
            character => character.width().unwrap_or(0),
        };
        if used + width > columns {
            rows.push(String::new());
            used = 0;
        }
        used += width;
        rows.last_mut().expect("rows are never empty").push(if character == '\t' { ' ' } else { character });
    }
    rows
}

/// Breaks a line without colours at words. The rows after the first begin with `indent` spaces.
pub(crate) fn wrapped_words(line: &str, columns: usize, indent: usize) -> Vec<String> {
    let start = line.len() - line.trim_start().len();
    let mut rows = vec![line[..start].to_owned()];
    for word in line[start..].split(' ') {
        let row = rows.last_mut().expect("rows are never empty");
        let is_empty = row.trim().is_empty();
        if is_empty || row.width() + 1 + word.width() <= columns {
            *row += if is_empty { "" } else { " " };
            *row += word;
        } else {
            rows.push(format!("{}{word}", " ".repeat(indent)));
        }
    }
    // A word can be longer than a row.
    rows.iter().flat_map(|row| wrapped(row, columns)).collect()
}

/// Shortens a line without colours to one row.
pub(crate) fn shortened(line: &str, columns: usize) -> String {
    let rows = wrapped(line, columns.max(2) - 1);
    match rows.as_slice() {
        [row] => row.clone(),
        rows => format!("{}…", rows[0]),
    }
}
