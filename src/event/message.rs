//! Parts of the events about messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::actor::Actor;
use crate::content::{Part, Role};
use crate::id::MessageId;

/// How a message reaches a busy session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delivery {
    /// In a turn of its own, after the running turn.
    #[default]
    Queue,
    /// In the running turn, before its next model request.
    Steer,
}

/// Optional fields of a message.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct MessageExtra {
    /// Parts that precede the message for the model, such as the date and the state of the
    /// repository. Users need not see them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Part>,
    /// The text of a slash command, which the model gets instead of the first part.
    pub expansion: Option<String>,
    /// The type of a message of role `custom`, chosen by the client that sent it.
    pub custom_type: Option<String>,
    /// Data of a message of role `custom`.
    pub details: Option<Value>,
}

/// A message that the model sees instead of the earlier ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ReplacedMessage {
    /// The author of the message.
    pub role: Role,
    /// The content.
    pub parts: Vec<Part>,
}

/// A message that waits while a turn runs.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[non_exhaustive]
pub struct QueuedMessage {
    /// The id that its `message.completed` will have.
    pub message_id: MessageId,
    /// The author of the message.
    pub role: Role,
    /// The content.
    pub parts: Vec<Part>,
    /// When the message is delivered.
    pub delivery: Delivery,
    /// If false, the message does not start a turn; it waits for the next one.
    pub auto_run: bool,
    /// The client that sent it.
    pub by: Option<Actor>,
}
