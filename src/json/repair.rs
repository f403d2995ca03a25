//! Repairs JSON that a model wrote with small faults.

use serde_json::Value;

/// Maximum size of a text that is repaired, in bytes.
const REPAIRED_BYTES_MAX: usize = 1 << 20;

/// Parses an object or a list with the faults that models make: a code fence around it, trailing
/// commas, raw line breaks in strings, single quotes. `None` if it has other faults, or if a
/// string, an object or a list is open: what is missing must not be invented.
pub(crate) fn repaired(text: &str) -> Option<Value> {
    let text = without_fence(text.trim());
    if text.len() > REPAIRED_BYTES_MAX || closed_length(text)? != text.len() {
        return None;
    }
    super::from_str(&jsonrepair_rs::jsonrepair(text).ok()?).ok()
}

/// Returns the content of a code block that is the whole text.
fn without_fence(text: &str) -> &str {
    let Some(block) = text.strip_prefix("```") else { return text };
    let content = block.trim_start_matches(|character: char| character.is_ascii_alphanumeric());
    content.trim_end().trim_end_matches('`').trim()
}

/// Returns the length of the object or the list at the start of `text`, which may have small
/// faults. `None` if it is open, or if a quote inside a string may be its end.
pub(crate) fn closed_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut open) = (0, Vec::new());
    // The last character outside of strings that is not white space.
    let mut last = b' ';
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        match byte {
            b'{' | b'[' => open.push(byte),
            b'}' | b']' => {
                if open.pop() != Some(if byte == b'}' { b'{' } else { b'[' }) {
                    return None;
                }
                if open.is_empty() {
                    return Some(at);
                }
            }
            b'"' | b'\'' => {
                at += super::string_length(&bytes[at..], byte)? + 1;
                let is_name = open.last() == Some(&b'{') && matches!(last, b'{' | b',');
                let next = bytes[at..].iter().find(|next| !next.is_ascii_whitespace())?;
                if !if is_name { *next == b':' } else { matches!(next, b',' | b'}' | b']') } {
                    return None;
                }
            }
            _ if open.is_empty() => return None,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = byte;
        }
    }
}
