//! Encodes requests for Anthropic's Messages API, version 2023-06-01
//! (platform.claude.com/docs/en/api/messages). `read` decodes the answers.

mod read;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

pub(crate) use read::AnthropicReader;

use super::call_ids::CallIds;
use super::catalog;
use super::claude_thinking::{
    OutputConfig, ThinkingConfig, ThinkingStyle, max_tokens, platform_style, thinking_config, thinking_style,
};
use super::endpoint::{CacheTtl, Endpoint, Protocol};
use super::error::ModelError;
use super::kept_encoding::{EncodedJson, KeptEncoding};
use super::message::{Block, Message, ToolResult};
use super::request::{Request, ToolSpec};
use super::wire::{self, EncodedRequest, WireTurn};
use crate::content::{Part, joined};
use crate::options::Thinking;

/// The provider state of a thinking block is `{"signature"}`, or `{"redacted"}` if the block is
/// encrypted.
const PROTOCOL: Protocol = Protocol::Anthropic;

#[skip_serializing_none]
#[derive(Serialize)]
struct Body<'a> {
    /// Absent if the URL names the model.
    model: Option<&'a str>,
    anthropic_version: Option<&'static str>,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Content<'a>>,
    tools: Option<EncodedJson>,
    tool_choice: Option<Value>,
    messages: Vec<WireTurn<Content<'a>>>,
    thinking: Option<ThinkingConfig>,
    output_config: Option<OutputConfig>,
}

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text {
        text: Cow<'a, str>,
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
        cache_control: Option<CacheControl>,
    },
    Document {
        source: Source<'a>,
        title: Option<&'a str>,
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: wire::Input<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Content<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// A cache breakpoint: the provider caches everything before it. A request has at most four: after
/// the tools, the system prompt and the previous request, and at its own end. The provider searches
/// only the last 20 blocks before a breakpoint for a cached prefix, so a request that is much
/// longer than the previous one needs a breakpoint where that one ended.
#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

pub(crate) fn write(endpoint: &Endpoint, request: &Request, kept: &KeptEncoding) -> Result<EncodedRequest, ModelError> {
    let model = catalog::bare_name(&endpoint.model);
    let max_tokens = max_tokens(endpoint);
    let vertex = endpoint.is_vertex();
    let thinking_style = if vertex { platform_style(&model) } else { thinking_style(&model) };
    let ttl = (endpoint.cache_ttl == CacheTtl::OneHour).then_some("1h");
    let breakpoint = CacheControl { r#type: "ephemeral", ttl };
    let mut messages = turns(request, CallIds::new(endpoint, 128), breakpoint);
    let level = if is_thinking_rejected(thinking_style, &messages) { Thinking::Off } else { request.thinking };
    let (thinking, output_config) = thinking_config(endpoint, thinking_style, level, max_tokens);
    // Thinking is refused while it is off.
    if matches!(thinking, None | Some(ThinkingConfig::Disabled)) {
        let is_thinking = |content: &Content<'_>| matches!(content, Content::Thinking { .. } | Content::RedactedThinking { .. });
        messages.iter_mut().for_each(|turn| turn.content.retain(|content| !is_thinking(content)));
    }
    let system = text(&*request.system).map(|text| Content::Text { text, cache_control: Some(breakpoint) });
    let is_last = |tool: &ToolSpec| request.tools.last().is_some_and(|last| std::ptr::eq(last, tool));
    let tools = kept.tools(PROTOCOL, request, |tool| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.input_schema,
        cache_control: is_last(tool).then_some(breakpoint),
    });
    let tools = tools.map_err(wire::unencodable)?;
    let tool_choice = json!({ "type": "auto", "disable_parallel_tool_use": true });
    let tool_choice = (!endpoint.parallel_tool_calls && tools.is_some()).then_some(tool_choice);
    let body = Body {
        model: (!vertex).then_some(&endpoint.model),
        anthropic_version: vertex.then_some("vertex-2023-10-16"),
        max_tokens,
        stream: true,
        system: system.into_iter().collect(),
        tools,
        tool_choice,
        messages,
        thinking,
        output_config,
    };
    if vertex {
        // docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude
        let url = endpoint.url(&format!("models/{}:streamRawPredict", endpoint.model));
        return Ok(EncodedRequest { url, headers: Vec::new(), body: wire::body(&body)? });
    }
    let mut headers = vec![("anthropic-version", "2023-06-01")];
    if matches!(thinking_style, ThinkingStyle::Bound) {
        headers.push(("anthropic-beta", "thinking-binding-controls-2026-08-01"));
    }
    Ok(EncodedRequest { url: url(endpoint, "messages"), headers, body: wire::body(&body)? })
}

/// Returns whether the API would reject a request with thinking. For a model with a thinking
/// budget, the API accepts thinking after tool results only if the turn with the tool calls begins
/// with a thinking block from the same provider.
fn is_thinking_rejected(thinking_style: ThinkingStyle, turns: &[WireTurn<Content<'_>>]) -> bool {
    let [.., assistant, results] = turns else { return false };
    matches!(thinking_style, ThinkingStyle::Budget)
        && matches!(results.content.first(), Some(Content::ToolResult { .. }))
        && !matches!(assistant.content.first(), Some(Content::Thinking { .. } | Content::RedactedThinking { .. }))
}

fn turns(request: &Request, ids: CallIds, breakpoint: CacheControl) -> Vec<WireTurn<Content<'_>>> {
    let mut turns = wire::turns(request, |message| match message {
        Message::User(parts) => ("user", parts.iter().filter_map(part).collect()),
        Message::Assistant(blocks) => ("assistant", blocks.iter().filter_map(|item| block(item, ids)).collect()),
        Message::ToolResults(results) => ("user", results.iter().map(|item| result(item, ids)).collect()),
    });
    // The previous request ended with the user turn before the last one.
    for turn in turns.iter_mut().rev().filter(|turn| turn.role == "user").take(2) {
        match turn.content.last_mut() {
            Some(
                Content::Text { cache_control, .. }
                | Content::Image { cache_control, .. }
                | Content::Document { cache_control, .. }
                | Content::ToolResult { cache_control, .. },
            ) => *cache_control = Some(breakpoint),
            Some(Content::Thinking { .. } | Content::RedactedThinking { .. } | Content::ToolUse { .. }) | None => {}
        }
    }
    turns
}

/// Returns `None` for blank text, which the API rejects.
fn text<'a>(text: impl Into<Cow<'a, str>>) -> Option<Cow<'a, str>> {
    Some(text.into()).filter(|text| !text.trim().is_empty())
}

