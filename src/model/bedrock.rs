//! Encodes requests for Amazon Bedrock's ConverseStream API
//! (docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html). `read`
//! decodes the answers.

mod read;

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

pub(crate) use read::BedrockReader;

use super::call_ids::CallIds;
use super::claude_thinking::{max_tokens, platform_thinking};
use super::endpoint::{CacheTtl, Endpoint, Protocol};
use super::error::ModelError;
use super::message::{Block, Message, ToolResult};
use super::request::Request;
use super::wire::{self, EncodedRequest, WireTurn};
use crate::content::Part;

/// The provider state of a thinking block is `{"signature"}`, or `{"redacted"}` if the block is
/// encrypted.
const PROTOCOL: Protocol = Protocol::Bedrock;

/// The characters of a model id that are encoded in the URL.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Content<'a>>,
    messages: Vec<WireTurn<Content<'a>>>,
    tool_config: Option<ToolConfig<'a>>,
    inference_config: Option<Value>,
    additional_model_request_fields: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Content<'a> {
    Text(Cow<'a, str>),
    Image {
        format: &'a str,
        source: Source<'a>,
    },
    Document {
        format: &'static str,
        name: &'a str,
        source: Source<'a>,
    },
    #[serde(rename = "reasoningContent")]
    Reasoning(Reasoning<'a>),
    ToolUse {
        tool_use_id: Cow<'a, str>,
        name: &'a str,
        input: wire::Input<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Content<'a>>,
        status: &'static str,
    },
    CachePoint(CachePoint),
}

#[derive(Serialize)]
struct Source<'a> {
    bytes: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Reasoning<'a> {
    ReasoningText { text: &'a str, signature: &'a str },
    RedactedContent(&'a str),
}

/// A cache breakpoint: the provider caches everything before it.
#[derive(Clone, Copy, Serialize)]
struct CachePoint {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

#[derive(Serialize)]
struct ToolConfig<'a> {
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Tool<'a> {
    ToolSpec { name: &'a str, description: &'a str, input_schema: InputSchema<'a> },
    CachePoint(CachePoint),
}

#[derive(Serialize)]
struct InputSchema<'a> {
    json: &'a Value,
}

/// Which parts of a request may end with a cache breakpoint.
#[derive(Clone, Copy, PartialEq)]
enum CacheSupport {
    Nothing,
    /// Amazon Nova: the system prompt and messages.
    Prompts,
    /// Claude: tools too.
    Everything,
}

/// Models of the family that lack prompt caching
/// (docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html).
const WITHOUT_CACHE: &[&str] =
    &["claude-v2", "claude-instant", "claude-3-opus", "claude-3-sonnet", "claude-3-haiku", "claude-3-5-sonnet-20240620"];

impl CacheSupport {
    fn from_model(model: &str) -> CacheSupport {
        match claude(model) {
            Some(name) if WITHOUT_CACHE.iter().any(|prefix| name.starts_with(prefix)) => CacheSupport::Nothing,
            Some(_) => CacheSupport::Everything,
            None if model.contains("amazon.nova") => CacheSupport::Prompts,
            None => CacheSupport::Nothing,
        }
    }
}

/// Returns the name of a Claude model: `claude-sonnet-4-6` for the id
/// `us.anthropic.claude-sonnet-4-6`. Returns `None` for other models.
fn claude(model: &str) -> Option<&str> {
    model.find("claude-").map(|start| &model[start..])
}

pub(crate) fn write(endpoint: &Endpoint, request: &Request) -> Result<EncodedRequest, ModelError> {
    let (claude, caching) = (claude(&endpoint.model), CacheSupport::from_model(&endpoint.model));
    let max_tokens = endpoint.max_output_tokens.or(claude.map(|_| max_tokens(endpoint)));
    let ttl = (endpoint.cache_ttl == CacheTtl::OneHour && claude.is_some()).then_some("1h");
    let breakpoint = CachePoint { r#type: "default", ttl };
    let mut system: Vec<Content<'_>> = text(&*request.system).into_iter().collect();
    let mut messages = turns(request, CallIds::new(endpoint, 64));
    let is_missing = is_thinking_missing(&messages);
    let fields = claude.and_then(|model| platform_thinking(endpoint, model, request.thinking, is_missing));
    // Reasoning is refused while it is off.
    let thinking = fields.as_ref().and_then(|fields| fields.get("thinking")).filter(|thinking| thinking["type"] != "disabled");
    if thinking.is_none() {
        messages.iter_mut().for_each(|turn| turn.content.retain(|content| !matches!(content, Content::Reasoning(_))));
    }
    let mut tools: Vec<Tool<'_>> = request
        .tools
        .iter()
        .map(|tool| Tool::ToolSpec {
            name: &tool.name,
            description: &tool.description,
            input_schema: InputSchema { json: &tool.input_schema },
        })
        .collect();
    if caching != CacheSupport::Nothing {
        if !system.is_empty() {
            system.push(Content::CachePoint(breakpoint));
        }
        // The previous request ended with the user turn before the last one.
        for turn in messages.iter_mut().rev().filter(|turn| turn.role == "user").take(2) {
            // A breakpoint after a document is refused.
            if !matches!(turn.content.last(), Some(Content::Document { .. })) {
                turn.content.push(Content::CachePoint(breakpoint));
            }
        }
    }
    if caching == CacheSupport::Everything && !tools.is_empty() {
        tools.push(Tool::CachePoint(breakpoint));
    }
    let body = Body {
        system,
        messages,
        tool_config: (!tools.is_empty()).then_some(ToolConfig { tools }),
        inference_config: max_tokens.map(|tokens| json!({ "maxTokens": tokens })),
        additional_model_request_fields: fields,
    };
    let path = format!("model/{}/converse-stream", utf8_percent_encode(&endpoint.model, SEGMENT));
    Ok(EncodedRequest { url: endpoint.url(&path), headers: Vec::new(), body: wire::body(&body)? })
}

/// Returns whether the last tool calls come from a turn that does not begin with a thinking block.
fn is_thinking_missing(turns: &[WireTurn<Content<'_>>]) -> bool {
    let [.., assistant, results] = turns else { return false };
    matches!(results.content.first(), Some(Content::ToolResult { .. }))
        && !matches!(assistant.content.first(), Some(Content::Reasoning(_)))
}

fn turns(request: &Request, ids: CallIds) -> Vec<WireTurn<Content<'_>>> {
    wire::turns(request, |message| match message {
        Message::User(parts) => ("user", parts.iter().filter_map(part).collect()),
        Message::Assistant(blocks) => ("assistant", blocks.iter().filter_map(|item| block(item, ids)).collect()),
        Message::ToolResults(results) => ("user", results.iter().map(|item| result(item, ids)).collect()),
    })
}

/// Returns `None` for blank text, which the API rejects.
fn text<'a>(text: impl Into<Cow<'a, str>>) -> Option<Content<'a>> {
    Some(text.into()).filter(|text| !text.trim().is_empty()).map(Content::Text)
}

