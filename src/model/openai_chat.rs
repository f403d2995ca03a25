//! Encodes requests for OpenAI's Chat Completions (platform.openai.com/docs/api-reference/chat) and
//! compatible servers.

mod calls;
mod code_fences;
mod details;
mod read;
mod tags;
mod text_event;
mod written_call;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

pub(crate) use read::OpenaiChatReader;

use super::call_ids::CallIds;
use super::chat_format::{ChatCall, ChatTurn, append, chat_turns, text, tool};
use super::endpoint::{Effort, Endpoint, Protocol};
use super::error::ModelError;
use super::kept_encoding::{EncodedJson, KeptEncoding};
use super::media;
use super::message::Block;
use super::request::Request;
use super::wire::{self, EncodedRequest};
use crate::content::{Part, joined};
use crate::options::Thinking;

/// The provider state of a thinking block is `{"provider","field"}`, where `field` is the response
/// field that contained the text. OpenRouter adds `"details"`.
const PROTOCOL: Protocol = Protocol::OpenaiChat;

#[skip_serializing_none]
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<EncodedJson>,
    tools: Option<EncodedJson>,
    stream: bool,
    stream_options: Option<Value>,
    reasoning_effort: Option<String>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    parallel_tool_calls: Option<bool>,
    prompt_cache_key: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Turn<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasoning_details: Vec<&'a Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ChatCall<'a, Cow<'a, str>>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Piece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
    InputAudio { input_audio: InputAudio<'a> },
    File { file: File<'a> },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct InputAudio<'a> {
    data: Cow<'a, str>,
    format: Cow<'a, str>,
}

#[derive(Serialize)]
struct File<'a> {
    filename: Cow<'a, str>,
    file_data: String,
}

pub(crate) fn write(endpoint: &Endpoint, request: &Request, kept: &KeptEncoding) -> Result<EncodedRequest, ModelError> {
    let provider = endpoint.provider();
    let at_openai = endpoint.base_url.contains("api.openai.com");
    let body = Body {
        model: &endpoint.model,
        messages: messages(endpoint, request, kept).map_err(wire::unencodable)?,
        tools: kept.tools(PROTOCOL, request, tool).map_err(wire::unencodable)?,
        stream: true,
        // Mistral rejects unknown parameters, and reports usage without this parameter.
        stream_options: (provider != "mistral").then(|| json!({ "include_usage": true })),
        reasoning_effort: effort(endpoint, request.thinking),
        max_tokens: endpoint.max_output_tokens.filter(|_| !at_openai),
        max_completion_tokens: endpoint.max_output_tokens.filter(|_| at_openai),
        parallel_tool_calls: (!endpoint.parallel_tool_calls && !request.tools.is_empty()).then_some(false),
        prompt_cache_key: at_openai.then_some(request.cache_key.as_str()),
    };
    Ok(EncodedRequest { url: endpoint.url("chat/completions"), headers: Vec::new(), body: wire::body(&body)? })
}

/// Providers that accept `reasoning_effort: "none"` for the models with this level in the
/// catalogue. Others may reject it.
const TURN_THINKING_OFF: &[&str] = &["openai", "azure", "openrouter", "mistral", "groq", "xai", "cerebras", "fireworks"];

/// Returns the value of `reasoning_effort`.
fn effort(endpoint: &Endpoint, thinking: Thinking) -> Option<String> {
    let provider = endpoint.provider();
    if thinking == Thinking::Off && endpoint.efforts.is_empty() && !TURN_THINKING_OFF.contains(&provider) {
        return None;
    }
    let known = endpoint.effort(thinking).and_then(Effort::name);
    known.or_else(|| match (provider, thinking) {
        (_, Thinking::Off) => None,
        ("mistral" | "deepseek", _) => Some("high".to_owned()),
        (_, level) => Some(level.coarse().to_owned()),
    })
}

fn messages(endpoint: &Endpoint, request: &Request, kept: &KeptEncoding) -> serde_json::Result<Vec<EncodedJson>> {
    let ids = CallIds::new(endpoint, 40);
    let system = (!request.system.is_empty()).then_some(Turn::System { content: &request.system });
    kept.turns(PROTOCOL, request, system, |messages| {
        let turns = chat_turns(messages).into_iter().map(|turn| match turn {
            ChatTurn::User(parts) => user(parts),
            ChatTurn::Assistant(blocks) => assistant(endpoint, ids, request.thinking, blocks),
            ChatTurn::Tool(result) => Turn::Tool { tool_call_id: ids.fit(result.id.as_str()), content: wire::result_text(result) },
        });
        turns.collect()
    })
}

fn user<'a>(parts: Vec<Cow<'a, Part>>) -> Turn<'a> {
    if !parts.iter().any(|part| matches!(part.as_ref(), Part::Image { .. } | Part::Audio { .. } | Part::Document { .. })) {
        return Turn::User { content: Content::Text(joined(parts.into_iter().map(text))) };
    }
    let pieces = parts.into_iter().map(|part| match part.as_ref() {
        Part::Image { mime_type, data } => Piece::ImageUrl { image_url: ImageUrl { url: wire::data_url(mime_type, data) } },
        Part::Audio { mime_type, data } => {
            let (data, format) = (data.clone().into(), media::audio_format(mime_type).to_owned().into());
            Piece::InputAudio { input_audio: InputAudio { data, format } }
        }
        Part::Document { mime_type, name, data, .. } => {
            let filename = name.clone().unwrap_or_else(|| "document.pdf".into()).into();
            Piece::File { file: File { filename, file_data: wire::data_url(mime_type, data) } }
        }
        Part::Text { .. } | Part::Note { .. } | Part::Resource { .. } | Part::ResourceLink { .. } => {
            Piece::Text { text: part.as_text().into_owned().into() }
        }
    });
    Turn::User { content: Content::Parts(pieces.collect()) }
}

