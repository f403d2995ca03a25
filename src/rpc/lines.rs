//! Reads lines from a byte stream. A line that exceeds the limit is skipped and reported, and
//! reading continues with the next line.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// The line without its ending (`\n` or `\r\n`).
    Text(Vec<u8>),
    /// A skipped line that was longer than the limit.
    TooLong,
}

/// Reads lines of at most `bytes_max` bytes.
pub struct LineReader<R> {
    input: R,
    buffer: Vec<u8>,
    /// Length of the prefix of the buffer that is known to contain no `\n`.
    searched: usize,
    /// True while the rest of an overlong line is discarded.
    skipping: bool,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Creates a reader of `input`. A line longer than `bytes_max`, not counting the line ending,
    /// is skipped.
    pub fn new(input: R, bytes_max: usize) -> Self {
        Self { input, buffer: Vec::new(), searched: 0, skipping: false, bytes_max }
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

    /// Removes the first complete line from the buffer.
    fn take(&mut self) -> Option<Line> {
        let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end.map(|end| self.searched + end) else {
            if self.buffer.len() > self.bytes_max {
                self.skipping = true;
            }
            if self.skipping {
                self.buffer.clear();
            }
            self.searched = self.buffer.len();
            return None;
        };
        let rest = self.buffer.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        self.searched = 0;
        if std::mem::take(&mut self.skipping) || end > self.bytes_max {
            return Some(Line::TooLong);
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
        match (std::mem::take(&mut self.skipping), line.is_empty()) {
            (true, _) => Some(Line::TooLong),
            (false, true) => None,
            (false, false) => Some(Line::Text(line)),
        }
    }
}
