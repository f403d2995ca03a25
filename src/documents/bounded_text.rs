//! A text within the limits of documents.

use std::time::Instant;

use crate::limits;

/// A text that grows up to the limits of documents.
pub(super) struct BoundedText {
    text: String,
    is_truncated: bool,
    started: Instant,
}

impl BoundedText {
    pub(super) fn new() -> BoundedText {
        BoundedText { text: String::new(), is_truncated: false, started: Instant::now() }
    }

    /// Adds a piece as far as it fits. Returns false if nothing more fits, or if the time is over.
    pub(super) fn push(&mut self, piece: &str) -> bool {
        let left = limits::DOCUMENT_TEXT_BYTES_MAX - self.text.len();
        self.text.push_str(&piece[..piece.floor_char_boundary(left)]);
        self.is_truncated |= piece.len() > left || self.started.elapsed() > limits::DOCUMENT_TIME_MAX;
        !self.is_truncated
    }

    /// Removes these characters from the end.
    pub(super) fn trim_end(&mut self, characters: &[char]) {
        self.text.truncate(self.text.trim_end_matches(characters).len());
    }

    /// Returns the text. A document without text is an error.
    pub(super) fn whole(mut self) -> Result<String, String> {
        if self.text.trim().is_empty() {
            return Err("it has no text, for example because it consists of images".into());
        }
        if self.is_truncated {
            self.text.push_str("\n[truncated: the document exceeds the limits of documents]");
        }
        Ok(self.text)
    }
}
