//! Breaks the lines of prose at words while they arrive.

use unicode_width::UnicodeWidthChar;

/// Maximum width of a line of prose, in columns.
const COLUMNS_MAX: usize = 100;

/// The line that is being written. Words that are longer than a line are not broken.
#[derive(Debug, Default)]
pub(crate) struct WordWrap {
    columns: usize,
    /// Columns before the text of a list entry or a quote; later lines begin below the text.
    indent: usize,
    column: usize,
    /// The spaces before the word.
    spaces: usize,
    word: String,
    word_width: usize,
    in_sequence: bool,
}

impl WordWrap {
    /// Creates an empty line for a terminal of this width.
    pub(crate) fn new(columns: usize) -> WordWrap {
        WordWrap { columns: columns.min(COLUMNS_MAX), ..WordWrap::default() }
    }

    pub(crate) fn resize(&mut self, columns: usize) {
        self.columns = columns.min(COLUMNS_MAX);
    }

    /// Begins a line with a mark of this width, which was written.
    pub(crate) fn begin(&mut self, width: usize) {
        (self.indent, self.column) = (width, width);
    }

    /// Adds text, which can have colours. With `keep`, its spaces do not end a line.
    pub(crate) fn push(&mut self, text: &str, keep: bool, out: &mut String) {
        for character in text.chars() {
            if character == '\x1b' || self.in_sequence {
                self.in_sequence = !character.is_ascii_alphabetic();
                self.word.push(character);
            } else if character == ' ' && !keep {
                self.end_word(out);
                self.spaces += 1;
            } else {
                self.word.push(character);
                self.word_width += character.width().unwrap_or(0);
            }
        }
    }

    /// Ends the line.
    pub(crate) fn end(&mut self, out: &mut String) {
        self.end_word(out);
        *self = WordWrap::new(self.columns);
    }

    fn end_word(&mut self, out: &mut String) {
        let (word, width) = (std::mem::take(&mut self.word), std::mem::take(&mut self.word_width));
        if width == 0 {
            *out += &word;
            return;
        }
        let is_first = self.column == self.indent;
        if !is_first && self.column + self.spaces + width > self.columns {
            *out += "\n";
            *out += &" ".repeat(self.indent);
            self.column = self.indent;
        } else {
            *out += &" ".repeat(self.spaces);
            self.column += self.spaces;
        }
        self.spaces = 0;
        *out += &word;
        self.column += width;
    }
}
