//! `write`: a whole file, at once or not at all.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::change::{self, Change};
use super::{Output, Tool, ToolContext, ToolError};
use crate::content::{Location, ToolContent, ToolKind};
use crate::permission::Access;
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

    fn title(&self, input: &Input, workspace: &Workspace) -> String {
        format!("Write {}", workspace.show(&workspace.resolve(&input.file_path).path))
    }

    fn locations(&self, input: &Input, workspace: &Workspace) -> Vec<Location> {
        vec![Location { path: workspace.resolve(&input.file_path).path, line: None }]
    }

    fn access(&self, input: &Input) -> Access {
        Access::write(&input.file_path)
    }

    async fn preview(&self, input: &Input, context: &ToolContext) -> Vec<ToolContent> {
        let (input, inner) = (input.clone(), context.clone());
        let change = context.look(move || plan(input, &inner)).await;
        change.map_or_else(|error| vec![ToolContent::text(error.0)], |change| vec![change.content()])
    }

    /// details: `{filePath, size, isNew, diff}`.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let lock = context.files.lock(&context.workspace.resolve(&input.file_path).real).await;
        let inner = context.clone();
        context
            .change(move || {
                let _lock = lock;
                let change = plan(input, &inner)?;
                change.apply(&inner)?;
                Ok(output(&change))
            })
            .await
    }
}

fn plan(input: Input, context: &ToolContext) -> Result<Change, ToolError> {
    let placed = context.workspace.resolve(&input.file_path);
    let old = change::current(&placed, context)?;
    Ok(Change { shown: context.workspace.show(&placed.path), placed, old, new: input.content.into_bytes() })
}

fn output(change: &Change) -> Output {
    let is_new = change.old.bytes.is_none();
    let size = change.new.len();
    let did = if is_new { "created" } else { "overwrote" };
    let details = json!({ "filePath": change.placed.path, "size": size, "isNew": is_new, "diff": change.diff().0 });
    Output {
        content: vec![change.content()],
        locations: vec![change.location(None)],
        ..Output::text(format!("{did} {} ({size} bytes)", change.shown), details)
    }
}
