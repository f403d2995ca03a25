//! Parses JSON that other programs wrote: lines of a connection, HTTP bodies, arguments of a tool
//! call.

mod repair;

use std::borrow::Cow;

use serde::de::DeserializeOwned;

pub(crate) use repair::{closed_length, repaired};

/// UTF-8 byte order mark, with which some programs on Windows begin their output.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Parses JSON text. The escape of an unpaired surrogate becomes U+FFFD: programs in JavaScript
/// write `"\ud83d"` for a string that was truncated within a character, which serde_json refuses. A
/// leading byte order mark is skipped.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let parsed = serde_json::from_slice(text);
    parsed.or_else(|error| match std::str::from_utf8(text).map(replace_surrogates) {
        Ok(Cow::Owned(text)) => serde_json::from_str(&text),
        Ok(Cow::Borrowed(_)) | Err(_) => Err(error),
    })
}

/// Parses JSON text like [`from_slice`].
pub fn from_str<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    from_slice(text.as_bytes())
}

/// Replaces the escapes of unpaired surrogates in JSON text by the escape of U+FFFD.
pub(crate) fn replace_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut replaced, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found;
        match (surrogate(&bytes[at..]), surrogate(bytes.get(at + 6..).unwrap_or_default())) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => at += 12,
            (Some(_), _) => {
                replaced.push_str(&text[copied..at]);
                replaced.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // The next byte is escaped: it starts no escape itself.
            (None, _) => at = (at + 2).min(bytes.len()),
        }
    }
    if copied == 0 {
        return text.into();
    }
    replaced.push_str(&text[copied..]);
    replaced.into()
}

/// Returns the surrogate that an escape at the start of `text` stands for.
fn surrogate(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let unit = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xd800..0xe000).contains(&unit).then_some(unit)
}

/// Reads the members of an object that may be truncated, invalid or nested too deeply to be parsed.
/// Yields the name of each member and the text of its value, in order, until the text is not JSON.
/// The value is empty if the text ends before it.
pub(crate) fn members(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).trim_ascii_start();
    let mut rest = text.strip_prefix(b"{").unwrap_or_default();
    std::iter::from_fn(move || {
        let start = rest.trim_ascii_start().strip_prefix(b"\"")?;
        let (name, after) = start.split_at(string_length(start, b'"')?);
        let value = after[1..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let length = value_length(value);
        let (value, after) = value.split_at(length.unwrap_or_default());
        rest = after.strip_prefix(b",").unwrap_or_default();
        Some((name, value.trim_ascii_end()))
    })
}

/// Returns the length of a string without its quotes. `text` begins after the opening quote.
fn string_length(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(quote, b'\\', text.get(at..)?)?;
        if text[at] == quote {
            return Some(at);
        }
        at += 2;
    }
}

/// Returns the length of the value at the start of `text`, with blanks after it: until the comma or
/// the bracket that ends it.
fn value_length(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        match text.get(at)? {
            b'"' => at += string_length(&text[at + 1..], b'"')? + 1,
            b'[' | b'{' => depth += 1,
            b']' | b'}' | b',' if depth == 0 => return Some(at),
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}
