//! Encodes requests for Ollama's own API (docs.ollama.com/api/chat). Its OpenAI API has no
//! parameter for the context window, and omits the start of a conversation that is too long.

mod read;

use std::borrow::Cow;

use serde::Serialize;
use serde_with::skip_serializing_none;

pub(crate) use read::OllamaReader;

use super::call_ids::CallIds;
use super::catalog::bare_name;
use super::chat_format::{ChatCall, ChatTurn, append, chat_turns, text, tool};
use super::endpoint::{Endpoint, Protocol};
use super::error::ModelError;
use super::kept_encoding::{EncodedJson, KeptEncoding};
use super::message::Block;
use super::request::Request;
use super::wire::{self, EncodedRequest, Input};
use crate::config::Effort;
use crate::content::{Part, joined};
use crate::options::Thinking;

/// The provider state of a thinking block is an empty object: thinking text is sent back only to
/// Ollama.
const PROTOCOL: Protocol = Protocol::Ollama;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<EncodedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<EncodedJson>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think>,
    /// False: a conversation that is too long is an error.
    truncate: bool,
    /// False: an answer that exceeds the context window ends there.
    shift: bool,
    options: Options,
}

#[derive(Serialize)]
struct Options {
    num_ctx: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Think {
    Switch(bool),
    Level(String),
}

#[skip_serializing_none]
#[derive(Default, Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    thinking: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall<'a, Input<'a>>>,
    tool_name: Option<&'a str>,
    tool_call_id: Option<Cow<'a, str>>,
}

/// Encodes a request for `endpoint`. The server loads the model with a context window of `num_ctx`
/// tokens. `thinks` is whether the model can think, if that is known.
pub(crate) fn write(
    endpoint: &Endpoint,
    request: &Request,
    kept: &KeptEncoding,
    num_ctx: u64,
    thinks: Option<bool>,
) -> Result<EncodedRequest, ModelError> {
    let body = Body {
        model: &endpoint.model,
        messages: messages(CallIds::new(endpoint, 64), request, kept).map_err(wire::unencodable)?,
        tools: kept.tools(PROTOCOL, request, tool).map_err(wire::unencodable)?,
        stream: true,
        think: think(endpoint, thinks, request.thinking),
        truncate: false,
        shift: false,
        options: Options { num_ctx, num_predict: endpoint.max_output_tokens },
    };
    Ok(EncodedRequest { url: endpoint.native_url("api/chat"), headers: Vec::new(), body: wire::body(&body)? })
}

/// Returns the value of `think`. `None` if the model may be unable to think, because the value is
/// an error then.
fn think(endpoint: &Endpoint, thinks: Option<bool>, thinking: Thinking) -> Option<Think> {
    if !endpoint.efforts.is_empty() {
        return Some(match endpoint.effort(thinking).and_then(Effort::name)?.as_str() {
            "none" | "false" => Think::Switch(false),
            "true" => Think::Switch(true),
            level => Think::Level(level.to_owned()),
        });
    }
    if !thinks? {
        return None;
    }
    // These models have levels, and cannot turn thinking off.
    let has_levels = bare_name(&endpoint.model).starts_with("gpt-oss");
    Some(match (has_levels, thinking) {
        (false, level) => Think::Switch(level != Thinking::Off),
        (true, level) => Think::Level(level.coarse().to_owned()),
    })
}

fn messages(ids: CallIds, request: &Request, kept: &KeptEncoding) -> serde_json::Result<Vec<EncodedJson>> {
    let system =
        (!request.system.is_empty()).then(|| Turn { role: "system", content: (*request.system).into(), ..Turn::default() });
    kept.turns(PROTOCOL, request, system, |messages| {
        let turns = chat_turns(messages).into_iter().map(|turn| match turn {
            ChatTurn::User(parts) => user(parts),
            ChatTurn::Assistant(blocks) => assistant(ids, blocks),
            ChatTurn::Tool(result) => Turn {
                role: "tool",
                content: wire::result_text(result),
                tool_name: Some(&result.name),
                tool_call_id: Some(ids.fit(result.id.as_str())),
                ..Turn::default()
            },
        });
        turns.collect()
    })
}

fn user<'a>(parts: Vec<Cow<'a, Part>>) -> Turn<'a> {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Cow::Borrowed(Part::Image { data, .. }) => images.push(data.into()),
            Cow::Owned(Part::Image { data, .. }) => images.push(data.into()),
            part => texts.push(text(part)),
        }
    }
    Turn { role: "user", content: joined(texts), images, ..Turn::default() }
}

fn assistant<'a>(ids: CallIds, blocks: &'a [Block]) -> Turn<'a> {
    let (mut content, mut thinking, mut tool_calls) = (Cow::default(), Cow::default(), Vec::new());
    for block in blocks {
        match block {
            Block::Text { text, .. } => append(&mut content, text),
            Block::Thinking { text, state } => {
                if wire::state(state, PROTOCOL).is_some() {
                    append(&mut thinking, text);
                }
            }
            Block::ToolCall { id, name, input, input_text, .. } => {
                tool_calls.push(ChatCall::new(ids.fit(id.as_str()), name, wire::input(input, input_text)));
            }
        }
    }
    Turn { role: "assistant", content, thinking, tool_calls, ..Turn::default() }
}
