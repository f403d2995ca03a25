//! `list`: shows a directory as a tree.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::{Location, ToolKind};
use crate::permission::Access;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use crate::workspace::{ResolvedPath, Workspace, one_line};

const LIST_ENTRIES_MAX: usize = 500;

pub(super) struct List;

/// Shows a directory as a tree, without hidden and git-ignored files.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListInput {
    /// Default: the working directory.
    #[serde(default, alias = "file_path", alias = "directory", alias = "dir")]
    path: Option<String>,
    /// Levels, default 3.
    #[serde(default, alias = "max_depth")]
    depth: Option<u64>,
}

const DEPTH: u64 = 3;

impl ListInput {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

/// The details of the result of a `list` call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ListDetails {
    path: PathBuf,
    /// Entries shown.
    entries: usize,
    truncated: bool,
}

impl Tool for List {
    type Input = ListInput;
    type Details = ListDetails;
    const NAME: &'static str = "list";
    const LABEL: &'static str = "List directory";
    const ALIASES: &'static [&'static str] = &["fs_list", "list_dir", "repo_tree"];
    const KIND: ToolKind = ToolKind::Search;
    const PROPERTIES: ToolProperties = ToolProperties { lists_files: true, ..ToolProperties::NONE };

    fn title(&self, input: &ListInput, workspace: &Workspace) -> String {
        format!("List {}", workspace.show(&workspace.resolve(input.path()).path))
    }

    fn locations(&self, input: &ListInput, workspace: &Workspace) -> Vec<Location> {
        vec![Location { path: workspace.resolve(input.path()).path, line: None }]
    }

    fn access(&self, input: &ListInput) -> Access {
        Access::read(input.path())
    }

    async fn run(&self, input: ListInput, context: &ToolContext) -> Result<ToolOutput<ListDetails>, ToolError> {
        let resolved = context.workspace.resolve(input.path());
        let inner = context.clone();
        context.search(move || list(&resolved, input.depth.unwrap_or(DEPTH).max(1), &inner)).await
    }
}

fn list(resolved: &ResolvedPath, depth: u64, context: &ToolContext) -> Result<ToolOutput<ListDetails>, ToolError> {
    std::fs::read_dir(&resolved.real).map_err(|error| context.failed("listing", &resolved.path, error))?;
    let mut text = format!("{}/\n", one_line(resolved.path.display().to_string()));
    let mut entries = 0;
    let mut truncated = false;
    let depth = usize::try_from(depth).unwrap_or(usize::MAX);
    context.walk(&resolved.real).depth_max(depth).in_order(|entry| {
        if entries == LIST_ENTRIES_MAX {
            truncated = true;
            return false;
        }
        entries += 1;
        let kind = entry.kind;
        text.push_str(&"  ".repeat(entry.depth));
        text.push_str(&one_line(entry.file_name().to_string_lossy().into_owned()));
        if kind.is_dir() {
            text.push('/');
        } else if let (true, Ok(target)) = (kind.is_symlink(), std::fs::read_link(&entry.path)) {
            text.push_str(&format!(" -> {}", one_line(target.display().to_string())));
        }
        text.push('\n');
        true
    });
    let note = match entries {
        0 => Some("empty, or all entries are hidden or ignored".into()),
        _ => truncated.then(|| format!("the first {entries} entries; list a subdirectory, reduce depth, or use glob")),
    };
    Ok(ToolOutput::text(text, ListDetails { path: resolved.path.clone(), entries, truncated }).notes(note))
}
