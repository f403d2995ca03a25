//! `edit`: one piece of a file replaced by another.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::change::{self, Change, Plan};
use super::{Output, Tool, ToolContext, ToolError};
use crate::content::{Location, ToolContent, ToolKind};
use crate::patch::edit::{EditError, Edited, edit};
use crate::permission::Access;
use crate::workspace::Workspace;

pub struct Edit;

/// Replaces text in a file. old_string must be the file's exact text, without line numbers, and occur once unless replace_all
/// is set; give enough lines around it.
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

    fn title(&self, input: &Input, workspace: &Workspace) -> String {
        format!("Edit {}", workspace.show(&workspace.resolve(&input.file_path).path))
    }

    fn locations(&self, input: &Input, workspace: &Workspace) -> Vec<Location> {
        vec![Location { path: workspace.resolve(&input.file_path).path, line: None }]
    }

    fn access(&self, input: &Input) -> Access {
        Access::write(&input.file_path)
    }

    async fn preview(&self, input: &Input, context: &ToolContext) -> Vec<ToolContent> {
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
    let old = change::current_text(&placed, context)?;
    let edited = match &old.bytes {
        None if !input.old_string.is_empty() => return Err(ToolError(format!("{shown} does not exist; use write to create it"))),
        Some(content) if !content.is_empty() || !input.old_string.is_empty() => {
            edit(content, &input.old_string, &input.new_string, input.replace_all.unwrap_or(false))
                .map_err(|error| explain(&error, &shown))?
        }
        None | Some(_) => Edited { bytes: input.new_string.clone().into_bytes(), strategy: "exact", match_count: 1, line: 1 },
    };
    let Edited { bytes, strategy, match_count, line } = edited;
    let change = Change { line: Some(line), ..Change::new(placed, context, old, Some(bytes)) };
    let text = match match_count {
        1 => format!("edited {shown} at line {line}"),
        count => format!("edited {shown} at {count} places, the first at line {line}"),
    };
    let (diff, lines_changed) = change.diff();
    let details = json!({
        "filePath": change.placed.path, "strategy": strategy, "matchCount": match_count, "linesChanged": lines_changed, "diff": diff,
    });
    Ok(Plan { changes: vec![change], text, details })
}

fn explain(error: &EditError, shown: &str) -> ToolError {
    ToolError(match error {
        EditError::Identical => "old_string and new_string are identical: there is nothing to change".into(),
        EditError::Empty => {
            format!("old_string is empty, but {shown} has content; give the text to replace, or use write to overwrite the file")
        }
        EditError::NotFound { nearest: None } => {
            format!("old_string was not found in {shown}; read the file and copy the text exactly")
        }
        EditError::NotFound { nearest: Some((number, text)) } => {
            format!(
                "old_string was not found in {shown}; the most similar line is {number}: `{}`; read the file and copy the text exactly",
                short(text)
            )
        }
        EditError::Several { lines } => {
            let places: Vec<String> = lines.iter().take(PLACES_MAX).map(usize::to_string).collect();
            let more = if lines.len() > PLACES_MAX { ", …" } else { "" };
            format!(
                "old_string was found {} times in {shown}, at lines {}{more}; add lines around it until it is unique, or set replace_all",
                lines.len(),
                places.join(", ")
            )
        }
    })
}

/// Line numbers that an error lists, and characters of a line that it quotes.
const PLACES_MAX: usize = 20;
const QUOTE_CHARS_MAX: usize = 200;

fn short(text: &str) -> String {
    text.trim().chars().take(QUOTE_CHARS_MAX).collect()
}
