//! `edit`: replaces text in a file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::content::{Location, ToolContent, ToolKind};
use crate::patch::edit::{EditOutcome, edit};
use crate::permission::Access;
use crate::toolkit::change::{self, Change, Plan};
use crate::toolkit::{Output, Tool, ToolContext, ToolError, ToolProperties};
use crate::workspace::Workspace;

pub struct Edit;

/// Replaces text in a file. old_string must be the file's exact text, without line numbers, and
/// unique unless replace_all is set; include enough lines around it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Input {
    #[serde(alias = "path", alias = "filePath", alias = "file")]
    file_path: String,
    /// Empty to create a file.
    #[serde(alias = "oldString", alias = "old_str", alias = "old_text")]
    old_string: String,
    #[serde(alias = "newString", alias = "new_str", alias = "new_text")]
    new_string: String,
    #[serde(default, alias = "replaceAll")]
    replace_all: Option<bool>,
}

impl Tool for Edit {
    type Input = Input;
    const NAME: &'static str = "edit";
    const ALIASES: &'static [&'static str] = &["fs_edit", "str_replace"];
    const KIND: ToolKind = ToolKind::Edit;
    const PROPERTIES: ToolProperties = ToolProperties { edits_files: true, shows_content: true, ..ToolProperties::NONE };

    fn title(&self, input: &Input, workspace: &Workspace) -> String {
        format!("Edit {}", workspace.show(&workspace.resolve(&input.file_path).path))
    }

    fn locations(&self, input: &Input, workspace: &Workspace) -> Vec<Location> {
        vec![Location { path: workspace.resolve(&input.file_path).path, line: None }]
    }

    fn access(&self, input: &Input) -> Access {
        Access::write(&input.file_path)
    }

    async fn preview(&self, input: &Input, context: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        let input = input.clone();
        change::preview(context, move |context| plan(&input, context)).await
    }

    /// details: `{filePath, strategy, matchCount, linesChanged, diff}`.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let path = input.file_path.clone();
        change::run(context, [path.as_str()], move |context| plan(&input, context)).await
    }
}

fn plan(input: &Input, context: &ToolContext) -> Result<Plan, ToolError> {
    let placed = context.workspace.resolve(&input.file_path);
    let shown = context.workspace.show(&placed.path);
    let old = match input.old_string.is_empty() {
        true => change::current(&placed, context)?,
        false => change::current_text(&placed, context)?,
    };
    let edited = match &old.bytes {
        None if !input.old_string.is_empty() => return Err(ToolError(format!("{shown} does not exist; use write to create it"))),
        Some(content) if !content.is_empty() || !input.old_string.is_empty() => {
            edit(content, &input.old_string, &input.new_string, input.replace_all.unwrap_or(false))
                .map_err(|error| ToolError(error.message(&shown)))?
        }
        None | Some(_) => EditOutcome { bytes: input.new_string.clone().into_bytes(), strategy: "exact", match_count: 1, line: 1 },
    };
    let EditOutcome { bytes, strategy, match_count, line } = edited;
    let change = Change { line: Some(line), ..Change::new(placed, context, old, Some(bytes)) };
    let text = match match_count {
        1 => format!("edited {shown} at line {line}"),
        count => format!("edited {shown} at {count} places, the first at line {line}"),
    };
    let diff = change.diff();
    let details = json!({
        "filePath": change.placed.path, "strategy": strategy, "matchCount": match_count, "linesChanged": diff.removed.max(diff.added),
        "diff": diff.text,
    });
    Ok(Plan { changes: vec![change], text, details })
}
