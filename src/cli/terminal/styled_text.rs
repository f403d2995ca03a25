//! Text with styles, and its rows on a terminal.

use std::ops::Range;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One of the 16 colours of terminals that is legible on a light and on a dark background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Blue = 34,
    Magenta = 35,
    Cyan = 36,
}

/// The attributes and the colour of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextStyle {
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underlined: bool,
    pub struck: bool,
    pub colour: Option<Colour>,
}

impl TextStyle {
    /// Returns the style of a text that needs no attention.
    pub(crate) const fn dim() -> TextStyle {
        TextStyle { bold: false, dim: true, italic: false, underlined: false, struck: false, colour: None }
    }

    /// Returns the style of a text in a colour.
    pub(crate) const fn coloured(colour: Colour) -> TextStyle {
        TextStyle { bold: false, dim: false, italic: false, underlined: false, struck: false, colour: Some(colour) }
    }

    /// Formats a text, which must be escaped for a terminal.
    pub(crate) fn paint(self, text: &str) -> String {
        let codes = [
            self.bold.then_some(1),
            self.dim.then_some(2),
            self.italic.then_some(3),
            self.underlined.then_some(4),
            self.struck.then_some(9),
            self.colour.map(|colour| colour as u8),
        ];
        let codes: Vec<String> = codes.into_iter().flatten().map(|code| code.to_string()).collect();
        if codes.is_empty() || text.is_empty() { text.into() } else { format!("\x1b[{}m{text}\x1b[0m", codes.join(";")) }
    }
}

/// A part of a line that has one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub text: String,
    pub style: TextStyle,
}

/// A text of spans. Its text has no control characters but line breaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StyledText(pub Vec<Span>);

impl StyledText {
    /// Adds text.
    pub(crate) fn push(&mut self, text: &str, style: TextStyle) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.0.push(Span { text: text.into(), style }),
        }
    }

    /// Reduces the text to `columns` columns.
    pub(crate) fn shorten(&mut self, columns: usize) {
        if self.width() <= columns {
            return;
        }
        let mut left = columns.saturating_sub(1);
        for span in std::mem::take(&mut self.0) {
            let fits = |character: &char| {
                let width = character.width().unwrap_or(0);
                let fits = width <= left;
                left = if fits { left - width } else { 0 };
                fits
            };
            let text: String = span.text.chars().take_while(fits).collect();
            self.push(&text, span.style);
        }
        self.push("…", TextStyle::default());
    }

    /// Removes the spaces at the end.
    pub(crate) fn trim_end(&mut self) {
        while let Some(last) = self.0.last_mut() {
            last.text.truncate(last.text.trim_end().len());
            if !last.text.is_empty() {
                return;
            }
            self.0.pop();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text without its styles.
    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }

    /// Underlines a part of the text, by its bytes.
    pub(crate) fn underline(&mut self, part: Range<usize>) {
        let (mut at, spans) = (0, std::mem::take(&mut self.0));
        for span in spans {
            let cut = |bytes: usize| bytes.clamp(at, at + span.text.len()) - at;
            let (start, end) = (cut(part.start), cut(part.end));
            self.push(&span.text[..start], span.style);
            self.push(&span.text[start..end], TextStyle { underlined: true, ..span.style });
            self.push(&span.text[end..], span.style);
            at += span.text.len();
        }
    }

    /// Returns the width in columns.
    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|span| span.text.width()).sum()
    }

    /// Formats the text, with its styles if `colour` is true.
    pub(crate) fn paint(&self, colour: bool) -> String {
        self.0.iter().map(|span| if colour { span.style.paint(&span.text) } else { span.text.clone() }).collect()
    }

    /// Breaks the text into rows of at most `columns` columns: at line breaks, and at spaces. A
    /// word that is wider than a row is not broken.
    pub(crate) fn wrapped(&self, columns: usize) -> Vec<StyledText> {
        let mut wrap = Wrap { columns, ..Wrap::default() };
        for span in &self.0 {
            let mut rest = span.text.as_str();
            while let Some(at) = rest.find([' ', '\n', '\t']) {
                wrap.word.push(&rest[..at], span.style);
                wrap.end_word();
                match rest.as_bytes()[at] {
                    b'\n' => wrap.end_row(),
                    _ => wrap.spaces.push(" ", span.style),
                }
                rest = &rest[at + 1..];
            }
            wrap.word.push(rest, span.style);
        }
        wrap.end_word();
        if !wrap.row.is_empty() {
            wrap.end_row();
        }
        wrap.rows
    }

    /// Returns the width of the widest word.
    pub(crate) fn word_width(&self) -> usize {
        self.wrapped(0).iter().map(StyledText::width).max().unwrap_or(0)
    }
}

/// A text that is being broken into rows.
#[derive(Default)]
struct Wrap {
    columns: usize,
    rows: Vec<StyledText>,
    row: StyledText,
    row_width: usize,
    /// The spaces between the row and the word.
    spaces: StyledText,
    word: StyledText,
}

impl Wrap {
    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let (word, spaces) = (std::mem::take(&mut self.word), std::mem::take(&mut self.spaces));
        let (width, between) = (word.width(), spaces.width());
        if self.row.is_empty() || self.row_width + between + width <= self.columns {
            // The spaces at the start of a line are kept.
            spaces.0.iter().for_each(|span| self.row.push(&span.text, span.style));
            self.row_width += between;
        } else {
            self.end_row();
        }
        word.0.iter().for_each(|span| self.row.push(&span.text, span.style));
        self.row_width += width;
    }

    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
        (self.row_width, self.spaces) = (0, StyledText::default());
    }
}
