//! Decodes Anthropic's stream events (platform.claude.com/docs/en/build-with-claude/streaming).

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;
use serde_with::apply;

use super::PROTOCOL;
use crate::content::{StopReason, Usage};
use crate::model::provider_error::{ProviderError, event_error};
use crate::model::wire::{self, AnswerSize, Chunk, DecodedChunks, EventReader};
use crate::model::{Cause, ModelError};

/// Decodes the stream events of one answer from Anthropic's Messages API.
#[derive(Default)]
pub(crate) struct AnthropicReader {
    /// Blocks that have started and not ended, with their index.
    open: Vec<(usize, Open)>,
    usage: Usage,
    reason: Option<String>,
}

enum Open {
    Text,
    Thinking {
        signature: String,
    },
    Redacted {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: String,
    },
    /// A block type of the provider's server-side tools, which are not used.
    Other,
}

/// Any stream event. The other fields are decoded only if the kind is known.
#[apply(Option<&'a RawValue> => #[serde(borrow)])]
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "wire::lenient")]
    kind: Option<Cow<'a, str>>,
    index: Option<&'a RawValue>,
    content_block: Option<&'a RawValue>,
    delta: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[apply(Option<String> => #[serde(default, deserialize_with = "wire::lenient")])]
#[derive(Default, Deserialize)]
struct ContentBlock<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "wire::lenient")]
    kind: Option<Cow<'a, str>>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[apply(
    Option<String> => #[serde(default, deserialize_with = "wire::lenient")],
    Option<Cow<'a, str>> => #[serde(borrow, default, deserialize_with = "wire::lenient")],
)]
#[derive(Default, Deserialize)]
struct Delta<'a> {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<Cow<'a, str>>,
    partial_json: Option<Cow<'a, str>>,
    stop_reason: Option<String>,
}

#[apply(Option => #[serde(default, deserialize_with = "wire::lenient")])]
#[derive(Default, Deserialize)]
struct Message<'a> {
    /// Normally empty. A call from the provider's code execution is a whole message.
    #[serde(borrow, default, deserialize_with = "wire::lenient_list")]
    content: Vec<ContentBlock<'a>>,
    stop_reason: Option<String>,
    usage: Option<Counts>,
}

#[apply(Option => #[serde(default, deserialize_with = "wire::tokens")])]
#[derive(Default, Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

impl EventReader for AnthropicReader {
    fn read(&mut self, data: &str, out: &mut DecodedChunks) -> Result<(), ModelError> {
        let event: Event<'_> = wire::parse(data)?;
        let index = wire::field(event.index);
        match event.kind.as_deref().unwrap_or_default() {
            "content_block_delta" => self.delta(index, wire::field(event.delta), out),
            "content_block_start" => self.start(index, wire::field(event.content_block), out),
            "content_block_stop" => {
                if let Some(at) = self.open.iter().position(|(open, _)| *open == index) {
                    out.extend(end_of(self.open.remove(at).1));
                }
            }
            "message_start" => self.begin(wire::field(event.message), out),
            "message_delta" => {
                self.count(wire::field(event.usage));
                let reason = wire::field::<Delta<'_>>(event.delta).stop_reason;
                self.reason = reason.filter(|reason| !reason.is_empty()).or(self.reason.take());
            }
            "message_stop" => return self.finish(out),
            "error" => return Err(wire::field::<ProviderError>(event.error).error()),
            "" => return event_error(data).map_or(Ok(()), Err),
            // Ignored events: `ping`, and future events.
            _ => {}
        }
        Ok(())
    }

    fn read_document(&mut self, document: &str, out: &mut DecodedChunks) -> Result<(), ModelError> {
        self.begin(wire::parse(document)?, out);
        Ok(())
    }

    /// Ends the answer. Returns whether it is complete: it has a stop reason and no open block.
    fn end(&mut self, out: &mut DecodedChunks) -> bool {
        self.open.is_empty() && self.finish(out).is_ok()
    }

    fn open_call(&self) -> Option<(&str, &str)> {
        self.open.iter().rev().find_map(|(_, open)| match open {
            Open::ToolUse { name, input, .. } => Some((name.as_str(), input.as_str())),
            _ => None,
        })
    }

    fn usage(&self) -> Option<Usage> {
        Some(self.usage).filter(|usage| *usage != Usage::default())
    }

    fn pending(&self) -> AnswerSize {
        let bytes = self.open.iter().map(|(_, open)| match open {
            Open::Thinking { signature } => signature.len(),
            Open::Redacted { data } => data.len(),
            Open::ToolUse { id, name, input } => id.len() + name.len() + input.len(),
            Open::Text | Open::Other => 0,
        });
        let calls = self.open.iter().filter(|(_, open)| matches!(open, Open::ToolUse { .. })).count();
        AnswerSize { bytes: bytes.sum(), calls, blocks: self.open.len() - calls }
    }
}

