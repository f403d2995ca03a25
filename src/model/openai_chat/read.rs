//! Decodes the chunks of a chat completion, including the reasoning fields of compatible servers.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use serde_with::apply;

use super::PROTOCOL;
use super::calls::{Calls, PartialCall};
use super::details::{self, Detail};
use super::tags::{TagReader, TextPart};
use super::text_event;
use crate::content::{StopReason, Usage};
use crate::model::ModelError;
use crate::model::endpoint::Endpoint;
use crate::model::json_calls::JsonCalls;
use crate::model::provider_error::{ProviderError, event_error};
use crate::model::request::Request;
use crate::model::wire::{self, AnswerSize, Chunk, DecodedChunks, EventReader};

/// Decodes the chunks of one answer from a Chat Completions API.
pub(crate) struct OpenaiChatReader {
    provider: String,
    calls: Calls,
    /// The calls that the model wrote as text.
    written: Calls,
    /// The response field that contains the text of the open thinking block.
    field: Option<&'static str>,
    details: Vec<Detail>,
    usage: Option<Usage>,
    reason: Option<StopReason>,
    refused: bool,
    tags: Option<TagReader>,
    json: JsonCalls,
    /// The answer is a document, not a stream.
    document: bool,
}

#[derive(Default, Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, deserialize_with = "wire::lenient_list")]
    choices: Vec<Choice<'a>>,
    #[serde(default, deserialize_with = "wire::lenient")]
    usage: Option<Counts>,
    #[serde(default, deserialize_with = "wire::lenient")]
    x_groq: Option<GroqFields>,
    error: Option<Value>,
}

/// Groq's fields. A request without `stream_options` has its usage only here.
#[derive(Deserialize)]
struct GroqFields {
    #[serde(default, deserialize_with = "wire::lenient")]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default, deserialize_with = "wire::lenient")]
    delta: Option<Delta<'a>>,
    /// The whole message, in an answer without a stream.
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "wire::lenient")]
    finish_reason: Option<String>,
    /// The usage, from Moonshot.
    #[serde(default, deserialize_with = "wire::lenient")]
    usage: Option<Counts>,
    /// The error behind the finish reason `error`, from OpenRouter.
    error: Option<Value>,
}

#[apply(Option<String> => #[serde(default, deserialize_with = "wire::lenient")])]
#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default, deserialize_with = "wire::lenient")]
    content: Option<Content>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    #[serde(default, deserialize_with = "wire::lenient_list")]
    reasoning_details: Vec<Detail>,
    refusal: Option<String>,
    #[serde(borrow, default, deserialize_with = "wire::lenient_list")]
    tool_calls: Vec<CallDelta<'a>>,
    /// The predecessor of `tool_calls`, which some servers still use.
    #[serde(borrow, default, deserialize_with = "wire::lenient")]
    function_call: Option<FunctionDelta<'a>>,
}

/// Text, or one or several pieces (Mistral's reasoning models).
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Pieces(Vec<Piece>),
    Piece(Piece),
}

#[derive(Deserialize)]
struct Piece {
    text: Option<String>,
    thinking: Option<Vec<Piece>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    #[serde(default, deserialize_with = "wire::lenient")]
    index: Option<usize>,
    #[serde(default, deserialize_with = "wire::lenient")]
    id: Option<String>,
    #[serde(borrow, default, deserialize_with = "wire::lenient")]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(default, deserialize_with = "wire::lenient")]
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[apply(Option<u64> => #[serde(default, deserialize_with = "wire::tokens")])]
#[derive(Deserialize)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient")]
    prompt_tokens_details: Option<Details>,
    /// DeepSeek's name for the number of cached prompt tokens.
    prompt_cache_hit_tokens: Option<u64>,
}

#[apply(Option => #[serde(default, deserialize_with = "wire::tokens")])]
#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl EventReader for OpenaiChatReader {
    fn read(&mut self, data: &str, out: &mut DecodedChunks) -> Result<(), ModelError> {
        if data.trim() == "[DONE]" {
            self.reason.get_or_insert(StopReason::EndTurn);
            self.end(out);
            return Ok(());
        }
        if let Some(text) = text_event::read(data) {
            self.content(text, out);
            return Ok(());
        }
        let event = wire::parse::<Option<Event<'_>>>(data)?.unwrap_or_default();
        if let Some(error) = event.error.filter(|error| !error.is_null()) {
            return Err(ProviderError::read(error).error());
        }
        let usage = event.usage.or_else(|| event.x_groq?.usage);
        if event.choices.is_empty()
            && usage.is_none()
            && let Some(error) = event_error(data)
        {
            return Err(error);
        }
        usage.into_iter().for_each(|counts| self.count(counts));
        for choice in event.choices {
            if let Some(error) = choice.error.filter(|error| !error.is_null()) {
                return Err(ProviderError::read(error).error());
            }
            choice.usage.into_iter().for_each(|counts| self.count(counts));
            if let Some(delta) = choice.delta {
                self.delta(delta, out);
            } else if let Some(mut message) = wire::field::<Option<Delta<'_>>>(choice.message.filter(|_| self.document)) {
                for (index, call) in message.tool_calls.iter_mut().enumerate() {
                    call.index = Some(index);
                }
                self.delta(message, out);
                self.reason = Some(StopReason::EndTurn);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.reason = Some(stop_reason(&reason)?);
            }
        }
        Ok(())
    }

