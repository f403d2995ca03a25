//! The text of documents: PDF, HTML, Word, OpenDocument and Excel files.

mod html;
mod office;
mod package;
mod pdf;
mod sheet;

use std::time::Instant;

use crate::content::{DOCX, HTML, ODS, ODT, PDF, XLSX};
use crate::limits;

pub(crate) use html::markdown;

/// Returns whether [`extract`] reads documents of a media type.
pub(crate) fn has_text(media_type: &str) -> bool {
    [DOCX, HTML, ODS, ODT, PDF, XLSX].contains(&media_type)
}

/// Extracts the text of a document of this media type, within limits of time and size. The error
/// says why there is no text. Panics of the parsers become errors.
pub(crate) async fn extract(media_type: &str, bytes: Vec<u8>) -> Result<String, String> {
    let media_type = media_type.to_owned();
    let work = tokio::task::spawn_blocking(move || read(&media_type, bytes));
    match tokio::time::timeout(limits::DOCUMENT_TIME_MAX, work).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err("the document is damaged".into()),
        Err(_) => Err(format!("reading it takes longer than {} s", limits::DOCUMENT_TIME_MAX.as_secs())),
    }
}

fn read(media_type: &str, bytes: Vec<u8>) -> Result<String, String> {
    let mut text = BoundedText::new();
    match media_type {
        PDF => pdf::read(&bytes, &mut text)?,
        HTML => drop(text.push(&markdown(&String::from_utf8_lossy(&bytes))?)),
        DOCX => office::word(&bytes, &mut text)?,
        ODT | ODS => office::open_document(&bytes, media_type == ODS, &mut text)?,
        XLSX => sheet::read(&bytes, &mut text)?,
        other => return Err(format!("the text of {other} documents cannot be read")),
    }
    text.whole()
}

/// A text that grows up to the limits of documents.
struct BoundedText {
    text: String,
    is_truncated: bool,
    started: Instant,
}

impl BoundedText {
    fn new() -> BoundedText {
        BoundedText { text: String::new(), is_truncated: false, started: Instant::now() }
    }

    /// Adds a piece as far as it fits. Returns false if nothing more fits, or if the time is over.
    fn push(&mut self, piece: &str) -> bool {
        let left = limits::DOCUMENT_TEXT_BYTES_MAX - self.text.len();
        self.text.push_str(&piece[..piece.floor_char_boundary(left)]);
        self.is_truncated |= piece.len() > left || self.started.elapsed() > limits::DOCUMENT_TIME_MAX;
        !self.is_truncated
    }

    /// Removes these characters from the end.
    fn trim_end(&mut self, characters: &[char]) {
        self.text.truncate(self.text.trim_end_matches(characters).len());
    }

    /// Returns the text. A document without text is an error.
    fn whole(mut self) -> Result<String, String> {
        if self.text.trim().is_empty() {
            return Err("it has no text, for example because it consists of images".into());
        }
        if self.is_truncated {
            self.text.push_str("\n[truncated: the document exceeds the limits of documents]");
        }
        Ok(self.text)
    }
}