fn part(part: &Part) -> Option<Content<'_>> {
    match part {
        Part::Text { text: plain } => text(plain).map(|text| Content::Text { text, cache_control: None }),
        Part::Image { mime_type, data } => {
            let source = Source { r#type: "base64", media_type: mime_type, data };
            Some(Content::Image { source, cache_control: None })
        }
        Part::Document { mime_type, name, data, text: _ } => {
            let source = Source { r#type: "base64", media_type: mime_type, data };
            Some(Content::Document { source, title: name.as_deref(), cache_control: None })
        }
        Part::Audio { .. } | Part::Note { .. } | Part::Resource { .. } | Part::ResourceLink { .. } => {
            text(part.as_text()).map(|text| Content::Text { text, cache_control: None })
        }
    }
}

fn block(block: &Block, ids: CallIds) -> Option<Content<'_>> {
    match block {
        Block::Text { text: plain, .. } => text(plain).map(|text| Content::Text { text, cache_control: None }),
        Block::Thinking { text, state } => {
            let state = wire::state(state, PROTOCOL)?;
            match (state.get("redacted").and_then(Value::as_str), state.get("signature").and_then(Value::as_str)) {
                (Some(data), _) => Some(Content::RedactedThinking { data }),
                (None, Some(signature)) => Some(Content::Thinking { thinking: text, signature }),
                (None, None) => None,
            }
        }
        Block::ToolCall { id, name, input, input_text, .. } => {
            Some(Content::ToolUse { id: ids.fit(id.as_str()), name, input: wire::input(input, input_text) })
        }
    }
}

fn result(result: &ToolResult, ids: CallIds) -> Content<'_> {
    Content::ToolResult {
        tool_use_id: ids.fit(result.id.as_str()),
        // The API accepts only text in a failed result.
        content: match result.failed {
            true => text(joined(result.output.iter().map(Part::as_text)))
                .map(|text| Content::Text { text, cache_control: None })
                .into_iter()
                .collect(),
            false => result.output.iter().filter_map(part).collect(),
        },
        is_error: result.failed,
        cache_control: None,
    }
}

/// Returns the URL of a path of the first version of the API, which the base URL may contain.
pub(crate) fn url(endpoint: &Endpoint, path: &str) -> String {
    let has_version = endpoint.base_url.trim_end_matches('/').ends_with("/v1");
    endpoint.url(&format!("{}{path}", if has_version { "" } else { "v1/" }))
}
