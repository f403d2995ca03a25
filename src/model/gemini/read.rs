//! Decodes Google's stream of partial GenerateContentResponses. The last response has a finish
//! reason; then the connection ends.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use serde_with::apply;

use super::PROTOCOL;
use crate::content::{ProviderState, StopReason, Usage};
use crate::id::ToolCallId;
use crate::model::provider_error::ProviderError;
use crate::model::wire::{self, Chunk, DecodedChunks, EventReader};
use crate::model::{Cause, ModelError};

/// Decodes the partial responses of one answer from Google's generateContent API.
#[derive(Default)]
pub(crate) struct GeminiReader {
    usage: Option<Usage>,
    reason: Option<StopReason>,
}

#[apply(Option => #[serde(default, deserialize_with = "wire::lenient")])]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow, default, deserialize_with = "wire::lenient_list")]
    candidates: Vec<Candidate<'a>>,
    usage_metadata: Option<Counts>,
    prompt_feedback: Option<Value>,
    error: Option<ProviderError>,
}

#[apply(Option<String> => #[serde(default, deserialize_with = "wire::lenient")])]
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default, deserialize_with = "wire::lenient")]
    content: Option<Content<'a>>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default, deserialize_with = "wire::lenient_list")]
    parts: Vec<Part<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(default, deserialize_with = "wire::lenient")]
    text: Option<String>,
    #[serde(default, deserialize_with = "wire::lenient")]
    thought: Option<bool>,
    #[serde(borrow, default, deserialize_with = "wire::lenient")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(borrow, default, deserialize_with = "wire::lenient")]
    thought_signature: Option<Cow<'a, str>>,
}

#[apply(Option<String> => #[serde(default, deserialize_with = "wire::lenient")])]
#[derive(Deserialize)]
struct FunctionCall<'a> {
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[apply(Option => #[serde(default, deserialize_with = "wire::tokens")])]
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

impl EventReader for GeminiReader {
    fn read(&mut self, data: &str, out: &mut DecodedChunks) -> Result<(), ModelError> {
        if data.trim_start().starts_with('[')
            && let Ok(events) = serde_json::from_str::<Vec<&RawValue>>(data)
        {
            return events.into_iter().try_for_each(|event| self.read(event.get(), out));
        }
        let event = wire::parse::<Option<Event<'_>>>(data)?.unwrap_or_default();
        if let Some(error) = event.error {
            return Err(error.error());
        }
        if let Some(counts) = event.usage_metadata {
            let sum = |a: Option<u64>, b: Option<u64>| a.unwrap_or_default().saturating_add(b.unwrap_or_default());
            self.usage = Some(Usage {
                input_tokens: sum(counts.prompt_token_count, counts.tool_use_prompt_token_count),
                output_tokens: sum(counts.candidates_token_count, counts.thoughts_token_count),
                cache_read_tokens: counts.cached_content_token_count.unwrap_or_default(),
                cache_write_tokens: 0,
            });
        }
        if event.prompt_feedback.is_some_and(|feedback| feedback["blockReason"].is_string()) {
            self.reason = Some(StopReason::Refusal);
        }
        for candidate in event.candidates {
            for part in candidate.content.into_iter().flat_map(|content| content.parts) {
                read_part(part, out);
            }
            if let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
                self.reason = Some(stop_reason(&reason, candidate.finish_message)?);
            }
        }
        Ok(())
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn end(&mut self, out: &mut DecodedChunks) -> bool {
        let Some(reason) = self.reason else { return false };
        out.extend(self.usage.map(Chunk::Usage));
        out.push_back(Chunk::Stop(reason));
        true
    }
}

fn read_part(part: Part<'_>, out: &mut DecodedChunks) {
    let state: Option<ProviderState> =
        part.thought_signature.and_then(|signature| wire::new_state(PROTOCOL, json!({ "thoughtSignature": signature })));
    if let Some(call) = part.function_call {
        out.push_back(Chunk::ToolCall {
            id: call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| ToolCallId::new().to_string()),
            name: call.name.unwrap_or_default(),
            input: call.args.map(wire::arguments).filter(|input| !input.trim().is_empty()).unwrap_or("{}".into()).into_owned(),
            state,
        });
        return;
    }
    let (text, thinking) = (part.text.filter(|text| !text.is_empty()), part.thought.unwrap_or_default());
    out.extend(text.map(if thinking { Chunk::Thinking } else { Chunk::Text }));
    if state.is_some() {
        out.push_back(Chunk::BlockEnd { thinking, state });
    }
}

fn stop_reason(reason: &str, message: Option<String>) -> Result<StopReason, ModelError> {
    match reason {
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "ESCALATION"
        | "PUP_LIMITED_DISABLED"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Ok(StopReason::Refusal),
        // CONTINUATION: the answer is cut at the limit of the request.
        "MAX_TOKENS" | "CONTINUATION" => Ok(StopReason::MaxTokens),
        "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "IMAGE_OTHER"
        | "NO_IMAGE"
        | "OTHER" => {
            let message = message.map_or(String::new(), |message| format!(": {message}"));
            Err(ModelError::from_cause(Cause::InvalidAnswer, format!("the answer failed ({reason}){message}")))
        }
        // STOP, and unknown reasons.
        _ => Ok(StopReason::EndTurn),
    }
}
