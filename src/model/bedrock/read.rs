//! Decodes the events of Amazon Bedrock's ConverseStream API
//! (docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html).

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use serde_with::apply;

use super::PROTOCOL;
use crate::content::{StopReason, Usage};
use crate::model::ModelError;
use crate::model::error::Cause;
use crate::model::provider_error::ProviderError;
use crate::model::wire::{self, AnswerSize, Chunk, DecodedChunks, EventReader, interrupted};

/// Decodes the events of one answer. The answer ends with `metadata`, which follows `messageStop`.
#[derive(Default)]
pub(crate) struct BedrockReader {
    /// Blocks that have started and not ended, with their index.
    open: Vec<(usize, Open)>,
    usage: Usage,
    reason: Option<String>,
}

enum Open {
    Text,
    Thinking { signature: String, redacted: String },
    ToolUse { id: String, name: String, input: String },
}

/// Any event: an object with one field, whose name is the type of the event.
#[apply(Option => #[serde(borrow)])]
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    content_block_start: Option<&'a RawValue>,
    content_block_delta: Option<&'a RawValue>,
    content_block_stop: Option<&'a RawValue>,
    message_stop: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    internal_server_exception: Option<&'a RawValue>,
    model_stream_error_exception: Option<&'a RawValue>,
    validation_exception: Option<&'a RawValue>,
    throttling_exception: Option<&'a RawValue>,
    service_unavailable_exception: Option<&'a RawValue>,
    model_timeout_exception: Option<&'a RawValue>,
}

/// The payload of an event of a block.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockEvent<'a> {
    #[serde(default)]
    content_block_index: usize,
    #[serde(default)]
    start: Value,
    #[serde(borrow, default, deserialize_with = "wire::lenient")]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(default, deserialize_with = "wire::lenient")]
    text: Option<String>,
    #[serde(borrow, default, deserialize_with = "wire::lenient")]
    tool_use: Option<ToolUseDelta<'a>>,
    #[serde(borrow, default, deserialize_with = "wire::lenient")]
    reasoning_content: Option<ReasoningDelta<'a>>,
}

#[derive(Deserialize)]
struct ToolUseDelta<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[apply(Option<Cow<'a, str>> => #[serde(borrow, default, deserialize_with = "wire::lenient")])]
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningDelta<'a> {
    #[serde(default, deserialize_with = "wire::lenient")]
    text: Option<String>,
    signature: Option<Cow<'a, str>>,
    redacted_content: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default, deserialize_with = "wire::lenient")]
    usage: Option<Counts>,
}

/// Input tokens that are read from the cache or written to it are not part of `input_tokens`.
#[apply(Option => #[serde(default, deserialize_with = "wire::tokens")])]
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

impl EventReader for BedrockReader {
    fn read(&mut self, data: &str, out: &mut DecodedChunks) -> Result<(), ModelError> {
        let event: Event<'_> = wire::parse(data)?;
        if let Some(error) = event.error() {
            return Err(error);
        }
        if event.content_block_delta.is_some() {
            let BlockEvent { content_block_index, delta, .. } = wire::field(event.content_block_delta);
            self.delta(content_block_index, delta, out);
        }
        if event.content_block_start.is_some() {
            let BlockEvent { content_block_index, start, .. } = wire::field(event.content_block_start);
            if let Some(call) = start["toolUse"].as_object() {
                let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                let open = Open::ToolUse { id: text("toolUseId"), name: text("name"), input: String::new() };
                self.open.push((content_block_index, open));
            }
        }
        if event.content_block_stop.is_some() {
            let index = wire::field::<BlockEvent<'_>>(event.content_block_stop).content_block_index;
            if let Some(at) = self.open.iter().position(|(open, _)| *open == index) {
                stop(self.open.remove(at).1, out);
            }
        }
        if event.message_stop.is_some() {
            self.reason = wire::field::<Value>(event.message_stop)["stopReason"].as_str().map(str::to_owned);
        }
        if event.metadata.is_some() {
            self.count(wire::field::<Metadata>(event.metadata).usage);
            return self.finish(out);
        }
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
            Open::Text => 0,
            Open::Thinking { signature, redacted } => signature.len() + redacted.len(),
            Open::ToolUse { id, name, input } => id.len() + name.len() + input.len(),
        });
        let calls = self.open.iter().filter(|(_, open)| matches!(open, Open::ToolUse { .. })).count();
        AnswerSize { bytes: bytes.sum(), calls, blocks: self.open.len() - calls }
    }
}