fn assistant<'a>(endpoint: &Endpoint, ids: CallIds, thinking: Thinking, blocks: &'a [Block]) -> Turn<'a> {
    let provider = endpoint.provider();
    let (mut text, mut content, mut plain) = (Cow::default(), Cow::default(), Cow::default());
    let (mut reasoning_details, mut tool_calls) = (Vec::new(), Vec::new());
    for block in blocks {
        match block {
            Block::Text { text: piece, .. } => append(&mut text, piece),
            Block::Thinking { text: thought, state } => {
                let Some(state) = wire::state(state, PROTOCOL).filter(|state| state["provider"] == provider) else {
                    continue;
                };
                // If the state has details, the details include the text.
                match state["field"].as_str().filter(|_| state.get("details").is_none()) {
                    Some("reasoning") => append(&mut plain, thought),
                    Some(_) => append(&mut content, thought),
                    None => {}
                }
                reasoning_details.extend(state["details"].as_array().into_iter().flatten());
            }
            Block::ToolCall { id, name, input, input_text, .. } => {
                tool_calls.push(ChatCall::new(ids.fit(id.as_str()), name, wire::input_text(input, input_text)));
            }
        }
    }
    let some = |text: Cow<'a, str>| (!text.is_empty()).then_some(text);
    // These providers refuse unknown fields of messages.
    let (is_groq, is_cerebras) = (endpoint.is_at("groq", "api.groq.com"), endpoint.is_at("cerebras", "api.cerebras.ai"));
    if is_groq || is_cerebras {
        content = Cow::default();
    }
    if is_groq {
        plain = Cow::default();
    }
    // These providers require the field next to calls while the model thinks, and not be empty.
    let is_required = endpoint.is_at("deepseek", "api.deepseek.com") || endpoint.is_at("moonshot", "api.moonshot.");
    let is_old = ["reasoner", "-r1"].iter().any(|name| endpoint.model.to_lowercase().contains(name));
    if is_required && !is_old && thinking != Thinking::Off && content.is_empty() && !tool_calls.is_empty() {
        content = " ".into();
    }
    Turn::Assistant {
        // An assistant message without tool calls must have content, even if it is empty.
        content: if tool_calls.is_empty() { Some(text) } else { some(text) },
        reasoning_content: some(content),
        reasoning: some(plain),
        reasoning_details,
        tool_calls,
    }
}
