//! The parts of requests that Chat Completions and Ollama's own API have in common.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::message::{Block, Message, ToolResult};
use super::request::ToolSpec;
use super::wire;
use crate::content::Part;

/// The specification of a tool.
#[derive(Serialize)]
pub(super) struct ChatTool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

pub(super) fn tool(tool: &ToolSpec) -> ChatTool<'_> {
    let function = Function { name: &tool.name, description: &tool.description, parameters: &tool.input_schema };
    ChatTool { r#type: "function", function }
}

/// A tool call. `A` is the form of its arguments.
#[derive(Serialize)]
pub(super) struct ChatCall<'a, A> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: CallFunction<'a, A>,
}

#[derive(Serialize)]
struct CallFunction<'a, A> {
    name: &'a str,
    arguments: A,
}

impl<'a, A> ChatCall<'a, A> {
    pub(super) fn new(id: Cow<'a, str>, name: &'a str, arguments: A) -> ChatCall<'a, A> {
        ChatCall { id, r#type: "function", function: CallFunction { name, arguments } }
    }
}

/// A turn of a conversation.
pub(super) enum ChatTurn<'a> {
    User(Vec<Cow<'a, Part>>),
    Assistant(&'a [Block]),
    Tool(&'a ToolResult),
}

/// Splits the conversation into turns. All user parts between turns of other roles become one turn,
/// because the chat templates of local models require alternating turns.
pub(super) fn chat_turns(messages: &[Arc<Message>]) -> Vec<ChatTurn<'_>> {
    let (mut turns, mut user_parts) = (Vec::new(), Vec::new());
    let user = |parts: &mut Vec<_>| Some(std::mem::take(parts)).filter(|parts| !parts.is_empty()).map(ChatTurn::User);
    for message in messages {
        match message.as_ref() {
            Message::User(parts) => user_parts.extend(parts.iter().map(Cow::Borrowed)),
            Message::Assistant(blocks) => {
                turns.extend(user(&mut user_parts));
                turns.push(ChatTurn::Assistant(blocks));
            }
            Message::ToolResults(results) => {
                turns.extend(user(&mut user_parts));
                turns.extend(results.iter().map(ChatTurn::Tool));
                user_parts.extend(results.iter().flat_map(wire::result_images));
            }
        }
    }
    turns.extend(user(&mut user_parts));
    turns
}

/// Returns the text of a part.
pub(super) fn text(part: Cow<'_, Part>) -> Cow<'_, str> {
    match part {
        Cow::Borrowed(part) => part.as_text(),
        Cow::Owned(part) => part.as_text().into_owned().into(),
    }
}

/// Appends a text, which is not copied if it is the first one.
pub(super) fn append<'a>(text: &mut Cow<'a, str>, piece: &'a str) {
    match text.is_empty() {
        true => *text = piece.into(),
        false => text.to_mut().push_str(piece),
    }
}
