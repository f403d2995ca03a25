//! Lines from a byte stream, with a limit: one that is too long is skipped and told, and the next one is read as usual.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// A line without its end, or the news that one was too long.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(Vec<u8>),
    TooLong,
}

pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// The part of the buffer that has no line end.
    searched: usize,
    skipping: bool,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(input: R, bytes_max: usize) -> Self {
        Self { input, buffer: Vec::new(), searched: 0, skipping: false, bytes_max }
    }

    /// The next line; none at the end of the input. A last line without an end counts. Cancel-safe.
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
