//! The tool calls of a hosted agent.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::raw_output;
use crate::config::AccessKind;
use crate::content::{CallDetails, Part, ToolCategory, ToolContent, ToolKind, ToolLabel, ToolStatus};
use crate::event::ToolChange;
use crate::hooks::HookTool;
use crate::id::ToolCallId;
use crate::toolkit::git::quoted;

/// The reported fields of a tool call. An absent field did not change.
#[derive(Clone, Debug, Default)]
pub(super) struct CallUpdate {
    pub change: ToolChange,
    pub status: Option<ToolStatus>,
    pub content: Option<Vec<ToolContent>>,
    /// The output as text, if `content` does not contain it.
    pub output: Option<String>,
    /// Output to append.
    pub more_output: Option<String>,
}

impl CallUpdate {
    /// Creates the update of these fields.
    pub(super) fn new(title: impl Into<String>, kind: ToolKind, input: Option<Value>) -> CallUpdate {
        let change = ToolChange { title: Some(title.into()), kind: Some(kind), input, locations: None };
        CallUpdate { change, ..CallUpdate::default() }
    }
}

/// A tool call of the agent that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub id: ToolCallId,
    pub title: String,
    pub details: CallDetails,
    /// True if the agent reported a kind.
    pub has_kind: bool,
    pub output: Option<String>,
    pub running: bool,
    pub ended: bool,
}

impl Call {
    /// Returns the name, title and category of the tool for events. The name is one of nuncio's own
    /// tools if the call is of the same kind, so that rules about the tool apply to the call.
    pub(super) fn label(&self) -> ToolLabel {
        let (name, category) = match self.details.kind {
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

    /// Returns the kind of access. The described effect takes precedence over the kind that the
    /// agent gives.
    pub(super) fn access(&self) -> AccessKind {
        let writes_files = self.details.content.iter().any(|content| matches!(content, ToolContent::Diff { .. }));
        match self.details.kind {
            _ if self.command().is_some() => AccessKind::Exec,
            _ if writes_files => AccessKind::Write,
            ToolKind::Execute => AccessKind::Exec,
            ToolKind::Edit => AccessKind::Write,
            ToolKind::Read | ToolKind::Search if !self.paths().is_empty() => AccessKind::Read,
            ToolKind::Fetch => AccessKind::Network,
            // The effect of the call is unknown.
            ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Other => AccessKind::Mcp,
        }
    }

    /// Returns the name of nuncio's tool whose rules and hooks apply to the call.
    pub(super) fn tool_name(&self) -> String {
        match self.access() {
            AccessKind::Exec => "bash".into(),
            AccessKind::Write => "edit".into(),
            AccessKind::Read | AccessKind::Network | AccessKind::Mcp => self.label().name,
        }
    }

    /// Describes the call to hooks. An unknown command is `null`.
    pub(super) fn hook_tool(&self) -> HookTool {
        let mut input = self.details.input.clone();
        if self.access() == AccessKind::Exec && self.command().is_none() {
            match input.as_object_mut() {
                Some(fields) => drop(fields.insert("command".into(), Value::Null)),
                None => input = json!({ "command": null }),
            }
        }
        let (tool_call_id, name) = (self.id.clone(), self.tool_name());
        HookTool { tool_call_id, name, input, status: None, output: None, parts: None }
    }

    /// Returns the command line of a call that runs a command; `None` if it is unknown.
    pub(super) fn command(&self) -> Option<String> {
        let words = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|word| word.as_str().map(String::from)).collect()
        };
        // Some agents give the arguments of the program separately.
        let arguments = match &self.details.input["args"] {
            Value::Null => Vec::new(),
            arguments => words(arguments)?,
        };
        let line = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let command = match &self.details.input["command"] {
            Value::String(line) if arguments.is_empty() => line.clone(),
            Value::String(program) => format!("{program} {}", line(&arguments)),
            // The arguments of a program. `bash -lc LINE` is shown as LINE.
            list => match [words(list)?, arguments].concat().as_slice() {
                [shell, option, line] if SHELLS.contains(&shell.as_str()) && ["-c", "-lc"].contains(&option.as_str()) => {
                    line.clone()
                }
                words => line(words),
            },
        };
        Some(command).filter(|command| !command.trim().is_empty())
    }

    /// Returns whether the agent describes the call with more than a title.
    pub(super) fn is_described(&self) -> bool {
        let has_input = self.details.input.as_object().map_or(!self.details.input.is_null(), |input| !input.is_empty());
        has_input || (self.has_kind && (self.details.kind != ToolKind::Other || !self.details.content.is_empty()))
    }

    /// Replaces results that are JSON by their text. The text of files and commands is unchanged.
    pub(super) fn decode_result(&mut self) {
        if self.details.kind != ToolKind::Other {
            return;
        }
        for content in &mut self.details.content {
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
        let of_input = ["file_path", "path", "filePath", "abs_path"].iter().filter_map(|name| self.details.input[*name].as_str());
        let of_content = self.details.content.iter().filter_map(|content| match content {
            ToolContent::Diff { path, .. } => Some(path.clone()),
            _ => None,
        });
        let mut paths: Vec<PathBuf> = self
            .details
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
