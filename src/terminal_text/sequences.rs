//! Recognizes control sequences of terminals (ECMA-48), character by character.

/// The part of a sequence in which a text ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte, before the final byte.
    Intermediate,
    /// In a control sequence: parameters until a final byte.
    Csi,
    /// In a control string, which ends at ST or BEL.
    String,
    /// After ESC in a control string.
    StringEscape,
}

/// The meaning of a character, which depends on the state before it.
pub(super) enum Token {
    /// A part of a sequence.
    Hidden,
    /// A character of the text, perhaps a control character.
    Text,
    Newline,
    Return,
    /// The last character of a control sequence (CSI).
    Control,
}

impl State {
    /// Reads a character. Returns the next state, and the meaning of the character.
    pub(super) fn next(self, character: char) -> (State, Token) {
        let hidden = match (self, character) {
            (_, '\n') => return (State::Text, Token::Newline),
            (_, '\r') => return (State::Text, Token::Return),
            // CAN and SUB cancel a sequence.
            (_, '\u{18}' | '\u{1a}') => State::Text,
            (State::String | State::StringEscape, '\u{1b}') => State::StringEscape,
            (State::String, '\u{7}' | '\u{9c}') | (State::StringEscape, '\\') => State::Text,
            (State::String, _) => State::String,
            (_, '\u{1b}') => State::Escape,
            (_, '\u{9b}') => State::Csi,
            (_, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => State::String,
            (State::Escape | State::StringEscape, '[') => State::Csi,
            (State::Escape | State::StringEscape, ']' | 'P' | 'X' | '^' | '_') => State::String,
            (State::Escape | State::StringEscape | State::Intermediate, ' '..='/') => State::Intermediate,
            (State::Escape | State::StringEscape | State::Intermediate, '0'..='~') => State::Text,
            (State::Csi, ' '..='?') => State::Csi,
            (State::Csi, '@'..='~') => return (State::Text, Token::Control),
            (state @ (State::Escape | State::Intermediate | State::Csi), character) if character.is_control() => state,
            _ => return (State::Text, Token::Text),
        };
        (hidden, Token::Hidden)
    }
}
