//! Recognizes control sequences of terminals (ECMA-48), character by character.

/// The part of a sequence in which a text ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SequencePart {
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
pub(super) enum CharacterRole {
    /// A part of a sequence.
    Hidden,
    /// A character of the text, perhaps a control character.
    Text,
    Newline,
    Return,
    /// The last character of a control sequence (CSI).
    Control,
}

impl SequencePart {
    /// Reads a character. Returns the next state, and the meaning of the character.
    pub(super) fn next(self, character: char) -> (SequencePart, CharacterRole) {
        let hidden = match (self, character) {
            (_, '\n') => return (SequencePart::Text, CharacterRole::Newline),
            (_, '\r') => return (SequencePart::Text, CharacterRole::Return),
            // CAN and SUB cancel a sequence.
            (_, '\u{18}' | '\u{1a}') => SequencePart::Text,
            (SequencePart::String | SequencePart::StringEscape, '\u{1b}') => SequencePart::StringEscape,
            (SequencePart::String, '\u{7}' | '\u{9c}') | (SequencePart::StringEscape, '\\') => SequencePart::Text,
            (SequencePart::String, _) => SequencePart::String,
            (_, '\u{1b}') => SequencePart::Escape,
            (_, '\u{9b}') => SequencePart::Csi,
            (_, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => SequencePart::String,
            (SequencePart::Escape | SequencePart::StringEscape, '[') => SequencePart::Csi,
            (SequencePart::Escape | SequencePart::StringEscape, ']' | 'P' | 'X' | '^' | '_') => SequencePart::String,
            (SequencePart::Escape | SequencePart::StringEscape | SequencePart::Intermediate, ' '..='/') => {
                SequencePart::Intermediate
            }
            (SequencePart::Escape | SequencePart::StringEscape | SequencePart::Intermediate, '0'..='~') => SequencePart::Text,
            (SequencePart::Csi, ' '..='?') => SequencePart::Csi,
            (SequencePart::Csi, '@'..='~') => return (SequencePart::Text, CharacterRole::Control),
            (state @ (SequencePart::Escape | SequencePart::Intermediate | SequencePart::Csi), character)
                if character.is_control() =>
            {
                state
            }
            _ => return (SequencePart::Text, CharacterRole::Text),
        };
        (hidden, CharacterRole::Hidden)
    }
}
