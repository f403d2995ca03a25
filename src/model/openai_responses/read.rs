//! Decodes the stream events of a response
//! (platform.openai.com/docs/api-reference/responses-streaming).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use serde_with::apply;

use super::PROTOCOL;
use crate::content::{StopReason, Usage};
use crate::model::provider_error::{ProviderError, event_error};
use crate::model::wire::{self, AnswerSize, Chunk, DecodedChunks, EventReader};
use crate::model::{ModelError, Retry};

/// Decodes the stream events of one answer from OpenAI's Responses API.
#[derive(Default)]
pub(crate) struct OpenaiResponsesReader {
    /// Tool calls that have not been emitted yet, by the index of their output item.
    calls: BTreeMap<usize, Call>,
    refused: bool,
    usage: Option<Usage>,
    has_text: bool,
    /// The types of the output items that are complete.
    done: BTreeSet<String>,
}

#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    whole: bool,
}

/// Any stream event. The other fields are decoded only if the kind is known.
#[apply(Option<&'a RawValue> => #[serde(borrow)])]
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "wire::lenient")]
    kind: Option<Cow<'a, str>>,
    delta: Option<&'a RawValue>,
    output_index: Option<&'a RawValue>,
    summary_index: Option<&'a RawValue>,
    item: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    code: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
}

#[apply(Option => #[serde(default, deserialize_with = "wire::lenient")])]
#[derive(Default, Deserialize)]
struct Response {
    usage: Option<Counts>,
    error: Option<ProviderError>,
    incomplete_details: Option<Value>,
    status: Option<String>,
}

/// The output of a whole response.
#[derive(Default, Deserialize)]
struct Document<'a> {
    #[serde(borrow, default, deserialize_with = "wire::lenient_list")]
    output: Vec<&'a RawValue>,
}

#[apply(Option<u64> => #[serde(default, deserialize_with = "wire::tokens")])]
#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient")]
    input_tokens_details: Option<Details>,
}

impl Counts {
    fn usage(self) -> Usage {
        let details = self.input_tokens_details;
        Usage {
            input_tokens: self.input_tokens.unwrap_or_default(),
            output_tokens: self.output_tokens.unwrap_or_default(),
            cache_read_tokens: details.as_ref().and_then(|details| details.cached_tokens).unwrap_or_default(),
            cache_write_tokens: details.as_ref().and_then(|details| details.cache_write_tokens).unwrap_or_default(),
        }
    }
}

#[apply(Option => #[serde(default, deserialize_with = "wire::tokens")])]
#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[apply(
    Option<String> => #[serde(default, deserialize_with = "wire::lenient")],
    Option<&'a RawValue> => #[serde(borrow)],
)]
#[derive(Default, Deserialize)]
struct Item<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "wire::lenient")]
    kind: Option<Cow<'a, str>>,
    phase: Option<Value>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<&'a RawValue>,
    /// Parts of a message, or of reasoning.
    content: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
}

#[apply(Option => #[serde(default, deserialize_with = "wire::lenient")])]
#[derive(Deserialize)]
struct Part {
    text: Option<String>,
    refusal: Option<String>,
}

