//! Rules 1 and 2: names of tools, where the request offers them and in its history.

use std::collections::BTreeSet;

use super::Platform;
use super::refusal::Refusals;
use super::view::{Content, View};
use crate::provider::Protocol;

/// The form of names: a pattern, its characters, and the largest length.
struct NameForm {
    pattern: &'static str,
    /// Characters in addition to letters, digits, `_` and `-`.
    more: &'static str,
    /// The name starts with a letter or one of these characters.
    start: Option<&'static str>,
    max: usize,
}

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    let mut names = BTreeSet::new();
    for tool in &view.tools {
        let place = format!("{}.name", tool.place);
        if let Some(words) = fault(view, tool.name, &place, false) {
            refused.add_code(1, "invalid_value", &*place, words);
        } else if !names.insert(tool.name) && view.protocol != Protocol::Ollama {
            let words = match view.protocol {
                Protocol::Gemini => format!("Duplicate function declaration found: {}", tool.name),
                Protocol::Anthropic => "tools: Tool names must be unique.".to_owned(),
                _ => format!("Tool names must be unique: {}", tool.name),
            };
            refused.add(1, place, words);
        }
    }
    for block in view.blocks() {
        let name = match &block.content {
            Content::Call { name, .. } => *name,
            Content::Result { name: Some(name), .. } => *name,
            _ => continue,
        };
        let place = format!("{}{}", block.place, suffix(view.protocol, block.is_call()));
        if let Some(words) = fault(view, name, &place, true) {
            refused.add_code(2, "invalid_value", place, words);
        }
    }
}

/// Returns the path from a block to its name.
fn suffix(protocol: Protocol, is_call: bool) -> &'static str {
    match protocol {
        Protocol::Anthropic => ".tool_use.name",
        Protocol::OpenaiChat => ".function.name",
        Protocol::Ollama if is_call => ".function.name",
        Protocol::Ollama => ".tool_name",
        Protocol::OpenaiResponses => ".name",
        Protocol::Gemini if is_call => ".function_call.name",
        Protocol::Gemini => ".function_response.name",
        Protocol::Bedrock => ".toolUse.name",
    }
}

fn form(view: &View<'_>, in_history: bool) -> Option<NameForm> {
    let plain = |max| NameForm { pattern: "^[a-zA-Z0-9_-]+$", more: "", start: None, max };
    match view.protocol {
        Protocol::Anthropic => Some(NameForm { pattern: "^[a-zA-Z0-9_-]{1,128}$", ..plain(128) }),
        Protocol::OpenaiChat if view.platform == Platform::Moonshot => Some(NameForm { start: Some(""), ..plain(64) }),
        Protocol::OpenaiChat => Some(plain(64)),
        Protocol::OpenaiResponses => Some(plain(if in_history { 128 } else { 64 })),
        Protocol::Gemini => Some(NameForm { more: ".:", start: Some("_"), ..plain(128) }),
        Protocol::Bedrock => Some(NameForm { pattern: "[a-zA-Z0-9_-]+", ..plain(64) }),
        // Its own API takes any name.
        Protocol::Ollama => None,
    }
}

/// Returns the provider's words about a name that it refuses.
fn fault(view: &View<'_>, name: &str, place: &str, in_history: bool) -> Option<String> {
    let form = form(view, in_history)?;
    let length = name.chars().count();
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter) || form.more.contains(letter);
    let starts = |start: &str| name.starts_with(|letter: char| letter.is_ascii_alphabetic() || start.contains(letter));
    let spelled = !name.is_empty() && name.chars().all(allowed) && form.start.is_none_or(starts);
    if spelled && length <= form.max {
        return None;
    }
    let (pattern, max) = (form.pattern, form.max);
    Some(match view.protocol {
        Protocol::Anthropic => format!("{place}: String should match pattern '{pattern}'"),
        Protocol::Gemini => format!(
            "* GenerateContentRequest.{place}: Invalid function name. Must start with a letter or an underscore. Must be \
             alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of {max}."
        ),
        Protocol::Bedrock if spelled => constraint(name, place, &format!("Member must have length less than or equal to {max}")),
        Protocol::Bedrock => constraint(name, place, &format!("Member must satisfy regular expression pattern: {pattern}")),
        _ if view.platform == Platform::Moonshot => format!(
            "Invalid request: function name is invalid, must start with a letter and can contain letters, numbers, underscores, \
             and dashes: {name}"
        ),
        _ if spelled => format!(
            "Invalid '{place}': string too long. Expected a string with maximum length {max}, but got a string with length \
             {length} instead."
        ),
        _ => format!("Invalid '{place}': string does not match pattern. Expected a string that matches the pattern '{pattern}'."),
    })
}

/// Returns the words of AWS for a value that its service model refuses. Its paths count from 1.
pub fn constraint(value: &str, place: &str, constraint: &str) -> String {
    let segment = |segment: &str| match segment.parse::<usize>() {
        Ok(index) => format!("{}.member", index + 1),
        Err(_) => segment.to_owned(),
    };
    let place: Vec<String> = place.split('.').map(segment).collect();
    format!("1 validation error detected: Value '{value}' at '{}' failed to satisfy constraint: {constraint}", place.join("."))
}
