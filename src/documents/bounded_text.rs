//! A text within the limits of documents.

/// The end of a text that is longer.
const TRUNCATED: &str = "\n[truncated: the document exceeds the limits of documents]";

/// A text that grows up to a maximum size.
pub(super) struct BoundedText {
    text: String,
    bytes_max: usize,
    is_truncated: bool,
}

impl BoundedText {
    pub(super) fn new(bytes_max: usize) -> BoundedText {
        BoundedText { text: String::new(), bytes_max, is_truncated: false }
    }

    /// Adds a piece as far as it fits. Returns false if nothing more fits.
    pub(super) fn push(&mut self, piece: &str) -> bool {
        let left = self.bytes_max - self.text.len();
        self.text.push_str(&piece[..piece.floor_char_boundary(left)]);
        self.is_truncated |= piece.len() > left;
        !self.is_truncated
    }

    pub(super) fn trim_end(&mut self, characters: &[char]) {
        self.text.truncate(self.text.trim_end_matches(characters).len());
    }

    /// Returns the text. Its end says if it was truncated.
    pub(super) fn whole(mut self) -> String {
        if self.is_truncated {
            self.text.push_str(TRUNCATED);
        }
        self.text
    }
}
