//! Decodes the lines of an answer of Ollama.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use serde_with::apply;

use super::PROTOCOL;
use crate::content::{StopReason, Usage};
use crate::id::ToolCallId;
use crate::model::ModelError;
use crate::model::json_calls::JsonCalls;
use crate::model::provider_error::{ProviderError, event_error};
use crate::model::request::Request;
use crate::model::wire::{self, Chunk, DecodedChunks, EventReader};

/// Decodes the lines of one answer.
pub(crate) struct OllamaReader {
    /// A thinking block is open.
    thinking: bool,
    /// The server decoded a call.
    has_calls: bool,
    json: JsonCalls,
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
            let is_cut = event.done_reason.as_deref() == Some("length");
            match self.json.end(!is_cut) {
                Ok(calls) if !self.has_calls => {
                    calls.into_iter().for_each(|(name, input)| self.call(String::new(), name, input, out));
                }
                // The text of the calls that the server decoded.
                Ok(_) => {}
                Err(text) => self.text(text, out),
            }
            self.end_thinking(out);
            if let Some(input_tokens) = event.prompt_eval_count {
                let output_tokens = event.eval_count.unwrap_or_default();
                let cache_read_tokens = event.prompt_eval_cached_count.unwrap_or_default();
                out.push_back(Chunk::Usage(Usage { input_tokens, output_tokens, cache_read_tokens, ..Usage::default() }));
            }
            out.push_back(Chunk::Stop(if is_cut { StopReason::MaxTokens } else { StopReason::EndTurn }));
        }
        Ok(())
    }
}

impl OllamaReader {
    pub(crate) fn new(request: &Request) -> OllamaReader {
        OllamaReader { thinking: false, has_calls: false, json: JsonCalls::new(request) }
    }

    fn message(&mut self, message: MessagePart<'_>, out: &mut DecodedChunks) {
        if let Some(text) = message.thinking.filter(|text| !text.is_empty()) {
            self.thinking = true;
            out.push_back(Chunk::Thinking(text));
        }
        let text = self.json.read(message.content.unwrap_or_default());
        self.text(text, out);
        for Call { id, function } in message.tool_calls {
            self.has_calls = true;
            let input = function.arguments.map(wire::arguments).unwrap_or_default();
            self.call(id.unwrap_or_default(), function.name.unwrap_or_default(), input.into_owned(), out);
        }
    }

    fn text(&mut self, text: String, out: &mut DecodedChunks) {
        if !text.is_empty() {
            self.end_thinking(out);
            out.push_back(Chunk::Text(text));
        }
    }

    fn call(&mut self, id: String, name: String, input: String, out: &mut DecodedChunks) {
        self.end_thinking(out);
        let id = if id.is_empty() { ToolCallId::new().to_string() } else { id };
        let input = if input.trim().is_empty() { "{}".to_owned() } else { input };
        out.push_back(Chunk::ToolCall { id, name, input, state: None });
    }

    fn end_thinking(&mut self, out: &mut DecodedChunks) {
        if std::mem::take(&mut self.thinking) {
            out.push_back(Chunk::BlockEnd { thinking: true, state: wire::new_state(PROTOCOL, json!({})) });
        }
    }
}