impl AnthropicReader {
    fn begin(&mut self, message: Message<'_>, out: &mut DecodedChunks) {
        self.count(message.usage);
        self.reason = message.stop_reason.filter(|_| !message.content.is_empty());
        for (index, block) in message.content.into_iter().enumerate() {
            self.start(index, block, out);
            out.extend(self.open.pop().and_then(|(_, open)| end_of(open)));
        }
    }

    fn start(&mut self, index: usize, block: ContentBlock<'_>, out: &mut DecodedChunks) {
        let open = match block.kind.as_deref().unwrap_or_default() {
            "text" => {
                out.extend(block.text.filter(|text| !text.is_empty()).map(Chunk::Text));
                Open::Text
            }
            "thinking" => {
                out.extend(block.thinking.filter(|text| !text.is_empty()).map(Chunk::Thinking));
                Open::Thinking { signature: block.signature.unwrap_or_default() }
            }
            "redacted_thinking" => Open::Redacted { data: block.data.unwrap_or_default() },
            "tool_use" => {
                let input = block.input.map(wire::arguments).filter(|input| input != "{}").unwrap_or_default().into_owned();
                Open::ToolUse { id: block.id.unwrap_or_default(), name: block.name.unwrap_or_default(), input }
            }
            _ => Open::Other,
        };
        self.open.push((index, open));
    }

    fn delta(&mut self, index: usize, delta: Delta<'_>, out: &mut DecodedChunks) {
        out.extend(delta.text.map(Chunk::Text));
        out.extend(delta.thinking.filter(|text| !text.is_empty()).map(Chunk::Thinking));
        match self.open.iter_mut().find(|(open, _)| *open == index) {
            Some((_, Open::Thinking { signature })) => signature.push_str(&delta.signature.unwrap_or_default()),
            Some((_, Open::ToolUse { input, .. })) => input.push_str(&delta.partial_json.unwrap_or_default()),
            Some((_, Open::Text | Open::Redacted { .. } | Open::Other)) | None => {}
        }
    }

    fn count(&mut self, counts: Option<Counts>) {
        let Some(counts) = counts else { return };
        let usage = &mut self.usage;
        let cached = |usage: &Usage| usage.cache_read_tokens + usage.cache_write_tokens;
        let fresh = counts.input_tokens.unwrap_or(usage.input_tokens - cached(usage));
        usage.cache_read_tokens = counts.cache_read_input_tokens.unwrap_or(usage.cache_read_tokens);
        usage.cache_write_tokens = counts.cache_creation_input_tokens.unwrap_or(usage.cache_write_tokens);
        usage.input_tokens = fresh + cached(usage);
        usage.output_tokens = counts.output_tokens.unwrap_or(usage.output_tokens);
    }

    fn finish(&mut self, out: &mut DecodedChunks) -> Result<(), ModelError> {
        let reason = match self.reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
            Some("refusal") => StopReason::Refusal,
            // end_turn, tool_use, stop_sequence, pause_turn, and future reasons.
            Some(_) => StopReason::EndTurn,
            None => return Err(ModelError::from_cause(Cause::InvalidAnswer, "the answer ended without a stop reason")),
        };
        // The limit may cut an answer in the middle of a block; a call that is cut is dropped.
        for (_, open) in self.open.drain(..) {
            match &open {
                Open::ToolUse { input, .. } if !is_json(input) && reason == StopReason::MaxTokens => {}
                Open::ToolUse { input, .. } if !is_json(input) => {
                    return Err(ModelError::from_cause(Cause::InvalidAnswer, "the answer ended in the middle of a tool call"));
                }
                Open::Thinking { signature } if signature.is_empty() => {}
                Open::Text | Open::Thinking { .. } | Open::Redacted { .. } | Open::ToolUse { .. } | Open::Other => {
                    out.extend(end_of(open));
                }
            }
        }
        out.push_back(Chunk::Usage(self.usage));
        out.push_back(Chunk::Stop(reason));
        Ok(())
    }
}

fn is_json(input: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(input).is_ok()
}

/// Returns the chunk that ends a block.
fn end_of(open: Open) -> Option<Chunk> {
    match open {
        Open::Text => Some(Chunk::BlockEnd { thinking: false, state: None }),
        Open::Thinking { signature } => {
            Some(Chunk::BlockEnd { thinking: true, state: wire::new_state(PROTOCOL, json!({ "signature": signature })) })
        }
        Open::Redacted { data } => {
            Some(Chunk::BlockEnd { thinking: true, state: wire::new_state(PROTOCOL, json!({ "redacted": data })) })
        }
        Open::ToolUse { id, name, input } => {
            let input = if input.is_empty() { "{}".to_owned() } else { input };
            Some(Chunk::ToolCall { id, name, input, state: None })
        }
        Open::Other => None,
    }
}
