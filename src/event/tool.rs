//! Tool calls in events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::content::{Location, Part, ProviderState, ToolCategory, ToolContent, ToolKind, ToolLabel, ToolStatus};
use crate::id::ToolCallId;

/// Fields of a tool call that replace those of `tool.started`. Hosted agents announce some calls
/// before they know these fields.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolChange {
    /// One line for users.
    pub title: Option<String>,
    /// From which clients choose an icon.
    pub kind: Option<ToolKind>,
    /// The arguments.
    pub input: Option<Value>,
    /// Files that the call works on.
    pub locations: Option<Vec<Location>>,
}

impl ToolChange {
    /// Returns whether no field changes.
    pub(crate) fn is_empty(&self) -> bool {
        *self == ToolChange::default()
    }
}

/// A tool call, as it is announced.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[non_exhaustive]
pub struct ToolStart {
    /// Unique in the session.
    pub tool_call_id: ToolCallId,
    /// The name of the tool, as the model wrote it.
    pub name: String,
    /// One line for users.
    pub title: String,
    /// From which clients choose an icon.
    pub kind: ToolKind,
    /// The kind of resources that the call accesses. Events of older versions lack it.
    pub category: Option<ToolCategory>,
    /// The arguments.
    pub input: Value,
    /// The input as the model wrote it, if the serialization of `input` differs, for example in
    /// its white space.
    pub input_text: Option<String>,
    /// Files that the call works on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// Data that the provider requires back.
    pub provider_state: Option<ProviderState>,
    /// nuncio made the call, not the model, whose messages do not contain it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
}

impl ToolStart {
    /// Creates the start of a call of the model, without locations.
    pub(crate) fn new(tool_call_id: ToolCallId, tool: ToolLabel, kind: ToolKind, input: Value) -> ToolStart {
        let (ToolLabel { name, title, category }, locations) = (tool, Vec::new());
        let (input_text, provider_state, automatic) = (None, None, false);
        ToolStart { tool_call_id, name, title, kind, category, input, input_text, locations, provider_state, automatic }
    }

    /// Returns the tool, as in later events about the call.
    pub(crate) fn label(&self) -> ToolLabel {
        ToolLabel { name: self.name.clone(), title: self.title.clone(), category: self.category }
    }
}

/// Changed fields of a tool call; the others are missing.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[non_exhaustive]
pub struct ToolUpdate {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The new status.
    pub status: Option<ToolStatus>,
    /// Replaces the content shown so far.
    pub content: Option<Vec<ToolContent>>,
    /// Further changed fields.
    #[serde(flatten)]
    pub change: ToolChange,
}

impl ToolUpdate {
    /// Creates the update of a status.
    pub(crate) fn status(tool_call_id: ToolCallId, status: ToolStatus) -> ToolUpdate {
        ToolUpdate { tool_call_id, status: Some(status), content: None, change: ToolChange::default() }
    }
}

/// The end of a tool call.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[non_exhaustive]
pub struct ToolEnd {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// As in `tool.started`, here and in the `permission` events. Events of older versions lack
    /// it.
    #[serde(flatten)]
    pub tool: Option<ToolLabel>,
    /// `completed` or `failed`.
    pub status: ToolStatus,
    /// Sent to the model.
    pub output: Vec<Part>,
    /// Shown to users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ToolContent>,
    /// Files that the call has read or written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// The tool's typed result.
    pub details: Option<Value>,
    /// `unknown`: the process that ran the call died, so the call may have had an effect.
    pub effect: Option<String>,
}
