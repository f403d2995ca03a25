//! The text that the user writes in the chat: lines with a cursor, long pastes as marks, and the
//! texts that were sent before.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::terminal_text::output;

/// A paste with more lines or characters is shown as a mark.
const PASTE_LINES: usize = 10;
const PASTE_CHARS: usize = 1_000;
/// Maximum number of texts in the history.
const HISTORY_MAX: usize = 1_000;

/// The text and the cursor. The cursor is never inside a grapheme cluster (Unicode Standard Annex
/// 29) or the mark of a paste, and both are deleted as a whole.
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

    /// Returns the texts that were sent, oldest first.
    pub(crate) fn history(&self) -> &[String] {
        &self.history
    }

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
        self.delete_from(self.before());
    }

    pub(crate) fn delete(&mut self) {
        self.text.replace_range(self.cursor..self.after(), "");
    }

    /// Deletes the word before the cursor.
    pub(crate) fn delete_word(&mut self) {
        self.delete_from(self.word_start());
    }

    pub(crate) fn delete_to_line_start(&mut self) {
        self.delete_from(self.line_start());
    }

    pub(crate) fn delete_to_line_end(&mut self) {
        let start = self.cursor;
        self.end();
        self.delete_from_to(start);
    }

    /// Deletes the text from `start`, in bytes, to the cursor.
    fn delete_from(&mut self, start: usize) {
        self.replace_before_cursor(start, "");
    }

    pub(crate) fn left(&mut self) {
        self.cursor = self.before();
    }

    /// Moves the cursor to the left, not beyond the start of its line.
    pub(crate) fn left_in_line(&mut self) {
        if self.cursor > self.line_start() {
            self.left();
        }
    }

    /// Moves the cursor to the start of the next word.
    pub(crate) fn next_word(&mut self) {
        let rest = &self.text[self.cursor..];
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let blanks = rest[word..].len() - rest[word..].trim_start().len();
        self.cursor = self.outside(self.cursor + word + blanks).end;
    }

    /// Deletes to the start of the next word.
    pub(crate) fn delete_next_word(&mut self) {
        let start = self.cursor;
        self.next_word();
        self.delete_from_to(start);
    }

    /// Deletes the text from `start` to the cursor, which a movement has passed.
    fn delete_from_to(&mut self, start: usize) {
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    pub(crate) fn right(&mut self) {
        self.cursor = self.after();
    }

    /// Returns the start of the grapheme cluster or mark before the cursor.
    fn before(&self) -> usize {
        self.outside(self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)).start
    }

    /// Returns the end of the grapheme cluster or mark after the cursor.
    fn after(&self) -> usize {
        self.outside(self.cursor + self.text[self.cursor..].graphemes(true).next().map_or(0, str::len)).end
    }

    /// Returns the mark of a paste that has the position inside it; otherwise the empty range at
    /// the position.
    fn outside(&self, position: usize) -> Range<usize> {
        let marks = self.pastes.iter().flat_map(|(mark, _)| self.text.match_indices(mark.as_str()));
        let mut ranges = marks.map(|(start, mark)| start..start + mark.len());
        ranges.find(|range| range.start < position && position < range.end).unwrap_or(position..position)
    }

    pub(crate) fn word_left(&mut self) {
        self.cursor = self.word_start();
    }

    pub(crate) fn word_right(&mut self) {
        let rest = &self.text[self.cursor..];
        let word = rest.len() - rest.trim_start().len();
        let end = word + rest[word..].find(char::is_whitespace).unwrap_or(rest.len() - word);
        self.cursor = self.outside(self.cursor + end).end;
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
            let column = self.text[start..self.cursor].graphemes(true).count();
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
            let column = self.text[start..self.cursor].graphemes(true).count();
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
        let position = line + text.grapheme_indices(true).nth(column).map_or(text.len(), |(at, _)| at);
        self.cursor = self.outside(position).end;
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |end| end + 1)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        let space = before.rfind(char::is_whitespace);
        let start = space.map_or(0, |space| space + before[space..].chars().next().map_or(1, char::len_utf8));
        self.outside(start).start
    }

    /// Breaks the text into rows of at most `columns` columns.
    pub(crate) fn rows(&self, columns: usize) -> ComposerRows {
        let (mut rows, mut cursor) = (vec![String::new()], (0, 0));
        let mut used = 0;
        for (at, grapheme) in self.text.grapheme_indices(true).chain([(self.text.len(), "")]) {
            // Characters of a paste that act on a terminal are not shown.
            let shown = output(grapheme).replace('\t', " ");
            let width = if shown == "\n" { 0 } else { shown.width() };
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
            if shown == "\n" {
                rows.push(String::new());
                used = 0;
            } else {
                *rows.last_mut().expect("rows are never empty") += &shown;
                used += width;
            }
        }
        ComposerRows { rows, cursor }
    }
}
