//! The tool calls of a hosted agent.

use std::path::PathBuf;

use serde_json::Value;

use super::raw_output;
use crate::content::{Location, Part, ToolCategory, ToolContent, ToolKind, ToolLabel, ToolStatus};
use crate::hooks::HookTool;
use crate::id::ToolCallId;
use crate::toolkit::git::quoted;

/// The reported fields of a tool call. An absent field did not change.
#[derive(Clone, Debug, Default)]
pub(super) struct CallUpdate {
    pub title: Option<String>,
    pub kind: Option<ToolKind>,
    pub status: Option<ToolStatus>,
    pub input: Option<Value>,
    pub content: Option<Vec<ToolContent>>,
    pub locations: Option<Vec<Location>>,
    /// The output as text, if `content` does not contain it.
    pub output: Option<String>,
    /// Output to append.
    pub more_output: Option<String>,
}

/// A tool call of the agent that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub id: ToolCallId,
    pub title: String,
    pub kind: ToolKind,
    /// True if the agent reported a kind.
    pub has_kind: bool,
    pub input: Value,
    pub locations: Vec<Location>,
    pub content: Vec<ToolContent>,
    pub output: Option<String>,
    pub running: bool,
    pub ended: bool,
}

impl Call {
    /// Returns the name, title and category of the tool for events. The name is one of nuncio's own
    /// tools if the call is of the same kind, so that rules about the tool apply to the call.
    pub(super) fn label(&self) -> ToolLabel {
        let (name, category) = match self.kind {
            ToolKind::Execute => ("bash", ToolCategory::Command),
            ToolKind::Edit => ("edit", ToolCategory::File),
            ToolKind::Read => ("read", ToolCategory::File),
            ToolKind::Search => ("grep", ToolCategory::File),
            ToolKind::Fetch => ("fetch", ToolCategory::Network),
            ToolKind::Think => ("think", ToolCategory::Other),
            ToolKind::Other => ("other", ToolCategory::Other),
        };
        ToolLabel { name: name.into(), title: self.title.clone(), category: Some(category) }
    }

    /// Describes the call to hooks.
    pub(super) fn hook_tool(&self) -> HookTool {
        let (tool_call_id, name, input) = (self.id.clone(), self.label().name, self.input.clone());
        HookTool { tool_call_id, name, input, status: None, output: None, parts: None }
    }

    /// Returns the command line of a call that runs a command.
    pub(super) fn command(&self) -> Option<String> {
        let command = &self.input["command"];
        match command {
            Value::String(line) => Some(line.clone()),
            // The arguments of a program. `bash -lc LINE` is shown as LINE.
            Value::Array(words) => {
                let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
                match words.as_slice() {
                    [shell, "-c" | "-lc", line] if SHELLS.contains(shell) => Some((*line).to_owned()),
                    words => {
                        Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")).filter(|line| !line.is_empty())
                    }
                }
            }
            _ => None,
        }
    }

    /// Returns whether the agent describes the call with more than a title.
    pub(super) fn is_described(&self) -> bool {
        let has_input = self.input.as_object().map_or(!self.input.is_null(), |input| !input.is_empty());
        has_input || (self.has_kind && (self.kind != ToolKind::Other || !self.content.is_empty()))
    }

    /// Replaces results that are JSON by their text. The text of files and commands is unchanged.
    pub(super) fn decode_result(&mut self) {
        if self.kind != ToolKind::Other {
            return;
        }
        for content in &mut self.content {
            if let ToolContent::Content { content: Part::Text { text } } = content
                && let Some(decoded) = raw_output::decoded(text)
            {
                *text = decoded;
            }
        }
        self.output = self.output.take().map(|output| raw_output::decoded(&output).unwrap_or(output));
    }

    /// Returns the paths that the call accesses, if the agent reported them.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let of_input = ["file_path", "path", "filePath", "abs_path"].iter().filter_map(|name| self.input[*name].as_str());
        let of_content = self.content.iter().filter_map(|content| match content {
            ToolContent::Diff { path, .. } => Some(path.clone()),
            _ => None,
        });
        let mut paths: Vec<PathBuf> = self
            .locations
            .iter()
            .map(|location| location.path.clone())
            .chain(of_content)
            .chain(of_input.map(PathBuf::from))
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

/// Shells whose command lines are evaluated.
const SHELLS: &[&str] = &["bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/sh", "/usr/bin/zsh"];
