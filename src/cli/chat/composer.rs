//! The text that the user writes in the chat: lines with a cursor, long pastes as marks, and the
//! texts that were sent before.

use unicode_width::UnicodeWidthChar;

use crate::terminal_text::output;

/// A paste with more lines or characters is shown as a mark.
const PASTE_LINES: usize = 10;
const PASTE_CHARS: usize = 1_000;
/// Maximum number of texts in the history.
const HISTORY_MAX: usize = 1_000;

/// The text and the cursor.
#[derive(Debug, Default)]
pub(crate) struct Composer {
    text: String,
    /// Byte position in `text`.
    cursor: usize,
    /// The pasted texts whose marks may be in `text`, with these marks.
    pastes: Vec<(String, String)>,
    /// Earlier texts, oldest first.
    history: Vec<String>,
    /// The text of the history that is shown, and the text that it replaced.
    recalled: Option<(usize, String)>,
}

/// The rows of the text on the terminal, and the row and column of the cursor.
pub(crate) struct ComposerRows {
    pub rows: Vec<String>,
    pub cursor: (usize, usize),
}

impl Composer {
    /// Creates a composer with the texts of earlier sessions, oldest first.
    pub(crate) fn new(history: Vec<String>) -> Composer {
        Composer { history, ..Composer::default() }
    }

    /// Returns the text with its marks, and the position of the cursor in bytes.
    pub(crate) fn text(&self) -> (&str, usize) {
        (&self.text, self.cursor)
    }

    /// Returns the text with the pasted texts in place of their marks.
    pub(crate) fn whole(&self) -> String {
        self.pastes.iter().fold(self.text.clone(), |text, (mark, pasted)| text.replace(mark.as_str(), pasted))
    }

    /// Replaces the text.
    pub(crate) fn set(&mut self, text: &str) {
        (self.text, self.pastes, self.recalled) = (text.into(), Vec::new(), None);
        self.cursor = self.text.len();
    }

    /// Replaces the text from `start`, in bytes, to the cursor.
    pub(crate) fn replace_before_cursor(&mut self, start: usize, text: &str) {
        self.text.replace_range(start..self.cursor, text);
        self.cursor = start + text.len();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Returns the text with the pasted texts in place of their marks, and empties the composer.
    pub(crate) fn take(&mut self) -> String {
        let text = self.whole();
        self.set("");
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
            let old = self.history.len().saturating_sub(HISTORY_MAX);
            self.history.drain(..old);
        }
        text
    }

