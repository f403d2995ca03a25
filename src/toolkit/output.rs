//! What a call returns: an output or an error.

use std::fmt;

use serde_json::Value;

use crate::content::{Location, Part, ToolContent};

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The result for the model.
    pub parts: Vec<Part>,
    /// The result for users.
    pub content: Vec<ToolContent>,
    /// Files that the call has read or written.
    pub locations: Vec<Location>,
    /// The tool's typed result, an object.
    pub details: Value,
}

impl Output {
    /// A result with the same text for the model and for users.
    pub fn text(text: impl Into<String>, details: Value) -> Output {
        let text = text.into();
        Output { parts: vec![Part::text(&text)], content: vec![ToolContent::text(text)], locations: Vec::new(), details }
    }
}

/// The error of a call, written for the model: what was wrong and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError(pub String);

impl ToolError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> ToolError {
        ToolError(message.into())
    }

    /// The error of a cancelled call.
    pub fn cancelled() -> ToolError {
        ToolError("cancelled".into())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ToolError {}

impl From<crate::error::Error> for ToolError {
    fn from(error: crate::error::Error) -> ToolError {
        ToolError(error.to_string())
    }
}
