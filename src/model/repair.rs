//! Finds out which part of a request a provider refuses, from the words of its error. The place in
//! an error is a place in the request as it was written, so it is looked up there, and the part is
//! recognized by its content.

use regex::Regex;
use serde_json::Value;

use super::adapt::repaired::{block_digest, part_digest, state_digest};
use super::call_ids::CallIds;
use super::message::{Block, Message};
use super::request::Request;
use crate::content::Part;

/// A change to a request after a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// These parts of the conversation are sent as text, or left out.
    Parts { digests: Vec<String>, what: &'static str },
    /// The tool with this name in the request is left out.
    Tool(String),
    /// This field of the body is left out; the names are those of nested objects.
    Field(Vec<String>),
}

/// Fields without which a request has no meaning.
const REQUIRED_FIELDS: &[&str] = &[
    "model",
    "messages",
    "input",
    "contents",
    "stream",
    "system",
    "instructions",
    "systemInstruction",
    "tools",
    "toolConfig",
    "max_tokens",
];

/// The name of a field that Google does not accept, and the path to the object that has it.
const GOOGLE_FIELD: &str = r#"unknown name \\?"(\w+)\\?" at \\?'([\w.]+)\\?'"#;

/// Patterns of the name of a field that a provider does not accept.
const FIELDS: &[&str] = &[
    r#"unknown name \\?"([\w.]+)\\?""#,
    r"(?:unsupported|unknown|invalid|unrecognized) (?:parameter|value|field)s?:? ['`\x22]([\w.]+)['`\x22]",
    r"unrecognized request arguments? supplied: ([\w.]+)",
    r"(?:^|[\s'`\x22])([\w.]+)['`\x22]?: extra inputs are not permitted",
    r"property ['`\x22]([\w.]+)['`\x22] is unsupported",
    r"['`\x22]([\w.]+)['`\x22] is not supported",
    r"(?:does not support|unsupported) (?:the )?(?:parameter )?['`\x22]?(reasoning_effort|thinking|temperature|parallel_tool_calls|stream_options|prompt_cache_key|service_tier)",
];

/// Patterns of the index of a tool.
const TOOL_INDEXES: &[&str] = &[r"function_?declarations\[(\d+)\]", r"tools[.\[](\d+)"];

/// Patterns of the name of a tool.
const TOOL_NAMES: &[&str] = &[r"(?i)(?:function|tool) ['`\x22]([^'`\x22]+)['`\x22]"];

/// Patterns of a place in the conversation: the index of a message, and of a part of it.
const PLACES: &[&str] = &[
    r"messages[.\[](\d+)\]?(?:\.?(?:content|parts|tool_calls)[.\[](\d+))?",
    r"(?:input|contents)\[(\d+)\](?:\.(?:content|parts)\[(\d+)\])?",
    r"(?:message at )?(?:position|index) (\d+)",
];

/// Words of errors about reasoning that a provider does not accept back.
const REASONING: &[&str] = &["signature", "thinking", "encrypted_content", "encrypted content", "reasoning", "'rs_", "thought"];

/// Returns what to change after a refusal. `error` is the provider's text, `body` the request as it
/// was written, `request` the same request before. Returns `None` if the text names nothing that
/// the request has.
pub(super) fn find(error: &str, body: &Value, request: &Request) -> Option<Repair> {
    let lower = error.to_lowercase();
    let names_place = PLACES.iter().take(2).any(|pattern| captured(pattern, &lower).is_some());
    let google_field = || {
        let found = Regex::new(GOOGLE_FIELD).expect("a valid pattern").captures(&lower)?;
        field(&format!("{}.{}", &found[2], &found[1]), body)
    };
    let field = || google_field().or_else(|| FIELDS.iter().find_map(|pattern| field(&captured(pattern, &lower)?, body)));
    let parameter = || field_of_param(error, body);
    tool(error, &lower, request)
        .or_else(|| parameter().or_else(field).filter(|_| !names_place))
        .or_else(|| place(&lower, body, request))
        .or_else(|| called(error, request))
        .or_else(|| reasoning(&lower, request))
        .or_else(|| images(&lower, request))
}

/// Returns the change that leaves a conversation in plain text: without images, documents,
/// reasoning and calls. `None` if it is plain text already.
pub(super) fn plain_text(request: &Request) -> Option<Repair> {
    let not_text = |block: &Block| !matches!(block, Block::Text { .. });
    parts("all images, documents, reasoning and tool calls", digests(request, not_text, |part| !matches!(part, Part::Text { .. })))
}

fn parts(what: &'static str, digests: Vec<String>) -> Option<Repair> {
    (!digests.is_empty()).then_some(Repair::Parts { digests, what })
}

/// Returns what a pattern captures first.
fn captured(pattern: &str, text: &str) -> Option<String> {
    let pattern = Regex::new(pattern).expect("a valid pattern");
    Some(pattern.captures(text)?.get(1)?.as_str().to_owned())
}

fn tool(error: &str, lower: &str, request: &Request) -> Option<Repair> {
    let index = TOOL_INDEXES.iter().find_map(|pattern| captured(pattern, lower)?.parse::<usize>().ok());
    let by_index = index.and_then(|index| request.tools.get(index)).map(|tool| tool.name.clone());
    let name = by_index.or_else(|| {
        let name = TOOL_NAMES.iter().find_map(|pattern| captured(pattern, error))?;
        request.tools.iter().any(|tool| tool.name == name).then_some(name)
    });
    name.map(Repair::Tool)
}

