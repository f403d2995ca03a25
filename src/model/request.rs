//! One request to a model.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::Messages;
use crate::options::Thinking;

/// One request to a model.
#[derive(Clone, Debug)]
pub struct Request {
    /// The system prompt.
    pub system: Arc<str>,
    /// The conversation that the model continues.
    pub messages: Messages,
    /// The tools that the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// How much the model may think.
    pub thinking: Thinking,
    /// True if the answer must be JSON. Then JSON in it is never a tool call.
    pub json_answer: bool,
    /// A key that is identical for all requests of a session. Providers use the key to route
    /// requests to a server with a warm cache.
    pub cache_key: String,
    /// Digests of the parts of the conversation that a provider refused. They are sent as text, or
    /// left out.
    pub refused: Arc<HashSet<String>>,
}

/// The description of a tool for models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name in tool calls.
    pub name: String,
    /// The purpose of the tool, for the model.
    pub description: String,
    /// A JSON Schema (draft 2020-12) of an object.
    pub input_schema: Value,
}

impl ToolSpec {
    /// Returns about the size of the description in a request, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.input_schema.to_string().len()
    }
}