    fn read_document(&mut self, document: &str, out: &mut DecodedChunks) -> Result<(), ModelError> {
        self.document = true;
        self.read(document, out)
    }

    fn open_call(&self) -> Option<(&str, &str)> {
        self.calls.last().map(|call| (&*call.name, &*call.arguments))
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn pending(&self) -> AnswerSize {
        let bytes = self.calls.bytes() + self.details.iter().map(Detail::bytes).sum::<usize>();
        let (held, calls) = self.tags.as_ref().map(TagReader::held).unwrap_or_default();
        AnswerSize { bytes: bytes + held + self.json.held(), calls: self.calls.len() + calls, blocks: self.details.len() }
    }

    /// Emits the buffered parts and ends the answer, if it has a finish reason. Returns whether it
    /// has one. Does not require `[DONE]`, which not every server sends.
    fn end(&mut self, out: &mut DecodedChunks) -> bool {
        let Some(reason) = self.reason else { return false };
        let rest = self.tags.as_mut().map(TagReader::end).unwrap_or_default();
        self.parts(rest, out);
        // The calls of an answer that was cut by its length or refused stay text.
        match self.json.end(reason != StopReason::MaxTokens && !self.refused) {
            Ok(calls) => calls.into_iter().for_each(|(name, arguments)| self.written.add_written(name, arguments)),
            Err(text) => self.emit_text(text, out),
        }
        self.end_thinking(out);
        // Some servers decode the calls and also leave their text in the content.
        let calls = if self.calls.is_empty() { &mut self.written } else { &mut self.calls };
        out.extend(calls.take());
        out.extend(self.usage.map(Chunk::Usage));
        out.push_back(Chunk::Stop(if self.refused { StopReason::Refusal } else { reason }));
        true
    }
}

impl OpenaiChatReader {
    pub(crate) fn new(endpoint: &Endpoint, request: &Request) -> Self {
        Self {
            provider: endpoint.provider().to_owned(),
            calls: Calls::default(),
            written: Calls::default(),
            field: None,
            details: Vec::new(),
            usage: None,
            reason: None,
            refused: false,
            tags: TagReader::new(endpoint, request.tools.clone()),
            json: JsonCalls::new(request),
            document: false,
        }
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut DecodedChunks) {
        if let Some(tags) = self.tags.as_mut().filter(|_| delta.reasoning_content.is_some() || delta.reasoning.is_some()) {
            tags.expect_no_thinking();
        }
        if let Some(text) = delta.reasoning_content {
            self.push_thinking(text, "reasoning_content", out);
        } else if let Some(text) = delta.reasoning {
            self.push_thinking(text, "reasoning", out);
        }
        for detail in delta.reasoning_details {
            details::add(&mut self.details, detail);
        }
        let pieces = match delta.content {
            Some(Content::Text(text)) => {
                self.content(text, out);
                Vec::new()
            }
            Some(Content::Pieces(pieces)) => pieces,
            Some(Content::Piece(piece)) => vec![piece],
            None => Vec::new(),
        };
        for piece in pieces {
            for thought in piece.thinking.into_iter().flatten().filter_map(|piece| piece.text) {
                self.push_thinking(thought, "content", out);
            }
            self.content(piece.text.unwrap_or_default(), out);
        }
        if let Some(text) = delta.refusal {
            self.refused |= !text.is_empty();
            self.push_text(text, out);
        }
        let old = delta.function_call.filter(|_| delta.tool_calls.is_empty());
        let old = old.map(|function| CallDelta { index: Some(0), id: None, function: Some(function) });
        for CallDelta { index, id, function } in delta.tool_calls.into_iter().chain(old) {
            if id.is_some() || function.is_some() {
                let (name, arguments) = function.map_or((None, None), |function| (function.name, function.arguments));
                let arguments = arguments.map(wire::arguments).unwrap_or_default();
                self.calls.add(PartialCall { index, id: id.unwrap_or_default(), name: name.unwrap_or_default(), arguments });
            }
        }
    }