/// Returns the field that the member `param` of an error names.
fn field_of_param(error: &str, body: &Value) -> Option<Repair> {
    let error: Value = serde_json::from_str(error).ok()?;
    field(error.pointer("/error/param").or_else(|| error.get("param"))?.as_str()?, body)
}

/// Returns the change that leaves out a field, if the body has it. Errors write names in lower case
/// and with underscores.
fn field(name: &str, body: &Value) -> Option<Repair> {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let (mut path, mut at) = (Vec::new(), body);
    for wanted in name.split('.') {
        let (name, value) = at.as_object()?.iter().find(|(name, _)| plain(name) == plain(wanted))?;
        path.push(name.clone());
        at = value;
    }
    let is_required = path.first().is_none_or(|first| REQUIRED_FIELDS.contains(&first.as_str()));
    (!is_required).then_some(Repair::Field(path))
}

/// Returns the parts at the place that an error names.
fn place(lower: &str, body: &Value, request: &Request) -> Option<Repair> {
    let list = ["messages", "input", "contents"].iter().find_map(|name| body.get(*name)?.as_array())?;
    let found = PLACES.iter().find_map(|pattern| Regex::new(pattern).expect("a valid pattern").captures(lower))?;
    let index = |group: usize| found.get(group)?.as_str().parse::<usize>().ok();
    let message = list.get(index(1)?)?;
    let after = found.get(0).map_or("", |place| &lower[place.end()..]);
    let content = after.starts_with(".content").then(|| message.get("content")).flatten();
    let inner = ["content", "parts", "tool_calls"].iter().find_map(|name| message.get(*name)?.get(index(2)?)).or(content);
    let mut strings = Vec::new();
    collect(inner.unwrap_or(message), &mut strings);
    let has = |wanted: &str| !wanted.trim().is_empty() && strings.iter().any(|text| text.contains(wanted.trim()));
    let is_media = |part: &Part| match part {
        Part::Image { data, .. } | Part::Audio { data, .. } | Part::Document { data, .. } => has(data),
        Part::Text { .. } | Part::Note { .. } | Part::Resource { .. } | Part::ResourceLink { .. } => false,
    };
    let is_call = |id: &str| strings.iter().any(|text| **text == *id || **text == *CallIds::hashed(id));
    let call = |block: &Block| matches!(block, Block::ToolCall { id, .. } if is_call(id.as_str()));
    let thinking = |block: &Block| match block {
        Block::Thinking { text, state } => has(text) || state.as_ref().is_some_and(|state| has_any(&state.value, &strings)),
        Block::Text { .. } | Block::ToolCall { .. } => false,
    };
    let text = |block: &Block| matches!(block, Block::Text { text, .. } if has(text));
    let text_part = |part: &Part| matches!(part, Part::Text { text } if has(text));
    let reasoning = || parts("reasoning", digests(request, thinking, |_| false));
    // In Chat Completions, the reasoning and the calls of an answer have the same index.
    let is_about_reasoning = REASONING.iter().any(|word| lower.contains(word));
    is_about_reasoning
        .then(reasoning)
        .flatten()
        .or_else(|| parts("an image or a document", digests(request, |_| false, is_media)))
        .or_else(|| parts("a tool call", digests(request, call, |_| false)))
        .or_else(reasoning)
        .or_else(|| parts("a text", digests(request, text, text_part)))
}

fn has_any(state: &Value, strings: &[&str]) -> bool {
    let mut own = Vec::new();
    collect(state, &mut own);
    own.iter().any(|text| text.len() > 3 && strings.contains(text))
}

fn collect<'a>(value: &'a Value, strings: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => strings.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect(value, strings)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, strings)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the calls whose ids an error names.
fn called(error: &str, request: &Request) -> Option<Repair> {
    let named = |id: &str| id.len() > 3 && error.contains(id) || error.contains(&*CallIds::hashed(id));
    let call = |block: &Block| matches!(block, Block::ToolCall { id, .. } if named(id.as_str()));
    parts("a tool call", digests(request, call, |_| false))
}

fn reasoning(lower: &str, request: &Request) -> Option<Repair> {
    if !REASONING.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let mut found = digests(request, |block| matches!(block, Block::Thinking { .. }), |_| false);
    found.extend(blocks(request).filter_map(state_digest));
    parts("reasoning", found)
}

fn images(lower: &str, request: &Request) -> Option<Repair> {
    let is_image = |part: &Part| matches!(part, Part::Image { .. });
    let is_document = |part: &Part| matches!(part, Part::Document { .. } | Part::Audio { .. });
    match () {
        () if lower.contains("image") => parts("all images", digests(request, |_| false, is_image)),
        () if ["document", "pdf", "audio", "file"].iter().any(|word| lower.contains(word)) => {
            parts("all documents", digests(request, |_| false, is_document))
        }
        () => None,
    }
}

fn blocks(request: &Request) -> impl Iterator<Item = &Block> {
    request.messages.iter().flat_map(|message| match &**message {
        Message::Assistant(blocks) => blocks.as_slice(),
        Message::User(_) | Message::ToolResults(_) => &[],
    })
}

/// Returns the digests of the chosen blocks and parts.
fn digests(request: &Request, block: impl Fn(&Block) -> bool, part: impl Fn(&Part) -> bool) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for message in request.messages.iter() {
        match &**message {
            Message::User(parts) => found.extend(parts.iter().filter(|one| part(one)).map(part_digest)),
            Message::Assistant(blocks) => {
                found.extend(blocks.iter().filter(|one| block(one)).map(block_digest));
            }
            Message::ToolResults(results) => {
                found.extend(results.iter().flat_map(|result| &result.output).filter(|one| part(one)).map(part_digest));
            }
        }
    }
    found
}
