//! Reads lines from a byte stream. A line that exceeds the limit is skipped and reported, and
//! reading continues with the next line.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::limits;

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// The line without its ending (`\n` or `\r\n`).
    Text(Vec<u8>),
    /// The start of a skipped line that was longer than the limit: at most
    /// [`limits::LINE_START_BYTES`].
    TooLong(Vec<u8>),
}

/// Reads lines of at most `bytes_max` bytes.
pub struct LineReader<R> {
    input: R,
    buffer: Vec<u8>,
    /// Length of the prefix of the buffer that is known to contain no `\n`.
    searched: usize,
    /// The start of an overlong line, while its rest is discarded.
    skipping: Option<Vec<u8>>,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Creates a reader of `input`. A line longer than `bytes_max`, not counting the line ending,
    /// is skipped.
    pub fn new(input: R, bytes_max: usize) -> Self {
        Self { input, buffer: Vec::new(), searched: 0, skipping: None, bytes_max }
    }

    /// Reads the next line. Returns `None` at the end of the input. A last line without a line
    /// ending is returned too. Cancel-safe.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take() {
                return Ok(Some(line));
            }
            self.buffer.reserve(32 << 10);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                return Ok(self.last());
            }
        }
    }

    /// Returns the start of an overlong line.
    fn start(&self, line: &[u8]) -> Vec<u8> {
        line[..self.bytes_max.min(limits::LINE_START_BYTES)].to_vec()
    }

    /// Removes the first complete line from the buffer.
    fn take(&mut self) -> Option<Line> {
        let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end.map(|end| self.searched + end) else {
            if self.buffer.len() > self.bytes_max && self.skipping.is_none() {
                self.skipping = Some(self.start(&self.buffer));
            }
            if self.skipping.is_some() {
                self.buffer.clear();
            }
            self.searched = self.buffer.len();
            return None;
        };
        let rest = self.buffer.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        self.searched = 0;
        if let Some(start) = self.skipping.take() {
            return Some(Line::TooLong(start));
        }
        if end > self.bytes_max {
            return Some(Line::TooLong(self.start(&line)));
        }
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(Line::Text(line))
    }

    /// Removes the unterminated last line from the buffer, at the end of the input.
    fn last(&mut self) -> Option<Line> {
        let line = std::mem::take(&mut self.buffer);
        self.searched = 0;
        match (self.skipping.take(), line.is_empty()) {
            (Some(start), _) => Some(Line::TooLong(start)),
            (None, true) => None,
            (None, false) => Some(Line::Text(line)),
        }
    }
}
