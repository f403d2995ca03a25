//! `git_diff`: what changed, as a unified diff.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::changes::{self, Change};
use super::{Git, pathspec, words};
use crate::content::ToolKind;
use crate::limits;
use crate::permission::Access;
use crate::tools::{Output, Tool, ToolContext, ToolError};
use crate::workspace::Workspace;

pub struct Diff;

/// Shows unstaged changes as a unified diff, or with `staged` those that a commit would take.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    #[serde(default, alias = "cached")]
    staged: Option<bool>,
    /// File or directory.
    #[serde(default, alias = "file_path")]
    path: Option<String>,
}

impl Tool for Diff {
    type Input = Input;
    const NAME: &'static str = "git_diff";
    const ALIASES: &'static [&'static str] = &[];
    const KIND: ToolKind = ToolKind::Search;

    fn title(&self, input: &Input, workspace: &Workspace) -> String {
        let staged = if input.staged == Some(true) { " of what is staged" } else { "" };
        let path = input.path.as_ref().map(|path| format!(" in {}", workspace.show(&workspace.resolve(path).path)));
        format!("Git diff{staged}{}", path.unwrap_or_default())
    }

    fn access(&self, input: &Input) -> Access {
        Access::read(input.path.as_deref().unwrap_or("."))
    }

    /// details: `{files: [{path, status, from?, insertions?, deletions?}], truncated}`.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let git = Git::open(context).await?;
        let staged = input.staged == Some(true);
        let mut scope = git.scope(input.path.as_deref())?;
        let arguments = |form: &[&str], scope: &[OsString]| {
            let staged = if staged { &["--cached"][..] } else { &[] };
            words(&[&["diff"], staged, &changes::FORM, form, &["--"]].concat(), scope)
        };
        let list = async |scope: &[OsString]| git.read(arguments(&["--raw", "--numstat", "-z"], scope)).await;
        let mut said = list(&scope).await?;
        let mut files = changes::read(&git, &said);
        let hidden: Vec<&[u8]> = files.iter().flat_map(Change::names).filter(|name| git.hides(name)).collect();
        if !hidden.is_empty() {
            scope.extend(hidden.into_iter().map(|name| pathspec("top,literal,exclude", name)));
            said = list(&scope).await?;
            files = changes::read(&git, &said);
        }
        if files.is_empty() {
            let other = if staged { "staged changes" } else { "unstaged changes; staged: true shows what is staged" };
            return Ok(Output::text(format!("no {other}\n"), json!({ "files": [], "truncated": false })));
        }
        // Of what was not listed nobody knows whether it is hidden.
        let patch = if said.cut { None } else { Some(git.read(arguments(&["--patch"], &scope)).await?) };
        let mut truncated = patch.as_ref().is_none_or(|patch| patch.cut) || files.len() > limits::GIT_ENTRIES_MAX;
        let mut text = patch.map(|patch| patch.text() + "\n").unwrap_or_default();
        files.truncate(limits::GIT_ENTRIES_MAX);
        if text.len() > limits::GIT_DIFF_BYTES_MAX {
            truncated = true;
            let head = text.floor_char_boundary(limits::GIT_DIFF_BYTES_MAX);
            text.truncate(text[..head].rfind('\n').map_or(head, |end| end + 1));
        }
        if truncated {
            text.push_str("[truncated; these differ, and path shows one of them:]\n");
            files.iter().for_each(|file| text.push_str(&format!("{}\n", file.line())));
        }
        Ok(Output::text(text, json!({ "files": files, "truncated": truncated })))
    }
}
