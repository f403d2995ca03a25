//! Tool calls that a model writes as text: an answer that is nothing but JSON objects with `name`
//! and `arguments`, bare or in code fences. Models of any name write them if the server does not
//! decode their calls.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::request::Request;
use super::wire;
use crate::json;

/// An invented result, with which some models continue after their calls.
const RESULT: &str = "<tool_response>";
const FENCE: &str = "```";
/// Maximum length of the word after a fence, and of the name of a tool, in bytes.
const WORD_BYTES_MAX: usize = 128;
/// The beginnings of an object that may be a call.
const FIRST_NAMES: [&str; 8] = ["\"name\"", "\"arguments\"", "\"id\"", "\"type\"", "'name'", "'arguments'", "name:", "arguments:"];

/// Separates the calls from the text of one answer.
#[derive(Default)]
pub(crate) struct JsonCalls {
    /// The text of an answer that may consist of calls.
    held: String,
    /// The text begins as a call, so that it is held until the end of the answer.
    begins: bool,
    /// The answer is text.
    is_text: bool,
}

/// The name and the arguments of a call.
pub(crate) type WrittenCall = (String, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonCall<'a> {
    name: String,
    #[serde(borrow)]
    arguments: &'a RawValue,
    #[serde(default, rename = "id")]
    _id: Option<IgnoredAny>,
    #[serde(default, rename = "type")]
    _type: Option<IgnoredAny>,
}

impl JsonCalls {
    /// Creates a reader for the answer to a request. Without tools, and if JSON was asked for, the
    /// answer is text.
    pub(crate) fn new(request: &Request) -> JsonCalls {
        JsonCalls { is_text: request.tools.is_empty() || request.json_answer, ..JsonCalls::default() }
    }

    /// Returns the number of buffered bytes.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Adds text of the answer, and returns the text that cannot be a part of a call.
    pub(crate) fn read(&mut self, text: String) -> String {
        if self.is_text {
            return text;
        }
        self.held.push_str(&text);
        if !self.begins {
            match begins(&self.held) {
                Some(true) => self.begins = true,
                Some(false) => {
                    self.is_text = true;
                    return std::mem::take(&mut self.held);
                }
                None => {}
            }
        }
        String::new()
    }

    /// Ends the answer. Returns its calls, or the rest of the text. An answer that is not `whole`
    /// is text.
    pub(crate) fn end(&mut self, whole: bool) -> Result<Vec<WrittenCall>, String> {
        let text = std::mem::take(&mut self.held);
        parse(&text).filter(|_| whole).ok_or(text)
    }
}

/// Returns whether a text begins with a call; `None` if that is open.
fn begins(text: &str) -> Option<bool> {
    let mut text = text.trim_start();
    if let Some(after) = text.strip_prefix(FENCE) {
        let (word, rest) = fence(after);
        if !is_word(word) {
            return Some(false);
        }
        text = rest.trim_start();
    } else if FENCE.starts_with(text) {
        return None;
    }
    text = text.strip_prefix('[').unwrap_or(text).trim_start();
    let Some(name) = text.strip_prefix('{').map(str::trim_start) else { return if text.is_empty() { None } else { Some(false) } };
    if FIRST_NAMES.iter().any(|first| name.starts_with(first)) {
        return Some(true);
    }
    if FIRST_NAMES.iter().any(|first| first.starts_with(name)) { None } else { Some(false) }
}

/// Splits the text after a fence: the word on its line, and the rest.
fn fence(after: &str) -> (&str, &str) {
    let end = after.find(['\n', '{', '[']).unwrap_or(after.len());
    (after[..end].trim(), &after[end..])
}

fn is_word(text: &str) -> bool {
    text.len() <= WORD_BYTES_MAX && text.chars().all(|character| character.is_ascii_alphanumeric() || "_-.:/".contains(character))
}

/// Parses an answer that is nothing but calls. The end of the answer may leave a fence open; text
/// from an invented result on is ignored.
fn parse(text: &str) -> Option<Vec<WrittenCall>> {
    let (mut rest, mut calls, mut is_open) = (text.trim_start(), Vec::new(), false);
    while !rest.is_empty() && (calls.is_empty() || !rest.starts_with(RESULT)) {
        if let Some(after) = rest.strip_prefix(FENCE) {
            let (word, content) = fence(after);
            if !is_word(word) || is_open && !word.is_empty() {
                return None;
            }
            (rest, is_open) = (content.trim_start(), !is_open);
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let length = match values.next() {
            Some(Ok(value)) => {
                match value.get().starts_with('[') {
                    true => calls.extend(list(value.get())?),
                    false => calls.push(call(value.get())?),
                }
                values.byte_offset()
            }
            _ => {
                let length = json::closed_length(rest)?;
                calls.push(call(&json::repaired(&rest[..length])?.to_string())?);
                length
            }
        };
        rest = rest[length..].trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}

fn list(text: &str) -> Option<Vec<WrittenCall>> {
    let calls: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    calls.into_iter().map(|value| call(value.get())).collect()
}

fn call(text: &str) -> Option<WrittenCall> {
    let JsonCall { name, arguments, .. } = serde_json::from_str(text).ok()?;
    let arguments = wire::arguments(arguments);
    (!name.is_empty() && is_word(&name) && arguments.trim_start().starts_with('{')).then(|| (name, arguments.into_owned()))
}
