//! Incremental decoder for AWS event streams (vnd.amazon.eventstream): binary messages with headers
//! and checksums (docs.aws.amazon.com/transcribe/latest/dg/streaming-setting-up.html).

use crate::limits::MODEL_EVENT_BYTES_MAX;

/// Sizes of the prelude (length of the message, length of the headers, checksum of both) and of
/// the checksum of the message.
const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;

/// Decodes one stream.
#[derive(Default)]
pub(crate) struct MessageDecoder {
    bytes: Vec<u8>,
    /// Number of leading `bytes` that were decoded.
    used: usize,
}

/// Why a stream is invalid.
#[derive(Debug, PartialEq)]
pub(crate) enum Invalid {
    TooLarge,
    Checksum,
    Structure,
}

impl MessageDecoder {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete message as a JSON object with one field: the event's type and its
    /// payload, or the exception's type and `{"message"}`. Returns `None` if more bytes are needed.
    pub(crate) fn next(&mut self) -> Result<Option<String>, Invalid> {
        let bytes = &self.bytes[self.used..];
        let Some(prelude) = bytes.get(..PRELUDE) else { return Ok(None) };
        if crc32fast::hash(&prelude[..8]) != number(&prelude[8..]) {
            return Err(Invalid::Checksum);
        }
        let (length, headers) = (number(&prelude[..4]) as usize, number(&prelude[4..8]) as usize);
        if length > MODEL_EVENT_BYTES_MAX {
            return Err(Invalid::TooLarge);
        }
        if length < PRELUDE + headers + CHECKSUM {
            return Err(Invalid::Structure);
        }
        let Some(message) = bytes.get(..length) else { return Ok(None) };
        let (content, checksum) = message.split_at(length - CHECKSUM);
        if crc32fast::hash(content) != number(checksum) {
            return Err(Invalid::Checksum);
        }
        let (headers, payload) = content[PRELUDE..].split_at(headers);
        let event = event(&read_headers(headers).ok_or(Invalid::Structure)?, payload);
        self.used += length;
        Ok(Some(event))
    }
}

/// Parses a big-endian number of four bytes.
fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"))
}

fn event(headers: &[(&str, &str)], payload: &[u8]) -> String {
    let header = |name: &str| headers.iter().find(|(found, _)| *found == name).map(|(_, value)| *value);
    let json = |value: &str| serde_json::Value::from(value).to_string();
    let payload = String::from_utf8_lossy(payload);
    let kind = header(":event-type").or(header(":exception-type")).or(header(":error-code")).unwrap_or_default();
    match header(":error-message") {
        Some(message) => format!("{{{}:{{\"message\":{}}}}}", json(kind), json(message)),
        None if payload.is_empty() => format!("{{{}:null}}", json(kind)),
        None => format!("{{{}:{payload}}}", json(kind)),
    }
}

/// Returns the headers with a text value, or `None` if the headers are malformed.
fn read_headers(mut bytes: &[u8]) -> Option<Vec<(&str, &str)>> {
    let mut headers = Vec::new();
    while let Some(length) = take(&mut bytes, 1) {
        let name = take(&mut bytes, length[0].into())?;
        let skipped = match take(&mut bytes, 1)?[0] {
            // True and false.
            0 | 1 => 0,
            // Integers of one to eight bytes, a time, and a UUID.
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            9 => 16,
            // Bytes, and text.
            kind @ (6 | 7) => {
                let length = take(&mut bytes, 2)?;
                let value = take(&mut bytes, u16::from_be_bytes([length[0], length[1]]).into())?;
                if kind == 7 {
                    headers.push((std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?));
                }
                0
            }
            _ => return None,
        };
        take(&mut bytes, skipped)?;
    }
    Some(headers)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}
