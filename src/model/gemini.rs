//! Encodes requests for Google's generateContent API (ai.google.dev/api/generate-content).

mod read;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

pub(crate) use read::GeminiReader;

use super::catalog;
use super::endpoint::{Effort, Endpoint, Protocol};
use super::error::ModelError;
use super::message::{Block, Message, ToolResult};
use super::request::Request;
use super::wire::{self, EncodedRequest};
use crate::content;
use crate::options::Thinking;

/// The provider state of a block is `{"thoughtSignature"}`, the signature of the part that
/// contained the block.
const PROTOCOL: Protocol = Protocol::Gemini;

/// Signature for tool calls from other models. The API rejects a tool call without a signature
/// (ai.google.dev/gemini-api/docs/thought-signatures).
const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    generation_config: Config,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Part<'a>>,
}

#[skip_serializing_none]
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    inline_data: Option<InlineData<'a>>,
    function_call: Option<FunctionCall<'a>>,
    function_response: Option<FunctionResponse<'a>>,
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: wire::Input<'a>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Response,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Response {
    Output(String),
    Error(String),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    max_output_tokens: Option<u32>,
    thinking_config: Option<ThinkingConfig>,
}

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    thinking_level: Option<String>,
    thinking_budget: Option<u32>,
    include_thoughts: bool,
}

pub(crate) fn write(endpoint: &Endpoint, request: &Request) -> Result<EncodedRequest, ModelError> {
    let declarations = request.tools.iter().map(|tool| Declaration {
        name: &tool.name,
        description: &tool.description,
        parameters_json_schema: &tool.input_schema,
    });
    let tools = Tools { function_declarations: declarations.collect() };
    let system = text(&*request.system).map(|part| Content { role: None, parts: vec![part] });
    let body = Body {
        system_instruction: system,
        contents: contents(request, has_call_ids(endpoint)),
        tools: if request.tools.is_empty() { Vec::new() } else { vec![tools] },
        generation_config: Config {
            max_output_tokens: endpoint.max_output_tokens,
            thinking_config: thinking_config(endpoint, request.thinking),
        },
    };
    let url = endpoint.url(&format!("models/{}:streamGenerateContent?alt=sse", endpoint.model));
    Ok(EncodedRequest { url, headers: Vec::new(), body: wire::body(&body)? })
}

/// Returns the thinking configuration: a level for Gemini 3 and later, a token budget for Gemini
/// 2.5, `None` for earlier models.
fn thinking_config(endpoint: &Endpoint, thinking: Thinking) -> Option<ThinkingConfig> {
    let model = catalog::bare_name(&endpoint.model);
    let include_thoughts = thinking != Thinking::Off;
    let effort = endpoint.effort(thinking);
    if model.starts_with("gemini-2-5") {
        let budget = match effort {
            Some(Effort::Tokens(tokens)) => tokens,
            _ => budget(&model, thinking),
        };
        return Some(ThinkingConfig { thinking_level: None, thinking_budget: Some(budget), include_thoughts });
    }
    if !model.starts_with("gemini-") || model.starts_with("gemini-1") || model.starts_with("gemini-2") {
        return None;
    }
    let level = match (effort, thinking) {
        // Thinking cannot be turned off.
        (_, Thinking::Off) => endpoint.lowest_effort().and_then(Effort::name),
        (effort, _) => effort.and_then(Effort::name),
    };
    let level = level.unwrap_or_else(|| thinking.coarse().to_owned());
    Some(ThinkingConfig { thinking_level: Some(level), thinking_budget: None, include_thoughts })
}

/// Returns the token budget for a thinking level of Gemini 2.5.
fn budget(model: &str, thinking: Thinking) -> u32 {
    match thinking {
        // Thinking cannot be turned off for the Pro model.
        Thinking::Off if model.starts_with("gemini-2-5-pro") => 128,
        Thinking::Off => 0,
        Thinking::Minimal => 512,
        Thinking::Low => 2048,
        Thinking::Medium => 8192,
        Thinking::High | Thinking::XHigh | Thinking::Max => 24_576,
    }
}

/// Returns whether calls and results have ids, which Vertex AI and models before Gemini 3.5 reject.
fn has_call_ids(endpoint: &Endpoint) -> bool {
    let model = catalog::bare_name(&endpoint.model);
    let mut numbers = model.strip_prefix("gemini-").unwrap_or_default().split('-').map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    !endpoint.is_vertex() && version >= (3, 5)
}

/// Encodes the conversation. `ids`: calls and results have ids.
fn contents(request: &Request, ids: bool) -> Vec<Content<'_>> {
    let turns = wire::turns(request, |message| match message {
        Message::User(parts) => ("user", parts.iter().filter_map(part).collect()),
        Message::Assistant(blocks) => ("model", assistant(blocks, ids)),
        Message::ToolResults(results) => ("user", results.iter().map(|item| result(item, ids)).collect()),
    });
    turns.into_iter().map(|turn| Content { role: Some(turn.role), parts: turn.content }).collect()
}

fn text<'a>(text: impl Into<Cow<'a, str>>) -> Option<Part<'a>> {
    Some(text.into()).filter(|text| !text.is_empty()).map(|text| Part { text: Some(text), ..Part::default() })
}

fn part(part: &content::Part) -> Option<Part<'_>> {
    match part {
        content::Part::Text { text: plain } => text(plain),
        content::Part::Image { mime_type, data }
        | content::Part::Audio { mime_type, data }
        | content::Part::Document { mime_type, data, .. } => {
            Some(Part { inline_data: Some(InlineData { mime_type, data }), ..Part::default() })
        }
        content::Part::Note { .. } | content::Part::Resource { .. } | content::Part::ResourceLink { .. } => text(part.as_text()),
    }
}

fn assistant(blocks: &[Block], ids: bool) -> Vec<Part<'_>> {
    let mut has_call = false;
    blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text, state } => {
                let thought_signature = signature(state);
                let part = Part { text: Some(text.into()), thought_signature, ..Part::default() };
                (!text.is_empty() || thought_signature.is_some()).then_some(part)
            }
            Block::Thinking { text, state } => {
                let thought_signature = Some(signature(state)?);
                Some(Part { text: Some(text.into()), thought: true, thought_signature, ..Part::default() })
            }
            Block::ToolCall { id, name, input, input_text, state } => {
                // Only the first of several parallel calls has a signature.
                let first = !std::mem::replace(&mut has_call, true);
                let thought_signature = signature(state).or(first.then_some(SKIP_SIGNATURE));
                let function_call =
                    Some(FunctionCall { id: ids.then_some(id.as_str()), name, args: wire::input(input, input_text) });
                Some(Part { function_call, thought_signature, ..Part::default() })
            }
        })
        .collect()
}

fn signature(state: &Option<content::ProviderState>) -> Option<&str> {
    wire::state(state, PROTOCOL)?.get("thoughtSignature")?.as_str()
}

fn result(result: &ToolResult, ids: bool) -> Part<'_> {
    let text = content::plain_text(&result.output);
    let response = if result.failed { Response::Error(text) } else { Response::Output(text) };
    let function_response = Some(FunctionResponse { id: ids.then_some(result.id.as_str()), name: &result.name, response });
    Part { function_response, ..Part::default() }
}
