//! One request to a model.

use std::sync::Arc;

use serde_json::Value;

use super::message::Message;
use crate::options::Thinking;

/// One request to a model.
#[derive(Clone, Debug)]
pub struct Request {
    pub system: String,
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolSpec]>,
    pub thinking: Thinking,
    /// A key that is identical for all requests of a session. Providers use the key to route
    /// requests to a server with a warm cache.
    pub cache_key: String,
}

/// The description of a tool for models. `input_schema` is a JSON Schema (draft 2020-12) of an
/// object.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}
