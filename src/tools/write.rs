//! `write`: creates or overwrites a file, atomically.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::AccessShape;
use crate::content::{Location, ToolContent, ToolKind};
use crate::permission::Access;
use crate::toolkit::change::{self, ChangePlan, PlannedChange};
use crate::toolkit::overwrite;
use crate::toolkit::text_form::ReplacedText;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use crate::workspace::Workspace;

pub(super) struct Write;

/// Creates or overwrites a file. To change part of a file, use edit.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct WriteInput {
    #[serde(alias = "path", alias = "filePath", alias = "file")]
    file_path: String,
    #[serde(alias = "contents", alias = "text")]
    content: String,
}

/// The details of the result of a `write` call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WriteDetails {
    file_path: PathBuf,
    /// Bytes written.
    size: usize,
    /// The file did not exist before.
    is_new: bool,
    /// Unified diff.
    diff: String,
}

impl Tool for Write {
    type Input = WriteInput;
    type Details = WriteDetails;
    const NAME: &'static str = "write";
    const LABEL: &'static str = "Write file";
    const ALIASES: &'static [&'static str] = &["fs_write", "write_file"];
    const KIND: ToolKind = ToolKind::Edit;
    const PROPERTIES: ToolProperties = ToolProperties { edits_files: true, ..ToolProperties::NONE };
    const ACCESS: &'static [AccessShape] = AccessShape::WRITE;

    fn title(&self, input: &WriteInput, workspace: &Workspace) -> String {
        format!("Write {}", workspace.show(&workspace.resolve(&input.file_path).path))
    }

    fn locations(&self, input: &WriteInput, workspace: &Workspace) -> Vec<Location> {
        vec![Location { path: workspace.resolve(&input.file_path).path, line: None }]
    }

    fn access(&self, input: &WriteInput) -> Access {
        Access::write(&input.file_path)
    }

    async fn preview(&self, input: &WriteInput, context: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        let input = input.clone();
        change::preview(context, move |context| plan(input, context)).await
    }

    async fn run(&self, input: WriteInput, context: &ToolContext) -> Result<ToolOutput<WriteDetails>, ToolError> {
        let path = input.file_path.clone();
        change::run(context, [path.as_str()], move |context| plan(input, context)).await
    }
}

fn plan(input: WriteInput, context: &ToolContext) -> Result<ChangePlan<WriteDetails>, ToolError> {
    let resolved = context.workspace.resolve(&input.file_path);
    let old = change::current(&resolved, context)?;
    overwrite::check(&resolved, &old, context)?;
    overwrite::check_numbers(&resolved, &input.content, context)?;
    let before = old.bytes.as_deref().map(lines);
    let text = ReplacedText::new(old.bytes.as_deref().unwrap_or_default(), &input.content);
    let note = text.note();
    let change = PlannedChange::new(resolved, context, old, Some(text.bytes));
    let size = change.new.as_ref().map_or(0, Vec::len);
    let (shown, after) = (&change.shown, change.new.as_deref().map_or(0, lines));
    let text = match before {
        None => format!("created {shown} ({size} bytes){note}"),
        Some(before) => format!("overwrote {shown}: {before} lines before, {after} now ({size} bytes){note}"),
    };
    let details =
        WriteDetails { file_path: change.resolved.path.clone(), size, is_new: before.is_none(), diff: change.diff().text };
    Ok(ChangePlan { text, changes: vec![change], details })
}

fn lines(content: &[u8]) -> usize {
    content.split_inclusive(|byte| *byte == b'\n').count()
}
