//! Anthropic's Messages API, version 2023-06-01 (platform.claude.com/docs/en/api/messages): what goes out. `read` is what comes back.

mod read;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

pub use read::Answer;

use super::catalog;
use super::endpoint::{Endpoint, Protocol};
use super::wire::{self, Sent};
use super::{Block, Message, ModelError, Request, Thinking, ToolResult};
use crate::content::{Part, plain_text};

/// What a thinking block carries: `{"signature"}`, or `{"redacted"}` for one that came encrypted.
const PROTOCOL: Protocol = Protocol::Anthropic;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<How>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Content<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
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
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Content<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
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

#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

/// What comes before this mark is worth keeping for the next request.
const MARK: Option<CacheControl> = Some(CacheControl { r#type: "ephemeral" });

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum How {
    Enabled {
        budget_tokens: u32,
    },
    Adaptive {
        display: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        block_binding: Option<BlockBinding>,
    },
    Disabled,
}

#[derive(Serialize)]
struct BlockBinding {
    prefix_mismatch_behavior: &'static str,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

pub fn write(endpoint: &Endpoint, request: &Request) -> Result<Sent, ModelError> {
    let model = catalog::bare_name(&endpoint.model);
    let max_tokens = endpoint.max_output_tokens.unwrap_or_else(|| catalog::max_output_tokens(&endpoint.model));
    let manner = manner(&model);
    let messages = turns(request);
    let level = if wants_thought(manner, &messages) { Thinking::Off } else { request.thinking };
    let (thinking, output_config) = how(manner, level, max_tokens);
    let system = text(&request.system).map(|text| Content::Text { text, cache_control: MARK });
    let mut tools: Vec<Tool<'_>> = request
        .tools
        .iter()
        .map(|tool| Tool {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.input_schema,
            cache_control: None,
        })
        .collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = MARK;
    }
    let body = Body {
        model: &endpoint.model,
        max_tokens,
        stream: true,
        system: system.into_iter().collect(),
        tools,
        messages,
        thinking,
        output_config,
    };
    let mut headers = vec![("anthropic-version", "2023-06-01")];
    if matches!(manner, Manner::Bound) {
        headers.push(("anthropic-beta", "thinking-binding-controls-2026-08-01"));
    }
    let path = if endpoint.base_url.trim_end_matches('/').ends_with("/v1") { "messages" } else { "v1/messages" };
    Ok(Sent { url: endpoint.url(path), headers, body: wire::body(&body)? })
}

/// How a model is told to think.
#[derive(Clone, Copy)]
enum Manner {
    /// A budget of tokens; without one it does not think.
    Budget,
    /// As it sees fit, when asked to.
    Adaptive,
    /// The same, also when not told to.
    ByDefault,
    /// Always, and its thinking is bound to what stood before it: where that was changed (pruned, compacted), it is to be dropped
    /// instead of refused (platform.claude.com/docs/en/build-with-claude/preserved-thinking).
    Bound,
}

/// By the beginning of the name; the first that fits.
const MANNERS: &[(&str, Manner)] = &[
    ("claude-opus-4-6", Manner::Adaptive),
    ("claude-opus-4-7", Manner::Adaptive),
    ("claude-opus-4-8", Manner::Adaptive),
    ("claude-sonnet-4-6", Manner::Adaptive),
    ("claude-opus-5-5", Manner::Bound),
    ("claude-sonnet-5-5", Manner::Bound),
    ("claude-haiku-5-5", Manner::Bound),
    ("claude-fable-5-1", Manner::Bound),
    ("claude-mythos", Manner::Adaptive),
    ("claude-fable", Manner::Adaptive),
    ("claude-opus-5", Manner::ByDefault),
    ("claude-sonnet-5", Manner::ByDefault),
    ("claude-3", Manner::Budget),
    ("claude-opus-4", Manner::Budget),
    ("claude-sonnet-4", Manner::Budget),
    ("claude-haiku-4", Manner::Budget),
    ("claude-", Manner::Adaptive),
];

fn manner(model: &str) -> Manner {
    MANNERS.iter().find(|(prefix, _)| model.starts_with(prefix)).map_or(Manner::Budget, |(_, manner)| *manner)
}

fn how(manner: Manner, thinking: Thinking, max_tokens: u32) -> (Option<How>, Option<OutputConfig>) {
    let effort = match thinking {
        Thinking::Off | Thinking::Minimal | Thinking::Low => "low",
        Thinking::Medium => "medium",
        Thinking::High => "high",
    };
    let adaptive = |block_binding| (Some(How::Adaptive { display: "summarized", block_binding }), Some(OutputConfig { effort }));
    match (manner, thinking) {
        (Manner::Bound, _) => adaptive(Some(BlockBinding { prefix_mismatch_behavior: "drop_block" })),
        (Manner::ByDefault, Thinking::Off) => (Some(How::Disabled), None),
        (Manner::Adaptive | Manner::Budget, Thinking::Off) => (None, None),
        (Manner::Adaptive | Manner::ByDefault, _) => adaptive(None),
        (Manner::Budget, level) => {
            let budget_tokens = match level {
                Thinking::Off | Thinking::Minimal => 1024,
                Thinking::Low => 4096,
                Thinking::Medium => 12_000,
                Thinking::High => 24_000,
            };
            // At least 1024, and less than max_tokens: half of them are left for the answer.
            let budget_tokens = budget_tokens.min(max_tokens / 2);
            ((budget_tokens >= 1024).then_some(How::Enabled { budget_tokens }), None)
        }
    }
}

/// Whether a model with a budget would refuse to think: between its calls and their results it goes on thinking only where it thought
/// before them, and another model's thoughts do not count.
fn wants_thought(manner: Manner, turns: &[Turn<'_>]) -> bool {
    let [.., assistant, results] = turns else { return false };
    matches!(manner, Manner::Budget)
        && matches!(results.content.first(), Some(Content::ToolResult { .. }))
        && !matches!(assistant.content.first(), Some(Content::Thinking { .. } | Content::RedactedThinking { .. }))
}

fn turns(request: &Request) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in &request.messages {
        let (role, content) = match message.as_ref() {
            Message::User(parts) => ("user", parts.iter().filter_map(part).collect()),
            Message::Assistant(blocks) => ("assistant", blocks.iter().filter_map(block).collect()),
            Message::ToolResults(results) => ("user", results.iter().map(result).collect::<Vec<_>>()),
        };
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(content),
            _ => turns.push(Turn { role, content }),
        }
    }
    let last = turns.iter_mut().rev().find(|turn| turn.role == "user").and_then(|turn| turn.content.last_mut());
    match last {
        Some(
            Content::Text { cache_control, .. } | Content::Image { cache_control, .. } | Content::ToolResult { cache_control, .. },
        ) => *cache_control = MARK,
        Some(Content::Thinking { .. } | Content::RedactedThinking { .. } | Content::ToolUse { .. }) | None => {}
    }
    turns
}

/// None for what is blank, which the API refuses.
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
        Part::Resource { .. } | Part::ResourceLink { .. } => {
            text(part.as_text()).map(|text| Content::Text { text, cache_control: None })
        }
    }
}

fn block(block: &Block) -> Option<Content<'_>> {
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
        Block::ToolCall { id, name, input, .. } => {
            Some(Content::ToolUse { id: call_id(id.as_str()), name, input: wire::object(input) })
        }
    }
}

fn result(result: &ToolResult) -> Content<'_> {
    Content::ToolResult {
        tool_use_id: call_id(result.id.as_str()),
        // Only text may tell of an error.
        content: match result.failed {
            true => text(plain_text(&result.output)).map(|text| Content::Text { text, cache_control: None }).into_iter().collect(),
            false => result.output.iter().filter_map(part).collect(),
        },
        is_error: result.failed,
        cache_control: None,
    }
}

fn call_id(id: &str) -> Cow<'_, str> {
    wire::call_id(id, |id| wire::is_plain(id, 128))
}
