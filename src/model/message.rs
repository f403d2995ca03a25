//! The conversation that is sent to a model.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::content::{Part, ProviderState};
use crate::id::ToolCallId;

/// A conversation, oldest message first. Requests and their copies share it.
pub type Messages = Arc<Vec<Arc<Message>>>;

/// A message of the conversation that is sent to a model. Each tool call has its result in the
/// following message. The JSON is an object with `role` and `parts`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", content = "parts", rename_all = "snake_case")]
pub enum Message {
    /// A message of the user, or of nuncio in the name of the user.
    User(Vec<Part>),
    /// An answer of the model.
    Assistant(Vec<Block>),
    /// The results of the tool calls in the message before.
    #[serde(rename = "tool")]
    ToolResults(Vec<ToolResult>),
}

/// A block of a model's answer. Blocks are stored in the order in which they arrived.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Block {
    /// Thinking of the model, if its provider returns it.
    Thinking {
        /// Empty if the provider returns only `state`.
        text: String,
        /// Data that the provider requires back.
        state: Option<ProviderState>,
    },
    /// Text of the answer.
    Text {
        /// The text.
        text: String,
        /// Data that the provider requires back.
        state: Option<ProviderState>,
    },
    /// A tool call.
    ToolCall {
        /// The id, which the result repeats.
        id: ToolCallId,
        /// The name of the tool, as the model wrote it.
        name: String,
        /// The arguments.
        input: Value,
        /// The input as the model wrote it, if the serialization of `input` differs.
        input_text: Option<String>,
        /// Data that the provider requires back.
        state: Option<ProviderState>,
    },
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The id of the call.
    pub id: ToolCallId,
    /// The name of the tool in the call.
    pub name: String,
    /// The output of the call.
    pub output: Vec<Part>,
    /// True if the call failed, and `output` has the message of the error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}