    /// Adds text of the answer, which may contain tags.
    fn content(&mut self, text: String, out: &mut DecodedChunks) {
        match &mut self.tags {
            Some(tags) => {
                let parts = tags.read(&text);
                self.parts(parts, out);
            }
            None => self.push_text(text, out),
        }
    }

    fn parts(&mut self, parts: Vec<TextPart>, out: &mut DecodedChunks) {
        for part in parts {
            match part {
                TextPart::Text(text) => self.push_text(text, out),
                TextPart::Thinking(text) => self.push_thinking(text, "content", out),
                TextPart::Call { name, arguments } => self.written.add_written(name, arguments),
            }
        }
    }

    fn push_text(&mut self, text: String, out: &mut DecodedChunks) {
        let text = self.json.read(text);
        self.emit_text(text, out);
    }

    fn emit_text(&mut self, text: String, out: &mut DecodedChunks) {
        if !text.is_empty() {
            self.end_thinking(out);
            out.push_back(Chunk::Text(text));
        }
    }

    fn push_thinking(&mut self, text: String, field: &'static str, out: &mut DecodedChunks) {
        if !text.is_empty() {
            self.field = Some(field);
            out.push_back(Chunk::Thinking(text));
        }
    }

    fn end_thinking(&mut self, out: &mut DecodedChunks) {
        let (field, details) = (self.field.take(), std::mem::take(&mut self.details));
        if field.is_none() && details.is_empty() {
            return;
        }
        let mut value = json!({ "provider": self.provider });
        // Do not send thinking from the content back: Mistral's API ignores its pieces, and chat
        // templates remove it.
        if let Some(field) = field.filter(|field| *field != "content") {
            value["field"] = field.into();
        }
        if !details.is_empty() {
            value["details"] = json!(details);
        }
        out.push_back(Chunk::BlockEnd { thinking: true, state: wire::new_state(PROTOCOL, value) });
    }

    fn count(&mut self, counts: Counts) {
        let details = counts.prompt_tokens_details;
        let input_tokens = counts.prompt_tokens.unwrap_or_default();
        // xAI's `completion_tokens` does not include reasoning; `total_tokens` does.
        let generated = counts.total_tokens.unwrap_or_default().saturating_sub(input_tokens);
        let cached = details.as_ref().and_then(|details| details.cached_tokens).or(counts.prompt_cache_hit_tokens);
        self.usage = Some(Usage {
            input_tokens,
            output_tokens: counts.completion_tokens.unwrap_or_default().max(if input_tokens > 0 { generated } else { 0 }),
            cache_read_tokens: cached.unwrap_or_default(),
            cache_write_tokens: details.and_then(|details| details.cache_write_tokens).unwrap_or_default(),
        });
    }
}

fn stop_reason(reason: &str) -> Result<StopReason, ModelError> {
    match reason {
        "length" | "model_length" | "max_tokens" | "model_context_window_exceeded" => Ok(StopReason::MaxTokens),
        "content_filter" | "refusal" | "sensitive" => Ok(StopReason::Refusal),
        "error" | "insufficient_system_resource" | "network_error" => {
            Err(wire::interrupted(format_args!("the provider reported {reason}")))
        }
        // stop, tool_calls, function_call, eos, and unknown reasons.
        _ => Ok(StopReason::EndTurn),
    }
}
