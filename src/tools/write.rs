//! `write`: creates or overwrites a file, atomically.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::content::{Location, ToolContent, ToolKind};
use crate::permission::Access;
use crate::toolkit::change::{self, Change, Plan};
use crate::toolkit::{Output, Tool, ToolContext, ToolError, ToolProperties};
use crate::workspace::Workspace;

pub struct Write;

/// Creates or overwrites a file. To change part of a file, use edit.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Input {
    #[serde(alias = "path", alias = "filePath", alias = "file")]
    file_path: String,
    #[serde(alias = "contents", alias = "text")]
    content: String,
}

impl Tool for Write {
    type Input = Input;
    const NAME: &'static str = "write";
    const ALIASES: &'static [&'static str] = &["fs_write", "write_file"];
    const KIND: ToolKind = ToolKind::Edit;
    const PROPERTIES: ToolProperties = ToolProperties { edits_files: true, ..ToolProperties::NONE };

    fn title(&self, input: &Input, workspace: &Workspace) -> String {
        format!("Write {}", workspace.show(&workspace.resolve(&input.file_path).path))
    }

    fn locations(&self, input: &Input, workspace: &Workspace) -> Vec<Location> {
        vec![Location { path: workspace.resolve(&input.file_path).path, line: None }]
    }

    fn access(&self, input: &Input) -> Access {
        Access::write(&input.file_path)
    }

    async fn preview(&self, input: &Input, context: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        let input = input.clone();
        change::preview(context, move |context| plan(input, context)).await
    }

    /// details: `{filePath, size, isNew, diff}`.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let path = input.file_path.clone();
        change::run(context, [path.as_str()], move |context| plan(input, context)).await
    }
}

fn plan(input: Input, context: &ToolContext) -> Result<Plan, ToolError> {
    let placed = context.workspace.resolve(&input.file_path);
    let old = change::current(&placed, context)?;
    let (is_new, size) = (old.bytes.is_none(), input.content.len());
    let change = Change::new(placed, context, old, Some(input.content.into_bytes()));
    let did = if is_new { "created" } else { "overwrote" };
    let details = json!({ "filePath": change.placed.path, "size": size, "isNew": is_new, "diff": change.diff().text });
    Ok(Plan { text: format!("{did} {} ({size} bytes)", change.shown), changes: vec![change], details })
}
