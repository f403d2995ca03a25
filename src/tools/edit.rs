//! `edit`: replaces text in a file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::AccessShape;
use crate::content::{Location, ToolContent, ToolKind};
use crate::patch::edit::{EditOutcome, WITHOUT_NUMBERS, edit};
use crate::permission::Access;
use crate::toolkit::change::{self, ChangePlan, PlannedChange};
use crate::toolkit::overwrite;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use crate::tools::read::similar_name;
use crate::workspace::Workspace;

pub(super) struct Edit;

/// Replaces text in a file. old_string must be the file's exact text, without line numbers, and
/// unique unless replace_all is set; include enough lines around it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct EditInput {
    #[serde(alias = "path", alias = "filePath", alias = "file")]
    file_path: String,
    /// The text to replace.
    #[serde(alias = "oldString", alias = "old_str", alias = "old_text")]
    old_string: String,
    #[serde(alias = "newString", alias = "new_str", alias = "new_text")]
    new_string: String,
    #[serde(default, alias = "replaceAll")]
    replace_all: Option<bool>,
}

/// The details of the result of an `edit` call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EditDetails {
    file_path: PathBuf,
    /// The matcher that found the text.
    strategy: &'static str,
    match_count: usize,
    /// The larger of the numbers of removed and added lines.
    lines_changed: usize,
    /// Unified diff.
    diff: String,
}

impl Tool for Edit {
    type Input = EditInput;
    type Details = EditDetails;
    const NAME: &'static str = "edit";
    const LABEL: &'static str = "Edit file";
    const ALIASES: &'static [&'static str] = &["fs_edit", "str_replace"];
    const KIND: ToolKind = ToolKind::Edit;
    const PROPERTIES: ToolProperties = ToolProperties { edits_files: true, shows_content: true, ..ToolProperties::NONE };
    const ACCESS: &'static [AccessShape] = AccessShape::WRITE;

    fn title(&self, input: &EditInput, workspace: &Workspace) -> String {
        format!("Edit {}", workspace.show(&workspace.resolve(&input.file_path).path))
    }

    fn locations(&self, input: &EditInput, workspace: &Workspace) -> Vec<Location> {
        vec![Location { path: workspace.resolve(&input.file_path).path, line: None }]
    }

    fn access(&self, input: &EditInput) -> Access {
        Access::write(&input.file_path)
    }

    async fn preview(&self, input: &EditInput, context: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        let input = input.clone();
        change::preview(context, move |context| plan(&input, context)).await
    }

    async fn run(&self, input: EditInput, context: &ToolContext) -> Result<ToolOutput<EditDetails>, ToolError> {
        let path = input.file_path.clone();
        change::run(context, [path.as_str()], move |context| plan(&input, context)).await
    }
}

fn plan(input: &EditInput, context: &ToolContext) -> Result<ChangePlan<EditDetails>, ToolError> {
    let resolved = context.workspace.resolve(&input.file_path);
    let shown = context.workspace.show(&resolved.path);
    let old = match input.old_string.is_empty() {
        true => change::current(&resolved, context)?,
        false => change::current_text(&resolved, context)?,
    };
    let edited = match &old.bytes {
        None if !input.old_string.is_empty() => {
            return Err(ToolError(format!("{shown} does not exist{}", similar_name(&resolved))));
        }
        Some(content) if !content.is_empty() || !input.old_string.is_empty() => {
            edit(content, &input.old_string, &input.new_string, input.replace_all.unwrap_or(false))
                .map_err(|error| ToolError(error.message(&shown, content)))?
        }
        None | Some(_) => {
            overwrite::check_numbers(&resolved, &input.new_string, context)?;
            EditOutcome { bytes: input.new_string.clone().into_bytes(), strategy: "exact", match_count: 1, line: 1 }
        }
    };
    let EditOutcome { bytes, strategy, match_count, line } = edited;
    let change = PlannedChange { line: Some(line), ..PlannedChange::new(resolved, context, old, Some(bytes)) };
    let text = match match_count {
        1 => format!("edited {shown} at line {line}"),
        count => format!("edited {shown} at {count} places, the first at line {line}"),
    };
    let note = if strategy == WITHOUT_NUMBERS {
        "; the line numbers in old_string are not text of the file and were left out"
    } else {
        ""
    };
    let diff = change.diff();
    let (file_path, lines_changed) = (change.resolved.path.clone(), diff.removed.max(diff.added));
    let details = EditDetails { file_path, strategy, match_count, lines_changed, diff: diff.text };
    Ok(ChangePlan { changes: vec![change], text: text + note, details })
}
