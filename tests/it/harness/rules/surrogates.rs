//! Rule 26: halves of surrogate pairs in the escapes of JSON text.

use super::refusal::Refusals;
use super::view::{Arguments, Content, View};
use crate::provider::Protocol;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    let words = |at: usize| match view.protocol {
        Protocol::Anthropic => {
            format!(
                "The request body is not valid JSON: no low surrogate in string: line 1 column {at} (char {})",
                at.saturating_sub(1)
            )
        }
        _ => format!("lone leading surrogate in hex escape at line 1 column {at}"),
    };
    if let Some(at) = halves(view.text).first() {
        refused.add(26, "", words(at + 1));
    }
    // The provider parses the arguments that the body contains as text.
    for block in view.blocks() {
        if let Content::Call { arguments: Arguments::Text(text), .. } = &block.content
            && let Some(at) = halves(text).first()
        {
            refused.add(26, format!("{}.arguments", block.place), words(at + 1));
        }
    }
}

/// Returns the positions of the escapes that are half of a surrogate pair.
fn halves(text: &str) -> Vec<usize> {
    let escapes = escapes(text);
    let mut found = Vec::new();
    let mut index = 0;
    while let Some((at, unit)) = escapes.get(index) {
        index += 1;
        match unit {
            0xd800..=0xdbff => {
                let low = |next: &&(usize, u16)| next.0 == at + 6 && (0xdc00..=0xdfff).contains(&next.1);
                match escapes.get(index).filter(low) {
                    Some(_) => index += 1,
                    None => found.push(*at),
                }
            }
            0xdc00..=0xdfff => found.push(*at),
            _ => {}
        }
    }
    found
}

/// Returns the `\uXXXX` escapes of JSON text: position and UTF-16 unit.
fn escapes(text: &str) -> Vec<(usize, u16)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'\\', &bytes[at..]) {
        at += offset;
        let code = bytes.get(at + 2..at + 6).filter(|_| bytes.get(at + 1) == Some(&b'u'));
        let unit = code.and_then(|code| std::str::from_utf8(code).ok()).and_then(|code| u16::from_str_radix(code, 16).ok());
        found.extend(unit.map(|unit| (at, unit)));
        at = (at + if unit.is_some() { 6 } else { 2 }).min(bytes.len());
    }
    found
}

/// Replaces halves of surrogate pairs, which the parser of the tests refuses, too.
pub fn without_surrogates(text: &str) -> String {
    let mut replaced = text.to_owned();
    for at in halves(text) {
        replaced.replace_range(at..at + 6, "\\ufffd");
    }
    replaced
}
