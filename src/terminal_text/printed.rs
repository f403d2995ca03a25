//! The text that a terminal would show after a program's output.

use std::collections::VecDeque;

use super::sequences::{CharacterRole, SequencePart};

/// Maximum number of lines that later output can change: sequences move the cursor up to them.
const ROWS_MAX: usize = 32;
/// Maximum length of the part of a line that later output can change, in characters.
const ROW_CHARS_MAX: usize = 16 << 10;

/// Converts output that arrives in pieces, which may be split anywhere, to the text that a terminal
/// would show: a line that a program overwrites, as progress bars do, is shown in its last state,
/// and there are no control characters except newline and tab. Of control sequences, those that
/// move the cursor to an earlier line or column or erase a line have an effect (ECMA-48). Invalid
/// UTF-8 becomes U+FFFD.
#[derive(Clone, Debug, Default)]
pub struct PrintedText {
    state: SequencePart,
    /// The parameters of the control sequence that has begun.
    parameters: String,
    /// The last lines.
    rows: VecDeque<Vec<char>>,
    row: usize,
    column: usize,
    /// The beginning of a character.
    incomplete: Vec<u8>,
}

impl PrintedText {
    /// Adds the next piece. Returns the text that later output cannot change any more.
    pub fn push(&mut self, piece: &[u8]) -> String {
        let mut done = String::new();
        let mut bytes = std::mem::take(&mut self.incomplete);
        bytes.extend_from_slice(piece);
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            chunk.valid().chars().for_each(|character| self.add(character, &mut done));
            at += chunk.valid().len() + chunk.invalid().len();
            let is_begun = || std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            if at == bytes.len() && is_begun() {
                self.incomplete = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.add(char::REPLACEMENT_CHARACTER, &mut done);
            }
        }
        done
    }

    /// Returns the rest of the text.
    pub fn finish(mut self) -> String {
        let mut rest = String::new();
        if !self.incomplete.is_empty() {
            self.add(char::REPLACEMENT_CHARACTER, &mut rest);
        }
        let rows: Vec<String> = self.rows.iter().map(|row| row.iter().collect()).collect();
        rest + &rows.join("\n")
    }

    /// Returns whether the output so far ends within a control sequence.
    pub(crate) fn is_in_sequence(&self) -> bool {
        self.state != SequencePart::Text
    }

    fn add(&mut self, character: char, done: &mut String) {
        let before = self.state;
        let (state, token) = before.next(character);
        self.state = state;
        match token {
            CharacterRole::Newline => {
                (self.row, self.column) = (self.row + 1, 0);
                self.rows.resize_with(self.rows.len().max(self.row + 1), Vec::new);
                if self.rows.len() > ROWS_MAX {
                    self.row -= 1;
                    done.extend(self.rows.pop_front().into_iter().flatten().chain(['\n']));
                }
            }
            CharacterRole::Return => self.column = 0,
            CharacterRole::Control => self.control(character),
            CharacterRole::Hidden if self.state == SequencePart::Csi && before == SequencePart::Csi => {
                self.parameters.push(character)
            }
            CharacterRole::Hidden => self.parameters.clear(),
            CharacterRole::Text if character == '\u{8}' => self.column = self.column.saturating_sub(1),
            CharacterRole::Text if character.is_control() && character != '\t' => {}
            CharacterRole::Text => self.put(character, done),
        }
    }

    /// Writes a character at the cursor.
    fn put(&mut self, character: char, done: &mut String) {
        if self.column >= ROW_CHARS_MAX {
            // Complete the lines up to the cursor; the rest of the line begins a new row.
            for (number, row) in self.rows.drain(..=self.row).enumerate() {
                done.extend((number > 0).then_some('\n'));
                done.extend(row);
            }
            (self.row, self.column) = (0, 0);
        }
        if self.rows.is_empty() {
            self.rows.push_back(Vec::new());
        }
        let row = &mut self.rows[self.row];
        match row.get_mut(self.column) {
            Some(old) => *old = character,
            None => {
                row.resize(self.column, ' ');
                row.push(character);
            }
        }
        self.column += 1;
    }

    /// Applies a control sequence, by its last character.
    fn control(&mut self, last: char) {
        let parameters = std::mem::take(&mut self.parameters);
        let number = parameters.parse::<usize>().ok();
        let count = number.unwrap_or(1).clamp(1, ROW_CHARS_MAX);
        let lowest = self.rows.len().saturating_sub(1);
        match last {
            'A' | 'F' => self.row = self.row.saturating_sub(count),
            'B' | 'E' => self.row = (self.row + count).min(lowest),
            'C' => self.column = (self.column + count).min(ROW_CHARS_MAX - 1),
            'D' => self.column = self.column.saturating_sub(count),
            'G' => self.column = count - 1,
            _ => {}
        }
        if matches!(last, 'E' | 'F') {
            self.column = 0;
        }
        let (column, Some(row)) = (self.column, self.rows.get_mut(self.row)) else { return };
        match (last, number.unwrap_or(0)) {
            ('K' | 'J', 0) => row.truncate(column),
            ('K', 1) => row.iter_mut().take(column + 1).for_each(|character| *character = ' '),
            ('K', 2) => row.clear(),
            _ => return,
        }
        if last == 'J' {
            self.rows.truncate(self.row + 1);
        }
    }
}

/// Converts a whole output, as [`PrintedText`] does.
pub fn printed(bytes: &[u8]) -> String {
    let mut text = PrintedText::default();
    text.push(bytes) + &text.finish()
}
