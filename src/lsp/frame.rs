//! Framing of messages with headers (LSP 3.17, base protocol): incremental decoding and encoding.
//! Pure.

use crate::limits;

/// Decodes the messages of a stream.
#[derive(Debug, Default)]
pub struct Frames {
    /// Bytes that were not decoded yet. The caller appends to it.
    pub buffer: Vec<u8>,
}

const HEADER_END: &[u8] = b"\r\n\r\n";

impl Frames {
    /// The body of the next message, or `None` if more bytes are needed. The stream is unusable
    /// after an error.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, String> {
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
    let length = value.trim().parse::<usize>().map_err(|_| format!("invalid Content-Length: {value:?}"))?;
    if length > limits::LSP_MESSAGE_BYTES_MAX {
        return Err(format!("message too large: {length} bytes"));
    }
    Ok(length)
}

/// Encodes a message with its header.
pub fn encode(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