    /// Puts a text before the present one.
    pub(crate) fn give_back(&mut self, text: &str) {
        let separator = if self.is_empty() { "" } else { "\n" };
        self.text = format!("{text}{separator}{}", self.text.trim_start());
        self.cursor = self.text.len();
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Inserts a pasted text. A long one is shown as a mark.
    pub(crate) fn paste(&mut self, pasted: &str) {
        let pasted = pasted.replace("\r\n", "\n").replace('\r', "\n");
        let lines = pasted.lines().count();
        if lines <= PASTE_LINES && pasted.chars().count() <= PASTE_CHARS {
            return self.insert(&pasted);
        }
        let mark = format!("[paste {}: {lines} lines]", self.pastes.len() + 1);
        self.insert(&mark);
        self.pastes.push((mark, pasted));
    }

    pub(crate) fn backspace(&mut self) {
        if let Some(before) = self.text[..self.cursor].chars().next_back() {
            self.cursor -= before.len_utf8();
            self.text.remove(self.cursor);
        }
    }

    pub(crate) fn delete(&mut self) {
        if self.cursor < self.text.len() {
            self.text.remove(self.cursor);
        }
    }

    /// Deletes the word before the cursor.
    pub(crate) fn delete_word(&mut self) {
        let start = self.word_start();
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    /// Deletes the line up to the cursor.
    pub(crate) fn delete_to_line_start(&mut self) {
        let start = self.line_start();
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    /// Deletes the line from the cursor on.
    pub(crate) fn delete_to_line_end(&mut self) {
        let start = self.cursor;
        self.end();
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    pub(crate) fn left(&mut self) {
        self.cursor -= self.text[..self.cursor].chars().next_back().map_or(0, char::len_utf8);
    }

    pub(crate) fn right(&mut self) {
        self.cursor += self.text[self.cursor..].chars().next().map_or(0, char::len_utf8);
    }

    pub(crate) fn word_left(&mut self) {
        self.cursor = self.word_start();
    }

    pub(crate) fn word_right(&mut self) {
        let rest = &self.text[self.cursor..];
        let word = rest.len() - rest.trim_start().len();
        self.cursor += word + rest[word..].find(char::is_whitespace).unwrap_or(rest.len() - word);
    }

    pub(crate) fn home(&mut self) {
        self.cursor = self.line_start();
    }

    pub(crate) fn end(&mut self) {
        self.cursor += self.text[self.cursor..].find('\n').unwrap_or(self.text.len() - self.cursor);
    }

    /// Moves the cursor to the line above; from the first line, shows the text that was sent
    /// before.
    pub(crate) fn up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            let column = self.text[start..self.cursor].chars().count();
            let above = self.text[..start - 1].rfind('\n').map_or(0, |end| end + 1);
            return self.move_to(above, column);
        }
        let shown = self.recalled.as_ref().map_or(self.history.len(), |(at, _)| *at);
        let Some(at) = shown.checked_sub(1) else { return };
        let draft = self.recalled.take().map_or_else(|| self.text.clone(), |(_, draft)| draft);
        self.show(self.history[at].clone());
        self.recalled = Some((at, draft));
    }

    /// Moves the cursor to the line below; from the last line, shows the text that was sent later.
    pub(crate) fn down(&mut self) {
        let start = self.line_start();
        if let Some(length) = self.text[self.cursor..].find('\n') {
            let column = self.text[start..self.cursor].chars().count();
            return self.move_to(self.cursor + length + 1, column);
        }
        let Some((at, draft)) = self.recalled.take() else { return };
        match self.history.get(at + 1).cloned() {
            Some(later) => {
                self.show(later);
                self.recalled = Some((at + 1, draft));
            }
            None => self.show(draft),
        }
    }

    fn show(&mut self, text: String) {
        self.text = text;
        self.cursor = self.text.len();
    }

    fn move_to(&mut self, line: usize, column: usize) {
        let text = self.text[line..].split('\n').next().unwrap_or_default();
        self.cursor = line + text.char_indices().nth(column).map_or(text.len(), |(at, _)| at);
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |end| end + 1)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |space| space + before[space..].chars().next().map_or(1, char::len_utf8))
    }

    /// Breaks the text into rows of at most `columns` columns.
    pub(crate) fn rows(&self, columns: usize) -> ComposerRows {
        let (mut rows, mut cursor) = (vec![String::new()], (0, 0));
        let mut used = 0;
        for (at, character) in self.text.char_indices().chain([(self.text.len(), '\0')]) {
            let width = if character == '\t' { 1 } else { character.width().unwrap_or(0) };
            if used + width > columns {
                rows.push(String::new());
                used = 0;
            }
            if at == self.cursor {
                // The cursor after a full row is on the next one.
                if used == columns {
                    rows.push(String::new());
                    used = 0;
                }
                cursor = (rows.len() - 1, used);
            }
            match character {
                '\n' => {
                    rows.push(String::new());
                    used = 0;
                }
                '\0' => {}
                character => {
                    // Characters of a paste that act on a terminal are not shown.
                    let shown = if character == '\t' { ' ' } else { character };
                    let row = rows.last_mut().expect("rows are never empty");
                    *row += &output(shown.encode_utf8(&mut [0; 4]));
                    used += width;
                }
            }
        }
        ComposerRows { rows, cursor }
    }
}
