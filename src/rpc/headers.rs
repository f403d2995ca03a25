//! Reads messages with headers (LSP 3.17, base protocol) from a byte stream.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::limits;

/// Reads messages of at most `bytes_max` bytes, each preceded by a header with its length.
pub struct HeaderReader<R> {
    input: R,
    buffer: Vec<u8>,
    bytes_max: usize,
}

const HEADER_END: &[u8] = b"\r\n\r\n";

impl<R: AsyncRead + Unpin> HeaderReader<R> {
    /// Creates a reader of `input`. A message whose body is longer than `bytes_max` is an error.
    pub fn new(input: R, bytes_max: usize) -> Self {
        Self { input, buffer: Vec::new(), bytes_max }
    }

    /// Reads the body of the next message. Returns `None` at the end of the input, even if the
    /// input ends within a message. An invalid header is an error of kind
    /// [`io::ErrorKind::InvalidData`], after which the input is unusable. Cancel-safe.
    pub async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(body) = self.take().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))? {
                return Ok(Some(body));
            }
            self.buffer.reserve(limits::PIPE_BYTES);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Removes the first complete message from the buffer and returns its body.
    fn take(&mut self) -> Result<Option<Vec<u8>>, String> {
        let Some(end) = memchr::memmem::find(&self.buffer, HEADER_END) else {
            if self.buffer.len() > limits::LSP_HEADER_BYTES_MAX {
                return Err(format!("no end of header in {} bytes", self.buffer.len()));
            }
            return Ok(None);
        };
        if end > limits::LSP_HEADER_BYTES_MAX {
            return Err(format!("header too large: {end} bytes"));
        }
        let length = content_length(&self.buffer[..end])?;
        if length > self.bytes_max {
            return Err(format!("message too large: {length} bytes"));
        }
        let body = end + HEADER_END.len();
        if self.buffer.len() - body < length {
            return Ok(None);
        }
        let rest = self.buffer.split_off(body + length);
        let mut message = std::mem::replace(&mut self.buffer, rest);
        message.drain(..body);
        Ok(Some(message))
    }
}

/// Parses `Content-Length`. Other fields are ignored: `Content-Type` can only specify UTF-8.
fn content_length(header: &[u8]) -> Result<usize, String> {
    let text = std::str::from_utf8(header).map_err(|_| "header is not UTF-8".to_string())?;
    let field =
        text.split("\r\n").filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, value) = field.ok_or_else(|| format!("header without Content-Length: {text:?}"))?;
    value.trim().parse::<usize>().map_err(|_| format!("invalid Content-Length: {value:?}"))
}

/// Returns the header of a message with a body of `length` bytes.
pub fn header(length: usize) -> String {
    format!("Content-Length: {length}\r\n\r\n")
}
