//! Incremental decoder for JSON values that are separated by line ends (NDJSON).

use std::borrow::Cow;

use super::sse::{TooLarge, text};
use crate::limits::MODEL_EVENT_BYTES_MAX;

/// Decodes one stream. Blank lines are skipped.
#[derive(Default)]
pub struct LineDecoder {
    bytes: Vec<u8>,
    /// Number of leading `bytes` that were decoded.
    used: usize,
    /// Position up to which `bytes` contains no further line end.
    scanned: usize,
}

impl LineDecoder {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.scanned -= self.used;
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete line that is not blank, or `None` if more bytes are needed.
    pub fn next_line(&mut self) -> Result<Option<Cow<'_, str>>, TooLarge> {
        while let Some(length) = memchr::memchr(b'\n', &self.bytes[self.scanned..]) {
            let line = self.used..self.scanned + length;
            self.used = line.end + 1;
            self.scanned = self.used;
            if !self.bytes[line.clone()].trim_ascii().is_empty() {
                return Ok(Some(text(self.bytes[line].trim_ascii())));
            }
        }
        self.scanned = self.bytes.len();
        if self.bytes.len() - self.used > MODEL_EVENT_BYTES_MAX { Err(TooLarge) } else { Ok(None) }
    }

    /// Returns the last line, which may lack its line break. Called once at the end of the stream.
    pub fn end(&mut self) -> Option<String> {
        self.push(b"\n");
        self.next_line().ok().flatten().map(Cow::into_owned)
    }
}
