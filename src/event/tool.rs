//! Changes of announced tool calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::content::{Location, ToolKind};

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
