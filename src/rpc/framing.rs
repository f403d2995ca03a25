//! Encodes messages for a byte stream, as lines or with headers.

use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::headers;
use super::message::{Id, error_object};
use crate::error::Result;

/// How a byte stream is divided into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One message per line, as in ACP.
    Lines,
    /// A header with the length before each message, as in LSP (3.17, base protocol).
    Headers,
}

#[derive(Serialize)]
struct Call<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Id>,
    method: &'a str,
    params: P,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'static str,
    id: &'a Id,
    result: Option<&'a Value>,
    error: Option<Value>,
}

impl Framing {
    /// Appends a notification to `into`.
    pub fn notification(self, method: &str, params: impl Serialize, into: &mut Vec<u8>) {
        self.write(&Call { jsonrpc: "2.0", id: None, method, params }, into);
    }

    /// Appends a request to `into`.
    pub fn request(self, id: &Id, method: &str, params: impl Serialize, into: &mut Vec<u8>) {
        self.write(&Call { jsonrpc: "2.0", id: Some(id), method, params }, into);
    }

    /// Appends the response to the request `id` to `into`.
    pub fn response(self, id: &Id, result: &Result<Value>, into: &mut Vec<u8>) {
        let (result, error) = match result {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error_object(error))),
        };
        self.write(&Response { jsonrpc: "2.0", id, result, error }, into);
    }

    fn write(self, message: &impl Serialize, into: &mut Vec<u8>) {
        let start = into.len();
        serde_json::to_writer(&mut *into, message).expect("messages have string keys and no failing serializers");
        match self {
            Framing::Lines => into.push(b'\n'),
            Framing::Headers => drop(into.splice(start..start, headers::header(into.len() - start).into_bytes())),
        }
    }
}
