//! JSON-RPC 2.0 messages (https://www.jsonrpc.org/specification): a strict parser, and the error
//! object of responses.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::error::{Error, Kind};
use crate::json;

/// Start of a message with headers, as language servers write them.
const HEADER: &[u8] = b"content-length:";

/// The id of a request, chosen by its sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    Null,
    /// A number of at most 64 bits.
    Integer(serde_json::Number),
    Text(String),
    /// Any other number, as its sender wrote it.
    #[serde(skip_deserializing, serialize_with = "write_literal")]
    Literal(String),
}

fn write_literal<S: Serializer>(number: &str, serializer: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(number.to_owned()).map_err(serde::ser::Error::custom)?.serialize(serializer)
}

impl Id {
    /// Finds the id in the text of a message that may be truncated or invalid. Returns
    /// [`Id::Null`] if it is absent.
    fn find(message: &[u8]) -> Id {
        let Some((_, text)) = json::members(message).find(|(name, _)| *name == b"id") else { return Id::Null };
        match json::from_slice(text) {
            Ok(Value::Number(number)) if number.is_f64() => Id::Literal(String::from_utf8_lossy(text).into_owned()),
            Ok(Value::Number(number)) => Id::Integer(number),
            Ok(Value::String(text)) => Id::Text(text),
            _ => Id::Null,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Null => f.write_str("null"),
            Id::Integer(number) => number.fmt(f),
            Id::Text(text) | Id::Literal(text) => text.fmt(f),
        }
    }
}

/// A received message. `params` is null if it is absent.
#[derive(Debug, PartialEq)]
pub enum ReceivedMessage {
    /// A call that requires a response.
    Request { id: Id, method: String, params: Value },
    /// A call without a response.
    Notification { method: String, params: Value },
    /// The result of a request, or its error object.
    Response { id: Id, result: Result<Value, Value> },
}

/// Received bytes that are not a valid message.
#[derive(Debug)]
pub struct InvalidMessage {
    /// The id of the message; null if it could not be read.
    pub id: Id,
    /// True if the message is the response to a request, false if it is a request.
    pub is_response: bool,
    /// The error for the response.
    pub error: Error,
}

impl InvalidMessage {
    /// Describes a message that cannot be parsed. `text` is its start: the id is read from it if it
    /// can be found there.
    pub(crate) fn unreadable(text: &[u8], error: Error) -> Self {
        let is_response = json::members(text).any(|(name, _)| matches!(name, b"result" | b"error"));
        Self { id: Id::find(text), is_response, error }
    }
}

impl ReceivedMessage {
    /// Parses one message.
    pub fn parse(line: &[u8]) -> Result<ReceivedMessage, InvalidMessage> {
        let unreadable = |message: String| InvalidMessage::unreadable(line, Error::new(Kind::ParseError, message));
        if let Err(error) = std::str::from_utf8(line) {
            return Err(unreadable(format!("message is not UTF-8 after byte {}", error.valid_up_to())));
        }
        let value: Value = json::from_slice(line).map_err(|error| {
            let mut invalid = unreadable(format!("message is not JSON: {error}"));
            if line.get(..HEADER.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEADER)) {
                invalid.error = invalid.error.hint("send one JSON message per line, without headers");
            }
            invalid
        })?;
        let invalid = |id: &Id, message: &str| {
            let error = Error::new(Kind::InvalidRequest, message);
            InvalidMessage { id: id.clone(), is_response: false, error }
        };
        let mut object = match value {
            Value::Object(object) => object,
            Value::Array(_) => return Err(invalid(&Id::Null, "batches are not part of ACP: send one message a line")),
            _ => return Err(invalid(&Id::Null, "the message must be a JSON object")),
        };
        let id = match object.remove("id") {
            None => None,
            Some(Value::Null) => Some(Id::Null),
            // A number that is not exact as a `Value`.
            Some(Value::Number(number)) if number.is_f64() => Some(Id::find(line)),
            Some(Value::Number(number)) => Some(Id::Integer(number)),
            Some(Value::String(text)) => Some(Id::Text(text)),
            Some(_) => return Err(invalid(&Id::Null, "id: must be a number or a string")),
        };
        let known_id = id.clone().unwrap_or(Id::Null);
        if object.get("jsonrpc") != Some(&Value::String("2.0".into())) {
            return Err(invalid(&known_id, "jsonrpc: must be \"2.0\""));
        }
        let params = object.remove("params").unwrap_or(Value::Null);
        match (object.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => Ok(ReceivedMessage::Request { id, method, params }),
            (Some(Value::String(method)), None) => Ok(ReceivedMessage::Notification { method, params }),
            (Some(_), _) => Err(invalid(&known_id, "method: must be a string")),
            (None, Some(id)) => response(id, object).map_err(|message| invalid(&known_id, message)),
            (None, None) => Err(invalid(&Id::Null, "neither a request nor a response: method is missing")),
        }
    }
}

fn response(id: Id, mut object: Map<String, Value>) -> Result<ReceivedMessage, &'static str> {
    match (object.remove("result"), object.remove("error")) {
        (Some(result), None) => Ok(ReceivedMessage::Response { id, result: Ok(result) }),
        (None, Some(error)) => Ok(ReceivedMessage::Response { id, result: Err(error) }),
        (None, None) => Err("neither a request nor a response: method, result and error are missing"),
        (Some(_), Some(_)) => Err("the response has both a result and an error"),
    }
}

/// Creates the error object of a response. `data.details` contains the text that many clients show;
/// `data.info` contains structured details for programs.
pub(crate) fn error_object(error: &Error) -> Value {
    let row = error.kind.row();
    let mut data = Map::new();
    data.insert("code".into(), row.code.into());
    data.extend(error.hint.as_ref().map(|hint| ("hint".to_string(), hint.as_str().into())));
    data.insert("details".into(), error.to_string().into());
    data.extend(error.details.as_ref().map(|details| ("info".to_string(), details.clone())));
    // `message` repeats the full text, because many clients show only the message.
    json!({ "code": row.rpc, "message": error.to_string(), "data": data })
}

/// Returns the error that an error object describes, as [`error_object`] encodes it.
pub(crate) fn error_from(object: &Value) -> Error {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let (message, data) = (text(&object["message"]), &object["data"]);
    let kind = data["code"].as_str().and_then(Kind::from_code).unwrap_or(Kind::Internal);
    let hint = data["hint"].as_str();
    let suffix = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    let mut error = Error::new(kind, message.strip_suffix(&suffix).unwrap_or(&message));
    (error.hint, error.details) = (hint.map(String::from), data.get("info").cloned());
    error
}