impl EventReader for OpenaiResponsesReader {
    fn read(&mut self, data: &str, out: &mut DecodedChunks) -> Result<(), ModelError> {
        if data.trim() == "[DONE]" {
            // Some proxies omit the event that ends the answer.
            if self.calls.is_empty() && ["message", "function_call"].iter().any(|kind| self.done.contains(*kind)) {
                self.finish(StopReason::EndTurn, Response::default(), out);
            }
            return Ok(());
        }
        let event: Event<'_> = wire::parse(data)?;
        let delta = || wire::field::<Option<String>>(event.delta).filter(|delta| !delta.is_empty());
        let index = wire::field(event.output_index);
        match event.kind.as_deref().unwrap_or_default() {
            "response.output_text.delta" => {
                self.has_text = true;
                out.extend(delta().map(Chunk::Text));
            }
            "response.refusal.delta" => {
                (self.refused, self.has_text) = (true, true);
                out.extend(delta().map(Chunk::Text));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => out.extend(delta().map(Chunk::Thinking)),
            "response.reasoning_summary_part.added" if wire::field::<usize>(event.summary_index) > 0 => {
                out.push_back(Chunk::Thinking("\n\n".to_owned()));
            }
            "response.function_call_arguments.delta" => {
                if let Some(call) = self.calls.get_mut(&index) {
                    call.arguments.push_str(&delta().unwrap_or_default());
                }
            }
            "response.output_item.added" => self.item(index, event.item, false, out),
            "response.output_item.done" => self.item(index, event.item, true, out),
            "response.completed" => {
                self.calls.values_mut().for_each(|call| call.whole = true);
                self.missed(&wire::field::<Document<'_>>(event.response).output, true, out);
                self.finish(StopReason::EndTurn, wire::field(event.response), out);
            }
            "response.incomplete" => {
                self.missed(&wire::field::<Document<'_>>(event.response).output, false, out);
                self.finish_incomplete(wire::field(event.response), out);
            }
            "response.created" | "response.in_progress" => self.count(wire::field::<Response>(event.response).usage),
            "response.failed" => {
                let response: Response = wire::field(event.response);
                self.count(response.usage);
                return Err(response.error.unwrap_or_default().error());
            }
            "error" => {
                let (message, code) = (wire::field(event.message), wire::field(event.code));
                let bare = ProviderError { message, code, ..ProviderError::default() };
                return Err(wire::field::<Option<ProviderError>>(event.error).unwrap_or(bare).error());
            }
            "response.cancelled" => return Err(ModelError::new(Retry::Backoff, "the provider cancelled the answer")),
            "" => return event_error(data).map_or(Ok(()), Err),
            // Ignored events: *.done (which repeat the deltas), and future events.
            _ => {}
        }
        Ok(())
    }

    fn read_document(&mut self, document: &str, out: &mut DecodedChunks) -> Result<(), ModelError> {
        let response: Response = wire::parse(document)?;
        let Document { output } = wire::parse(document)?;
        for (index, raw) in output.iter().enumerate() {
            self.parts(raw, out);
            self.item(index, Some(raw), true, out);
        }
        match response.status.as_deref() {
            Some("completed") => self.finish(StopReason::EndTurn, response, out),
            None if !output.is_empty() => self.finish(StopReason::EndTurn, response, out),
            Some("incomplete") => self.finish_incomplete(response, out),
            Some(_) | None => {}
        }
        Ok(())
    }

    fn open_call(&self) -> Option<(&str, &str)> {
        let open = self.calls.values().rev().find(|call| !call.whole);
        open.map(|call| (call.name.as_str(), call.arguments.as_str()))
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn pending(&self) -> AnswerSize {
        let bytes = self.calls.values().map(|call| call.id.len() + call.name.len() + call.arguments.len()).sum();
        AnswerSize { bytes, calls: self.calls.len(), blocks: 0 }
    }
}

impl OpenaiResponsesReader {
    fn count(&mut self, counts: Option<Counts>) {
        self.usage = counts.map(Counts::usage).or(self.usage);
    }

    /// Emits the items of a whole response that had no events of their own: some servers send them
    /// only in the last event. `calls` is whether the calls among them are complete.
    fn missed(&mut self, items: &[&RawValue], calls: bool, out: &mut DecodedChunks) {
        let (had_items, had_text) = (!self.done.is_empty(), self.has_text);
        let had_calls = self.done.contains("function_call") || !self.calls.is_empty();
        for (index, raw) in items.iter().enumerate() {
            let item: Item<'_> = wire::field(Some(raw));
            let is_missed = match item.kind.as_deref().unwrap_or_default() {
                // Reasoning belongs before the items that follow it.
                "reasoning" => !had_items && !had_text && !had_calls,
                "message" => !had_text,
                "function_call" => {
                    let known = self.calls.values_mut().find(|call| Some(&call.id) == item.call_id.as_ref());
                    if let Some((call, arguments)) = known.filter(|call| call.arguments.is_empty()).zip(item.arguments) {
                        call.arguments = wire::arguments(arguments).into_owned();
                    }
                    calls && !had_calls
                }
                _ => false,
            };
            if is_missed {
                self.parts(raw, out);
                self.item(index, Some(raw), true, out);
            }
        }
    }

    /// Emits the text of a whole item.
    fn parts(&mut self, raw: &RawValue, out: &mut DecodedChunks) {
        let item: Item<'_> = wire::field(Some(raw));
        let texts = |raw| wire::field::<Vec<Part>>(raw).into_iter().filter_map(|part| part.text);
        match item.kind.as_deref().unwrap_or_default() {
            "reasoning" => {
                let text: Vec<String> = texts(item.summary).chain(texts(item.content)).collect();
                out.extend((!text.is_empty()).then(|| Chunk::Thinking(text.join("\n\n"))));
            }
            "message" => {
                for part in wire::field::<Vec<Part>>(item.content) {
                    self.refused |= part.refusal.is_some();
                    out.extend(part.text.or(part.refusal).filter(|text| !text.is_empty()).map(Chunk::Text));
                }
            }
            _ => {}
        }
    }

    fn item(&mut self, index: usize, raw: Option<&RawValue>, whole: bool, out: &mut DecodedChunks) {
        let item: Item<'_> = wire::field(raw);
        self.done.extend(item.kind.as_deref().filter(|_| whole).map(str::to_owned));
        match item.kind.as_deref().unwrap_or_default() {
            "function_call" => {
                let call = self.calls.entry(index).or_default();
                call.id = item.call_id.unwrap_or_default();
                call.name = item.name.unwrap_or_default();
                call.whole = whole;
                if whole {
                    if let Some(arguments) = item.arguments {
                        call.arguments = wire::arguments(arguments).into_owned();
                    }
                    self.emit_calls(out);
                }
            }
            "reasoning" if whole => {
                let state = wire::new_state(PROTOCOL, wire::field(raw));
                out.push_back(Chunk::BlockEnd { thinking: true, state });
            }
            "message" if whole => {
                let state = item.phase.and_then(|phase| wire::new_state(PROTOCOL, json!({ "phase": phase })));
                out.push_back(Chunk::BlockEnd { thinking: false, state });
            }
            _ => {}
        }
    }

    /// Emits the complete tool calls before the first incomplete one, in the order of their output
    /// items.
    fn emit_calls(&mut self, out: &mut DecodedChunks) {
        while let Some(call) = self.calls.first_entry().filter(|entry| entry.get().whole) {
            let Call { id, name, arguments, .. } = call.remove();
            let input = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
            out.push_back(Chunk::ToolCall { id, name, input, state: None });
        }
    }

    fn finish_incomplete(&mut self, response: Response, out: &mut DecodedChunks) {
        let reason = response.incomplete_details.as_ref().and_then(|details| details["reason"].as_str());
        // max_output_tokens, none, and unknown reasons.
        let stop = if reason == Some("content_filter") { StopReason::Refusal } else { StopReason::MaxTokens };
        self.finish(stop, response, out);
    }

    /// Ends the answer. Calls that are not complete are dropped.
    fn finish(&mut self, reason: StopReason, response: Response, out: &mut DecodedChunks) {
        self.emit_calls(out);
        self.count(response.usage);
        out.extend(self.usage.map(Chunk::Usage));
        out.push_back(Chunk::Stop(if self.refused { StopReason::Refusal } else { reason }));
    }
}
