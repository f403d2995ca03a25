//! Incremental decoder for server-sent events (WHATWG HTML, section 9.2.6). Returns only the data
//! of events: no model protocol needs the other fields.

use std::borrow::Cow;

use crate::limits::MODEL_EVENT_BYTES_MAX;

/// The error for an event that exceeds [`MODEL_EVENT_BYTES_MAX`].
#[derive(Debug, PartialEq)]
pub struct TooLarge;

/// Converts bytes to text. Tries the strict conversion first, which is several times faster.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Decodes one stream. Accepts everything that the standard accepts: a byte order mark, CRLF, CR,
/// comments, unknown fields, lines without a colon.
#[derive(Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Number of leading `bytes` that were decoded.
    used: usize,
    /// Position up to which `bytes` contains no further line end.
    scanned: usize,
    /// The previous line ended with CR: a directly following LF belongs to it.
    after_cr: bool,
    /// The first line was decoded. Only the first line may start with a byte order mark.
    started: bool,
    data: Vec<u8>,
    has_data: bool,
    /// `data` was returned and must be cleared.
    taken: bool,
}

impl Decoder {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.scanned -= self.used;
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the data of the next complete event, its lines joined by LF, or `None` if more bytes
    /// are needed. Skips events whose data is blank.
    pub fn next_event(&mut self) -> Result<Option<Cow<'_, str>>, TooLarge> {
        if std::mem::take(&mut self.taken) {
            self.data.clear();
            self.has_data = false;
        }
        while let Some(line) = self.line() {
            if line.is_empty() {
                // Proxies send events without data to keep the connection open.
                if self.data.trim_ascii().is_empty() {
                    self.data.clear();
                    self.has_data = false;
                    continue;
                }
                self.taken = true;
                return Ok(Some(text(&self.data)));
            }
            let line = &self.bytes[line];
            let Some(value) = line.strip_prefix(b"data") else { continue };
            let value = match value {
                [] => value,
                [b':', b' ', value @ ..] | [b':', value @ ..] => value,
                _ => continue,
            };
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
            self.has_data = true;
            if self.data.len() > MODEL_EVENT_BYTES_MAX {
                return Err(TooLarge);
            }
        }
        match self.data.len() + self.bytes.len() - self.used > MODEL_EVENT_BYTES_MAX {
            true => Err(TooLarge),
            false => Ok(None),
        }
    }

    /// Returns the data of the last event, which may lack the blank line and the end of its last
    /// line. Called once at the end of the stream.
    pub fn end(&mut self) -> Option<String> {
        self.push(b"\n\n");
        self.next_event().ok().flatten().map(Cow::into_owned)
    }

    /// Returns the range of the next complete line, without its end, and moves past the line.
    fn line(&mut self) -> Option<std::ops::Range<usize>> {
        if self.after_cr && self.used < self.bytes.len() {
            self.after_cr = false;
            if self.bytes[self.used] == b'\n' {
                self.used += 1;
            }
        }
        let from = self.scanned.max(self.used);
        let Some(length) = memchr::memchr2(b'\n', b'\r', &self.bytes[from..]) else {
            self.scanned = self.bytes.len();
            return None;
        };
        let end = from + length;
        let mut start = self.used;
        if !std::mem::replace(&mut self.started, true) && self.bytes[start..end].starts_with("\u{feff}".as_bytes()) {
            start += "\u{feff}".len();
        }
        self.after_cr = self.bytes[end] == b'\r';
        self.used = end + 1;
        self.scanned = self.used;
        Some(start..end)
    }
}