impl Event<'_> {
    /// Returns the error of an exception event.
    fn error(&self) -> Option<ModelError> {
        let exceptions = [
            ("internalServerException", self.internal_server_exception),
            ("modelStreamErrorException", self.model_stream_error_exception),
            ("validationException", self.validation_exception),
            ("throttlingException", self.throttling_exception),
            ("serviceUnavailableException", self.service_unavailable_exception),
            ("modelTimeoutException", self.model_timeout_exception),
        ];
        let (kind, raw) = exceptions.into_iter().find_map(|(kind, raw)| Some((kind, raw?)))?;
        let error: ProviderError = wire::field(Some(raw));
        Some(ProviderError { kind: Some(kind.to_owned()), ..error }.error())
    }
}

impl BedrockReader {
    fn delta(&mut self, index: usize, delta: Option<Delta<'_>>, out: &mut DecodedChunks) {
        let Some(delta) = delta else { return };
        if let Some(text) = delta.text {
            self.block(index, || Open::Text);
            out.extend(Some(text).filter(|text| !text.is_empty()).map(Chunk::Text));
        }
        if let Some(piece) = delta.reasoning_content {
            let open = self.block(index, || Open::Thinking { signature: String::new(), redacted: String::new() });
            if let Open::Thinking { signature, redacted } = open {
                signature.push_str(&piece.signature.unwrap_or_default());
                redacted.push_str(&piece.redacted_content.unwrap_or_default());
            }
            out.extend(piece.text.filter(|text| !text.is_empty()).map(Chunk::Thinking));
        }
        let call = self.open.iter_mut().find(|(open, _)| *open == index);
        if let (Some((_, Open::ToolUse { input, .. })), Some(piece)) = (call, delta.tool_use.and_then(|delta| delta.input)) {
            input.push_str(&wire::arguments(piece));
        }
    }

    /// Returns the open block with this index. Opens it with `new` if necessary, because blocks of
    /// text and thinking start with their first delta.
    fn block(&mut self, index: usize, new: impl FnOnce() -> Open) -> &mut Open {
        let at = self.open.iter().position(|(open, _)| *open == index).unwrap_or_else(|| {
            self.open.push((index, new()));
            self.open.len() - 1
        });
        &mut self.open[at].1
    }

    fn count(&mut self, counts: Option<Counts>) {
        let Some(counts) = counts else { return };
        let (read, written) =
            (counts.cache_read_input_tokens.unwrap_or_default(), counts.cache_write_input_tokens.unwrap_or_default());
        self.usage = Usage {
            input_tokens: counts.input_tokens.unwrap_or_default() + read + written,
            output_tokens: counts.output_tokens.unwrap_or_default(),
            cache_read_tokens: read,
            cache_write_tokens: written,
        };
    }

    fn finish(&mut self, out: &mut DecodedChunks) -> Result<(), ModelError> {
        let reason = match self.reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
            Some("guardrail_intervened" | "content_filtered") => StopReason::Refusal,
            Some(reason @ ("malformed_model_output" | "malformed_tool_use")) => {
                return Err(ModelError::from_cause(Cause::InvalidAnswer, format!("the answer failed ({reason})")));
            }
            // end_turn, tool_use, stop_sequence, and future reasons.
            Some(_) => StopReason::EndTurn,
            None => return Err(interrupted("it ended without a stop reason")),
        };
        // The limit may cut an answer in the middle of a block; a call that is cut is dropped.
        for (_, open) in self.open.drain(..) {
            match &open {
                Open::ToolUse { input, .. } if serde_json::from_str::<IgnoredAny>(input).is_err() => {
                    if reason != StopReason::MaxTokens {
                        return Err(interrupted("it ended in the middle of a tool call"));
                    }
                }
                Open::Text | Open::Thinking { .. } | Open::ToolUse { .. } => stop(open, out),
            }
        }
        out.push_back(Chunk::Usage(self.usage));
        out.push_back(Chunk::Stop(reason));
        Ok(())
    }
}

fn stop(open: Open, out: &mut DecodedChunks) {
    out.push_back(match open {
        Open::Text => Chunk::BlockEnd { thinking: false, state: None },
        Open::Thinking { signature, redacted } => {
            let state = match (redacted.is_empty(), signature.is_empty()) {
                (false, _) => wire::new_state(PROTOCOL, json!({ "redacted": redacted })),
                (true, false) => wire::new_state(PROTOCOL, json!({ "signature": signature })),
                (true, true) => None,
            };
            Chunk::BlockEnd { thinking: true, state }
        }
        Open::ToolUse { id, name, input } => {
            let input = if input.is_empty() { "{}".to_owned() } else { input };
            Chunk::ToolCall { id, name, input, state: None }
        }
    });
}
