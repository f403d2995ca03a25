//! Messages behind headers (LSP 3.17, base protocol): bytes into bodies, however they are cut, and bodies into bytes. Pure.

use crate::limits;

/// What was read of a stream and not taken yet.
#[derive(Debug, Default)]
pub struct Frames {
    /// To be read into, at its end.
    pub buffer: Vec<u8>,
}

const HEADER_END: &[u8] = b"\r\n\r\n";

impl Frames {
    /// The body of the next message; none: more has to be read first. After an error the stream means nothing any more.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, String> {
        let Some(end) = memchr::memmem::find(&self.buffer, HEADER_END) else {
            if self.buffer.len() > limits::LSP_HEADER_BYTES_MAX {
                return Err(format!("no end of a header in {} bytes", self.buffer.len()));
            }
            return Ok(None);
        };
        if end > limits::LSP_HEADER_BYTES_MAX {
            return Err(format!("a header of {end} bytes"));
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

/// Other fields, like `Content-Type`, say nothing that we need: there is only UTF-8.
fn content_length(header: &[u8]) -> Result<usize, String> {
    let text = std::str::from_utf8(header).map_err(|_| "a header that is no text".to_string())?;
    let field =
        text.split("\r\n").filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, value) = field.ok_or_else(|| format!("a header without Content-Length: {text:?}"))?;
    let length = value.trim().parse::<usize>().map_err(|_| format!("a Content-Length that is no number: {value:?}"))?;
    if length > limits::LSP_MESSAGE_BYTES_MAX {
        return Err(format!("a message of {length} bytes"));
    }
    Ok(length)
}

/// A message with its header.
pub fn encode(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
