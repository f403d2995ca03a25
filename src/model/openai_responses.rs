//! Encodes requests for OpenAI's Responses API (platform.openai.com/docs/api-reference/responses),
//! without server-side state.

mod read;

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

pub(crate) use read::OpenaiResponsesReader;

use super::call_ids::CallIds;
use super::catalog;
use super::endpoint::{Effort, Endpoint, Protocol};
use super::error::ModelError;
use super::kept_encoding::{EncodedJson, KeptEncoding};
use super::message::{Block, Message, ToolResult};
use super::request::{Request, ToolSpec};
use super::wire::{self, EncodedRequest};
use crate::content::Part;
use crate::options::Thinking;

/// The provider state of a thinking block is the whole reasoning item. The provider state of a text
/// block is `{"phase"}`, if its message has a phase.
const PROTOCOL: Protocol = Protocol::OpenaiResponses;

#[skip_serializing_none]
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<EncodedJson>,
    tools: Option<EncodedJson>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    prompt_cache_key: &'a str,
    reasoning: Option<Reasoning>,
    max_output_tokens: Option<u32>,
    parallel_tool_calls: Option<bool>,
}

#[derive(Serialize)]
struct Reasoning {
    effort: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Own(OwnItem<'a>),
    /// An item of an earlier answer, which is sent back unchanged.
    Verbatim(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OwnItem<'a> {
    Message {
        role: &'static str,
        content: Vec<Content<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a Value>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: &'a str,
        arguments: Cow<'a, str>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Contents(Vec<Content<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String },
    InputFile { filename: &'a str, file_data: String },
    OutputText { text: &'a str },
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

pub(crate) fn write(endpoint: &Endpoint, request: &Request, kept: &KeptEncoding) -> Result<EncodedRequest, ModelError> {
    let ids = CallIds::new(endpoint, 64);
    let reasons = reasons(&catalog::bare_name(&endpoint.model));
    let items = |messages| Vec::<Item<'_>>::from_iter(<[_]>::iter(messages).flat_map(|message: &Arc<Message>| items(message, ids)));
    let input = kept.turns(PROTOCOL, request, None, items).map_err(wire::unencodable)?;
    let body = Body {
        model: &endpoint.model,
        instructions: &request.system,
        input,
        tools: kept.tools(PROTOCOL, request, tool).map_err(wire::unencodable)?,
        stream: true,
        store: false,
        include: if reasons { &["reasoning.encrypted_content"] } else { &[] },
        prompt_cache_key: &request.cache_key,
        reasoning: reasons.then(|| reasoning(endpoint, request.thinking)).flatten(),
        max_output_tokens: endpoint.max_output_tokens,
        parallel_tool_calls: (!endpoint.parallel_tool_calls && !request.tools.is_empty()).then_some(false),
    };
    Ok(EncodedRequest { url: endpoint.url("responses"), headers: Vec::new(), body: wire::body(&body)? })
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    let (name, description) = (&tool.name, &tool.description);
    Tool { r#type: "function", name, description, parameters: &tool.input_schema, strict: false }
}

/// Families of models that do not reason, for which the parameter `reasoning` is an error.
const WITHOUT_REASONING: &[&str] = &["gpt-3", "gpt-4", "chatgpt"];

fn reasons(model: &str) -> bool {
    !WITHOUT_REASONING.iter().any(|prefix| model.starts_with(prefix))
}

/// Returns the parameter `reasoning`, or `None` to use the model's default.
fn reasoning(endpoint: &Endpoint, thinking: Thinking) -> Option<Reasoning> {
    match (endpoint.effort(thinking), thinking) {
        (Some(Effort::Name(effort)), Thinking::Off) => Some(Reasoning { effort, summary: None }),
        // A model that always reasons.
        (_, Thinking::Off) => endpoint.lowest_effort().and_then(Effort::name).map(|effort| Reasoning { effort, summary: None }),
        (Some(Effort::Name(effort)), _) => Some(Reasoning { effort, summary: Some("auto") }),
        (_, level) => Some(Reasoning { effort: level.coarse().to_owned(), summary: Some("auto") }),
    }
}

fn items(message: &Message, ids: CallIds) -> Vec<Item<'_>> {
    match message {
        Message::User(parts) => {
            let content: Vec<Content<'_>> = parts.iter().map(content).collect();
            let message = (!content.is_empty()).then_some(OwnItem::Message { role: "user", content, phase: None });
            message.map(Item::Own).into_iter().collect()
        }
        Message::Assistant(blocks) => blocks.iter().filter_map(|item| block(item, ids)).collect(),
        Message::ToolResults(results) => results.iter().map(|item| result(item, ids)).collect(),
    }
}

fn content(part: &Part) -> Content<'_> {
    match part {
        Part::Text { text } => Content::InputText { text: text.into() },
        Part::Image { mime_type, data } => Content::InputImage { image_url: wire::data_url(mime_type, data) },
        Part::Document { mime_type, name, data, .. } => {
            let filename = name.as_deref().unwrap_or("document.pdf");
            Content::InputFile { filename, file_data: wire::data_url(mime_type, data) }
        }
        Part::Audio { .. } | Part::Note { .. } | Part::Resource { .. } | Part::ResourceLink { .. } => {
            Content::InputText { text: part.as_text() }
        }
    }
}

fn block(block: &Block, ids: CallIds) -> Option<Item<'_>> {
    match block {
        Block::Text { text, .. } if text.is_empty() => None,
        Block::Text { text, state } => {
            let phase = wire::state(state, PROTOCOL).and_then(|state| state.get("phase"));
            Some(Item::Own(OwnItem::Message { role: "assistant", content: vec![Content::OutputText { text }], phase }))
        }
        Block::Thinking { state, .. } => wire::state(state, PROTOCOL).map(Item::Verbatim),
        Block::ToolCall { id, name, input, input_text, .. } => {
            let arguments = wire::input_text(input, input_text);
            Some(Item::Own(OwnItem::FunctionCall { call_id: ids.fit(id.as_str()), name, arguments }))
        }
    }
}

fn result(result: &ToolResult, ids: CallIds) -> Item<'_> {
    let output = match result.output.iter().any(wire::is_image) {
        false => Output::Text(wire::result_text(result)),
        true => {
            let failed = result.failed.then_some(Content::InputText { text: "error:".into() });
            Output::Contents(failed.into_iter().chain(result.output.iter().map(content)).collect())
        }
    };
    Item::Own(OwnItem::FunctionCallOutput { call_id: ids.fit(result.id.as_str()), output })
}
