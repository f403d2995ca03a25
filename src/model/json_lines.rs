//! Incremental decoder for JSON values that are separated by line ends (NDJSON).

use std::borrow::Cow;

use super::sse::TooLarge;
use crate::limits::MODEL_EVENT_BYTES_MAX;

/// Decodes one stream. Blank lines are skipped.
#[derive(Default)]
pub(crate) struct LineDecoder {
    bytes: Vec<u8>,
    /// Number of leading `bytes` that were decoded.
    used: usize,
    /// Position up to which `bytes` contains no further line end.
    scanned: usize,
}

impl LineDecoder {
    /// Appends received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.scanned -= self.used;
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete line that is not blank, or `None` if more bytes are needed.
    pub(crate) fn next(&mut self) -> Result<Option<Cow<'_, str>>, TooLarge> {
        while let Some(length) = self.bytes[self.scanned..].iter().position(|byte| *byte == b'\n') {
            let line = self.used..self.scanned + length;
            self.used = line.end + 1;
            self.scanned = self.used;
            if !self.bytes[line.clone()].trim_ascii().is_empty() {
                return Ok(Some(String::from_utf8_lossy(self.bytes[line].trim_ascii())));
            }
        }
        self.scanned = self.bytes.len();
        if self.bytes.len() - self.used > MODEL_EVENT_BYTES_MAX { Err(TooLarge) } else { Ok(None) }
    }

    /// Returns the last line, which may lack its line break. Called once at the end of the stream.
    pub(crate) fn end(&mut self) -> Option<String> {
        self.push(b"\n");
        self.next().ok().flatten().map(Cow::into_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_at_any_byte() {
        let stream = "{\"a\":1}\n\r\n{\"b\":\"größe\"}\r\n{\"c\":3}";
        for size in 1..stream.len() {
            let (mut decoder, mut lines) = (LineDecoder::default(), Vec::new());
            for piece in stream.as_bytes().chunks(size) {
                decoder.push(piece);
                while let Some(line) = decoder.next().expect("small") {
                    lines.push(line.into_owned());
                }
            }
            lines.extend(decoder.end());
            assert_eq!(lines, ["{\"a\":1}", "{\"b\":\"größe\"}", "{\"c\":3}"], "{size}");
        }
    }

    #[test]
    fn endless_line_is_an_error() {
        let mut decoder = LineDecoder::default();
        let part = vec![b'x'; 1 << 20];
        let failed = (0..17).any(|_| {
            decoder.push(&part);
            decoder.next().is_err()
        });
        assert!(failed);
    }
}
