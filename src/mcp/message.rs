//! Reads the messages of a server, including malformed ones. A response that cannot be read becomes
//! an error of the request that it answers, so that the caller does not wait for it.

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::Value;

use super::tool_list;
use crate::content::shortened;
use crate::error::{Error, Kind};
use crate::json;
use crate::limits;
use crate::rpc::message::{Id, InvalidMessage, ReceivedMessage};
use crate::workspace::one_line;

/// Maximum length of the shown part of output that is not a message, in bytes.
const MCP_GARBAGE_BYTES_MAX: usize = 200;

/// Text that a server wrote.
pub(super) enum ServerText {
    Message(Box<ServerJsonRpcMessage>),
    /// Nothing to handle: a blank line, or a request that cannot be answered.
    Nothing,
    /// Not a message; the start of the text.
    Garbage(String),
}

pub(super) fn read(text: &[u8]) -> ServerText {
    if text.trim_ascii().is_empty() {
        return ServerText::Nothing;
    }
    match ReceivedMessage::parse(text) {
        // A program that echoes its input, such as `cat`.
        Ok(ReceivedMessage::Request { method, .. }) if method == "initialize" || method == "server/discover" => garbage(text),
        Ok(_) => parse(text),
        Err(invalid) => unreadable(text, invalid),
    }
}

/// Parses a message that is valid JSON-RPC.
fn parse(text: &[u8]) -> ServerText {
    let Ok(mut value) = json::from_slice::<Value>(text) else { return garbage(text) };
    if let Some(result) = value.get_mut("result") {
        tool_list::omit_unusable(result);
    }
    match serde_json::from_value(value) {
        Ok(message) => ServerText::Message(Box::new(message)),
        Err(error) => unreadable(text, InvalidMessage::unreadable(text, Error::new(Kind::ParseError, error.to_string()))),
    }
}

/// Converts a message that cannot be read; `text` is its start.
pub(super) fn unreadable(text: &[u8], invalid: InvalidMessage) -> ServerText {
    let id = match &invalid.id {
        Id::Integer(number) => number.as_i64().map(RequestId::Number),
        Id::Text(text) => Some(RequestId::String(text.as_str().into())),
        Id::Null | Id::Literal(_) => None,
    };
    let is_response = invalid.is_response || !json::members(text).any(|(name, _)| name == b"method");
    match id {
        Some(id) if is_response => {
            let message = format!("the answer cannot be read: {}", invalid.error.message);
            let error = ErrorData::new(ErrorCode::PARSE_ERROR, message, None);
            ServerText::Message(Box::new(ServerJsonRpcMessage::error(error, Some(id))))
        }
        Some(_) => {
            tracing::warn!(error = %invalid.error, "a request of an MCP server cannot be read");
            ServerText::Nothing
        }
        None => garbage(text),
    }
}

fn garbage(text: &[u8]) -> ServerText {
    let start = String::from_utf8_lossy(&text[..text.len().min(limits::MCP_LOG_LINE_BYTES_MAX)]).trim().to_owned();
    ServerText::Garbage(one_line(shortened(start, MCP_GARBAGE_BYTES_MAX)))
}
