//! `git_diff`: shows changes as a unified diff.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::ToolKind;
use crate::limits;
use crate::permission::Access;
use crate::toolkit::git::changes::{self, ChangedFile};
use crate::toolkit::git::{Git, pathspec, with_paths};
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use crate::workspace::Workspace;

/// Maximum size of the text in one `git_diff` result, in bytes.
const GIT_DIFF_BYTES_MAX: usize = 50 << 10;

pub(super) struct GitDiff;

/// Shows the unstaged changes as a unified diff, or with `staged` the staged ones.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GitDiffInput {
    #[serde(default, alias = "cached")]
    staged: Option<bool>,
    /// File or directory.
    #[serde(default, alias = "file_path")]
    path: Option<String>,
}

/// The details of the result of a `git_diff` call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GitDiffDetails {
    files: Vec<ChangedFile>,
    /// The diff or the list of files is not complete.
    truncated: bool,
}

impl Tool for GitDiff {
    type Input = GitDiffInput;
    type Details = GitDiffDetails;
    const NAME: &'static str = "git_diff";
    const LABEL: &'static str = "Show diff";
    const KIND: ToolKind = ToolKind::Search;
    const PROPERTIES: ToolProperties = ToolProperties { lists_files: true, ..ToolProperties::NONE };

    fn title(&self, input: &GitDiffInput, workspace: &Workspace) -> String {
        let staged = if input.staged == Some(true) { " of staged changes" } else { "" };
        let path = input.path.as_ref().map(|path| format!(" in {}", workspace.show(&workspace.resolve(path).path)));
        format!("Git diff{staged}{}", path.unwrap_or_default())
    }

    fn access(&self, input: &GitDiffInput) -> Access {
        Access::read(input.path.as_deref().unwrap_or("."))
    }

    async fn run(&self, input: GitDiffInput, context: &ToolContext) -> Result<ToolOutput<GitDiffDetails>, ToolError> {
        let git = Git::open(context).await?;
        let staged = input.staged == Some(true);
        let mut scope = git.scope(input.path.as_deref())?;
        let arguments = |format: &[&str], scope: &[OsString]| {
            let staged = if staged { &["--cached"][..] } else { &[] };
            with_paths(&[&["diff"], staged, &changes::DIFF_OPTIONS, format, &["--"]].concat(), scope)
        };
        let list = async |scope: &[OsString]| git.read(arguments(&["--raw", "--numstat", "-z"], scope)).await;
        let mut listed = list(&scope).await?;
        let mut files = changes::parse(&git, &listed);
        let hidden: Vec<&[u8]> = files.iter().flat_map(ChangedFile::raw_paths).filter(|path| git.hides(path)).collect();
        if !hidden.is_empty() {
            scope.extend(hidden.into_iter().map(|path| pathspec("top,literal,exclude", path)));
            listed = list(&scope).await?;
            files = changes::parse(&git, &listed);
        }
        if files.is_empty() {
            let message = if staged { "no staged changes\n" } else { "no unstaged changes; set staged to see staged ones\n" };
            return Ok(ToolOutput::text(message, GitDiffDetails { files, truncated: false }));
        }
        // If the list is truncated, files that are missing from it might be hidden by permission
        // rules, so no patch is shown.
        let patch = if listed.truncated { None } else { Some(git.read(arguments(&["--patch"], &scope)).await?) };
        let mut truncated = patch.as_ref().is_none_or(|patch| patch.truncated) || files.len() > limits::GIT_ENTRIES_MAX;
        let mut text = patch.map(|patch| patch.text() + "\n").unwrap_or_default();
        files.truncate(limits::GIT_ENTRIES_MAX);
        if text.len() > GIT_DIFF_BYTES_MAX {
            truncated = true;
            let head = text.floor_char_boundary(GIT_DIFF_BYTES_MAX);
            text.truncate(text[..head].rfind('\n').map_or(head, |end| end + 1));
        }
        if truncated {
            text.push_str("changed files:\n");
            files.iter().for_each(|file| text.push_str(&format!("  {}\n", file.line())));
        }
        let note = truncated.then(|| "truncated; set path to one of the changed files to see its changes".into());
        Ok(ToolOutput::text(text, GitDiffDetails { files, truncated }).notes(note))
    }
}
