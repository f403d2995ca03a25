//! The conversation that is sent to a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::content::{Part, ProviderState};
use crate::id::ToolCallId;

/// A message of the conversation that is sent to a model. Each tool call has its result in the
/// following message. The JSON is an object with `role` and `parts`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", content = "parts", rename_all = "snake_case")]
pub enum Message {
    User(Vec<Part>),
    Assistant(Vec<Block>),
    #[serde(rename = "tool")]
    ToolResults(Vec<ToolResult>),
}

/// A block of a model's answer. Blocks are stored in the order in which they arrived.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Block {
    Thinking {
        text: String,
        state: Option<ProviderState>,
    },
    Text {
        text: String,
        state: Option<ProviderState>,
    },
    /// `input_text` is the input as the model wrote it, if the serialization of `input` differs.
    ToolCall {
        id: ToolCallId,
        name: String,
        input: Value,
        input_text: Option<String>,
        state: Option<ProviderState>,
    },
}

/// The result of a tool call. `failed` marks an error whose message is in `output`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    pub id: ToolCallId,
    pub name: String,
    pub output: Vec<Part>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}