fn part(part: &Part) -> Option<Content<'_>> {
    match part {
        Part::Text { text: plain } => text(plain),
        Part::Image { mime_type, data } => {
            let format = mime_type.strip_prefix("image/").unwrap_or(mime_type);
            Some(Content::Image { format, source: Source { bytes: data } })
        }
        Part::Document { name, data, .. } => {
            let name = name.as_deref().unwrap_or_default();
            Some(Content::Document { format: "pdf", name, source: Source { bytes: data } })
        }
        Part::Audio { .. } | Part::Note { .. } | Part::Resource { .. } | Part::ResourceLink { .. } => text(part.as_text()),
    }
}

fn block(block: &Block, ids: CallIds) -> Option<Content<'_>> {
    match block {
        Block::Text { text: plain, .. } => text(plain),
        Block::Thinking { text, state } => {
            let state = wire::state(state, PROTOCOL)?;
            match (state.get("redacted").and_then(Value::as_str), state.get("signature").and_then(Value::as_str)) {
                (Some(data), _) => Some(Content::Reasoning(Reasoning::RedactedContent(data))),
                (None, Some(signature)) => Some(Content::Reasoning(Reasoning::ReasoningText { text, signature })),
                (None, None) => None,
            }
        }
        Block::ToolCall { id, name, input, input_text, .. } => {
            Some(Content::ToolUse { tool_use_id: ids.fit(id.as_str()), name, input: wire::input(input, input_text) })
        }
    }
}

fn result(result: &ToolResult, ids: CallIds) -> Content<'_> {
    Content::ToolResult {
        tool_use_id: ids.fit(result.id.as_str()),
        content: result.output.iter().filter_map(part).collect(),
        status: if result.failed { "error" } else { "success" },
    }
}
