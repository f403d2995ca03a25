//! The result of a tool call: an output or an error.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::content::{Location, Part, PlanEntry, ToolContent};

/// Receives the content that a running call shows; each update replaces the previous one. Must not
/// block.
pub(crate) type Progress = Arc<dyn Fn(Vec<ToolContent>) + Send + Sync>;

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput<D = Value> {
    /// The result for the model.
    pub parts: Vec<Part>,
    /// The result for users.
    pub content: Vec<ToolContent>,
    /// Files that the call has read or written.
    pub locations: Vec<Location>,
    /// The tool's typed result, an object: [`Tool::Details`](super::Tool::Details), or its JSON.
    pub details: D,
    /// The model's plan, if the call has updated it.
    pub plan: Option<Vec<PlanEntry>>,
    /// True if the call reports on work that still runs, so that a repeated call with the same
    /// result is not a loop of the model.
    pub polls: bool,
}

impl<D> ToolOutput<D> {
    /// Creates a result with the same text for the model and for users.
    pub(crate) fn text(text: impl Into<String>, details: D) -> ToolOutput<D> {
        let text = text.into();
        ToolOutput {
            parts: vec![Part::text(&text)],
            content: vec![ToolContent::text(text)],
            locations: Vec::new(),
            details,
            plan: None,
            polls: false,
        }
    }

    /// Adds notes for the model, which users see below the text.
    pub(crate) fn notes(mut self, notes: impl IntoIterator<Item = String>) -> ToolOutput<D> {
        for note in notes {
            if let Some(ToolContent::Content { content: Part::Text { text } }) = self.content.last_mut() {
                let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                *text += &format!("{line_end}[{note}]\n");
            }
            if let Some(Part::Text { text }) = self.parts.last_mut() {
                text.truncate(text.strip_suffix('\n').unwrap_or(text).len());
            }
            self.parts.retain(|part| !matches!(part, Part::Text { text } if text.is_empty()));
            self.parts.push(Part::note(note));
        }
        self
    }

    /// Replaces the text for users, which lacks what only a model needs.
    pub(crate) fn shown_as(self, text: impl Into<String>) -> ToolOutput<D> {
        ToolOutput { content: vec![ToolContent::text(text)], ..self }
    }
}

impl<D: Serialize> ToolOutput<D> {
    /// Converts the details to JSON.
    pub(crate) fn into_json(self) -> Result<ToolOutput, ToolError> {
        let ToolOutput { parts, content, locations, details, plan, polls } = self;
        let details = serde_json::to_value(details).map_err(|error| ToolError(format!("internal error: details: {error}")))?;
        Ok(ToolOutput { parts, content, locations, details, plan, polls })
    }
}

/// The error of a call, written for the model: what was wrong and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError(pub String);

impl ToolError {
    /// Creates an error with this message.
    pub fn new(message: impl Into<String>) -> ToolError {
        ToolError(message.into())
    }

    pub(crate) fn cancelled() -> ToolError {
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
