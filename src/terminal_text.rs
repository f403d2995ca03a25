//! Makes text from models, tools and files safe for a terminal, which interprets control sequences.
//! [`OutputFilter`] and [`output`] remove control sequences. [`question`] makes them visible,
//! because a permission request must not hide any part of the text that the user approves.
//! [`PrintedText`] is what a terminal would show, for models.

mod printed;
mod sequences;

use std::borrow::Cow;
use std::fmt::Write;

pub use printed::{PrintedText, printed};
use sequences::{CharacterRole, SequencePart};

/// Removes control sequences from a text that arrives in pieces, which may be split anywhere: CSI,
/// OSC, DCS, APC, PM, SOS and all other escape sequences (ECMA-48), C0 except newline and tab, DEL,
/// C1, and bidirectional controls. A carriage return ends the line before it. A sequence ends at
/// the end of its line, so that it cannot hide later lines.
#[derive(Clone, Debug, Default)]
pub struct OutputFilter {
    state: SequencePart,
    /// True if the current line is not empty.
    line_begun: bool,
    /// True if a carriage return ended the last line: then a following newline is ignored.
    after_return: bool,
}

impl OutputFilter {
    /// Filters the next piece.
    pub fn push(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for character in piece.chars() {
            self.add(character, &mut shown);
        }
        shown
    }

    fn add(&mut self, character: char, shown: &mut String) {
        let (state, token) = self.state.next(character);
        self.state = state;
        match token {
            CharacterRole::Newline => {
                if !std::mem::take(&mut self.after_return) {
                    shown.push('\n');
                }
                self.line_begun = false;
            }
            CharacterRole::Return => {
                if std::mem::take(&mut self.line_begun) {
                    shown.push('\n');
                    self.after_return = true;
                }
            }
            CharacterRole::Text if character == '\t' || !(character.is_control() || is_direction(character)) => {
                shown.push(character);
                self.line_begun = true;
                self.after_return = false;
            }
            CharacterRole::Text | CharacterRole::Control | CharacterRole::Hidden => {}
        }
    }
}

/// Filters a whole text with [`OutputFilter`].
pub fn output(text: &str) -> String {
    OutputFilter::default().push(text)
}

/// Filters a text, such as a title or a path, and joins its lines with spaces.
pub fn output_line(text: &str) -> String {
    output(text).trim_end().replace(['\n', '\t'], " ")
}

/// Makes every character of a text visible, for a permission request. Control characters become
/// `^[` or `^M`; invisible characters and bidirectional controls become `<U+202E>`. Newlines and
/// tabs are kept.
pub fn question(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            '\0'..='\u{1f}' => shown.extend(['^', char::from(character as u8 + b'@')]),
            '\u{7f}' => shown.push_str("^?"),
            character if character.is_control() || is_invisible(character) => {
                // Cannot fail: it writes to a String.
                let _ = write!(shown, "<U+{:04X}>", u32::from(character));
            }
            character => shown.push(character),
        }
    }
    shown
}

/// Makes every character of a text visible, like [`question`], on one line: newlines and tabs
/// become `^J` and `^I`.
pub fn question_line(text: &str) -> String {
    question(text).replace('\n', "^J").replace('\t', "^I")
}

/// Escapes control characters and bidirectional controls in a JSON text, without changing its
/// value. JSON itself requires escapes only for C0.
pub fn json(text: &str) -> Cow<'_, str> {
    let escapes = |character: char| (character.is_control() && character >= '\u{7f}') || is_direction(character);
    if !text.contains(escapes) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match escapes(character) {
            // Cannot fail: it writes to a String. The code points have at most four digits.
            true => drop(write!(escaped, "\\u{:04x}", u32::from(character))),
            false => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether a character is a bidirectional control (Unicode Standard Annex 9), which can
/// make text look like different text.
fn is_direction(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character has no width, or looks like a space but is a different character.
fn is_invisible(character: char) -> bool {
    match character {
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' => true,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        character => !character.is_ascii() && character.is_whitespace(),
    }
}
