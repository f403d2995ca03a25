//! Decodes the lines of an answer of Ollama.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use serde_with::apply;

use super::PROTOCOL;
use crate::content::{StopReason, Usage};
use crate::id::ToolCallId;
use crate::model::ModelError;
use crate::model::provider_error::{ProviderError, event_error};
use crate::model::wire::{self, Chunk, DecodedChunks, EventReader};

/// Decodes the lines of one answer.
#[derive(Default)]
pub(crate) struct OllamaReader {
    /// A thinking block is open.
    thinking: bool,
}

#[apply(Option<u64> => #[serde(default, deserialize_with = "wire::tokens")])]
#[derive(Default, Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, deserialize_with = "wire::lenient")]
    message: Option<MessagePart<'a>>,
    #[serde(default, deserialize_with = "wire::lenient")]
    done: Option<bool>,
    #[serde(default, deserialize_with = "wire::lenient")]
    done_reason: Option<String>,
    /// Includes cached tokens.
    prompt_eval_count: Option<u64>,
    prompt_eval_cached_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<Value>,
}

/// A part of the message.
#[apply(Option => #[serde(default, deserialize_with = "wire::lenient")])]
#[derive(Deserialize)]
struct MessagePart<'a> {
    content: Option<String>,
    thinking: Option<String>,
    #[serde(borrow, default, deserialize_with = "wire::lenient_list")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(default, deserialize_with = "wire::lenient")]
    id: Option<String>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(default, deserialize_with = "wire::lenient")]
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl EventReader for OllamaReader {
    fn read(&mut self, data: &str, out: &mut DecodedChunks) -> Result<(), ModelError> {
        let event = wire::parse::<Option<Event<'_>>>(data)?.unwrap_or_default();
        if let Some(error) = event.error.filter(|error| !error.is_null()) {
            return Err(ProviderError::read(error).error());
        }
        match event.message {
            Some(message) => self.message(message, out),
            None if event.done.is_none() => return event_error(data).map_or(Ok(()), Err),
            None => {}
        }
        if event.done == Some(true) {
            self.end_thinking(out);
            if let Some(input_tokens) = event.prompt_eval_count {
                let output_tokens = event.eval_count.unwrap_or_default();
                let cache_read_tokens = event.prompt_eval_cached_count.unwrap_or_default();
                out.push_back(Chunk::Usage(Usage { input_tokens, output_tokens, cache_read_tokens, ..Usage::default() }));
            }
            out.push_back(Chunk::Stop(match event.done_reason.as_deref() {
                Some("length") => StopReason::MaxTokens,
                _ => StopReason::EndTurn,
            }));
        }
        Ok(())
    }
}

impl OllamaReader {
    fn message(&mut self, message: MessagePart<'_>, out: &mut DecodedChunks) {
        if let Some(text) = message.thinking.filter(|text| !text.is_empty()) {
            self.thinking = true;
            out.push_back(Chunk::Thinking(text));
        }
        if let Some(text) = message.content.filter(|text| !text.is_empty()) {
            self.end_thinking(out);
            out.push_back(Chunk::Text(text));
        }
        for Call { id, function } in message.tool_calls {
            self.end_thinking(out);
            let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| ToolCallId::new().to_string());
            let input = function.arguments.map(wire::arguments).unwrap_or_default();
            let input = if input.trim().is_empty() { "{}".to_owned() } else { input.into_owned() };
            out.push_back(Chunk::ToolCall { id, name: function.name.unwrap_or_default(), input, state: None });
        }
    }

    fn end_thinking(&mut self, out: &mut DecodedChunks) {
        if std::mem::take(&mut self.thinking) {
            out.push_back(Chunk::BlockEnd { thinking: true, state: wire::new_state(PROTOCOL, json!({})) });
        }
    }
}
