//! `git_commit`: commits the staged changes, or the current state of given files.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::AccessShape;
use crate::content::{ToolContent, ToolKind};
use crate::limits;
use crate::permission::{Access, AccessKind};
use crate::toolkit::git::changes::{self, ChangedFile};
use crate::toolkit::git::{Git, GitOutput, pathspec, quoted, with_paths};
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput};
use crate::workspace::Workspace;

pub(super) struct GitCommit;

/// Commits the staged changes, or with `paths` just these files as they are now, new ones too.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct GitCommitInput {
    message: String,
    #[serde(default, alias = "files")]
    paths: Option<Vec<String>>,
}

impl GitCommitInput {
    fn paths(&self) -> &[String] {
        self.paths.as_deref().unwrap_or_default()
    }

    /// Returns the equivalent shell command, which is matched against the permission rules for
    /// commands.
    fn command(&self) -> String {
        let mut command = format!("git commit -m {}", quoted(&self.message));
        if !self.paths().is_empty() {
            command.push_str(" --");
        }
        self.paths().iter().for_each(|path| command.push_str(&format!(" {}", quoted(path))));
        command
    }
}

/// The details of the result of a `git_commit` call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GitCommitDetails {
    /// Id of the new commit.
    commit: String,
    files: Vec<ChangedFile>,
    /// Absent for a detached head.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
}

impl Tool for GitCommit {
    type Input = GitCommitInput;
    type Details = GitCommitDetails;
    const NAME: &'static str = "git_commit";
    const LABEL: &'static str = "Commit";
    const KIND: ToolKind = ToolKind::Execute;
    const ACCESS: &'static [AccessShape] = AccessShape::COMMAND;

    fn title(&self, input: &GitCommitInput, _: &Workspace) -> String {
        let subject: String = input.message.lines().next().unwrap_or_default().chars().take(limits::BASH_TITLE_CHARS_MAX).collect();
        format!("Commit \"{subject}\"")
    }

    fn access(&self, input: &GitCommitInput) -> Access {
        Access { kind: AccessKind::Exec, paths: input.paths().to_vec(), command: Some(input.command()), ..Access::none() }
    }

    async fn preview(&self, input: &GitCommitInput, _: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        Ok(vec![ToolContent::text(input.command())])
    }

    async fn run(&self, input: GitCommitInput, context: &ToolContext) -> Result<ToolOutput<GitCommitDetails>, ToolError> {
        if input.message.trim().is_empty() {
            return Err(ToolError::new("git_commit: message is empty; describe the change"));
        }
        let git = Git::open(context).await?;
        let committed = commit(&git, &input).await?;
        let head = git.read(["rev-parse", "HEAD"]).await?.text();
        let branch = git.read(["branch", "--show-current"]).await?.text();
        let mut arguments: Vec<&str> = vec!["diff-tree", "-r", "--root", "--no-commit-id", "--diff-merges=first-parent"];
        arguments.extend(changes::DIFF_OPTIONS.iter().chain(&["--raw", "--numstat", "-z", "HEAD", "--"]));
        let mut files = changes::parse(&git, &git.read(arguments).await?);
        files.truncate(limits::GIT_ENTRIES_MAX);
        let target = if branch.is_empty() { "a detached head".to_owned() } else { branch.clone() };
        let mut text = format!("committed {} on {target}\n", &head[..head.len().min(10)]);
        files.iter().map(ChangedFile::line).for_each(|line| text.push_str(&format!("  {line}\n")));
        let hooks = committed.text();
        if !hooks.is_empty() {
            text.push_str(&format!("output of hooks:\n{}\n", &hooks[..hooks.floor_char_boundary(limits::GIT_ERROR_BYTES_MAX)]));
        }
        let branch = Some(branch).filter(|branch| !branch.is_empty());
        let details = GitCommitDetails { commit: head, files, branch };
        let notes = committed.sandbox_notes;
        let shown = format!("{text}{}", notes.person());
        Ok(ToolOutput::text(text, details).notes(notes.model).shown_as(shown))
    }
}

/// Commits, and returns the output of the hooks. If the commit fails, the index is restored.
async fn commit(git: &Git<'_>, input: &GitCommitInput) -> Result<GitOutput, ToolError> {
    let paths: Vec<OsString> = input.paths().iter().map(|path| git.pathspec(path)).collect::<Result<_, _>>()?;
    // A commit with paths includes tracked files only, so new files are added first.
    let new = if paths.is_empty() { Vec::new() } else { untracked(git, &paths).await? };
    let failure = match add_and_commit(git, input, &paths, &new).await {
        Ok(output) => return Ok(output),
        Err(failure) => failure,
    };
    for batch in batches(&new) {
        if let Err(error) = git.undo(with_paths(&["reset", "--quiet", "--"], batch)).await {
            return Err(ToolError(format!("{failure}\n[new files are still marked as added; git reset reverts that: {error}]")));
        }
    }
    Err(failure)
}

/// Pathspecs of the untracked files below `paths`, without ignored ones.
async fn untracked(git: &Git<'_>, paths: &[OsString]) -> Result<Vec<OsString>, ToolError> {
    let listed = git.read(with_paths(&["ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--"], paths)).await?;
    if listed.truncated {
        return Err(ToolError::new("git_commit: paths: too many new files; commit fewer files at a time, or use git with bash"));
    }
    Ok(listed.fields().map(|path| pathspec("top,literal", path)).collect())
}

async fn add_and_commit(
    git: &Git<'_>,
    input: &GitCommitInput,
    paths: &[OsString],
    new: &[OsString],
) -> Result<GitOutput, ToolError> {
    for batch in batches(new) {
        let added = git.change(with_paths(&["add", "--intent-to-add", "--"], batch)).await?;
        if added.code != 0 {
            return Err(git.failed(&added));
        }
    }
    let only: &[&str] = if paths.is_empty() { &[] } else { &["--only", "--"] };
    let output = git.change(with_paths(&[&["commit", "--quiet", "--message", &input.message], only].concat(), paths)).await?;
    if output.code == 0 { Ok(output) } else { Err(commit_error(git, input, &output).await?) }
}

async fn commit_error(git: &Git<'_>, input: &GitCommitInput, output: &GitOutput) -> Result<ToolError, ToolError> {
    let text = output.text();
    if text.contains("did not match any file(s) known to git") {
        for path in input.paths() {
            let check = ["check-ignore", "--quiet", "--"].map(OsString::from).into_iter();
            if git.try_read(check.chain([git.locate(path)?.into()])).await?.code == 0 {
                let advice = "to commit it, run git add --force with bash, then git_commit";
                return Ok(ToolError(format!("{path} is ignored by git (.gitignore or similar); {advice}")));
            }
        }
    }
    let nothing = ["no changes added to commit", "nothing to commit", "nothing added to commit"];
    Ok(match input.paths() {
        _ if !text.is_empty() && !nothing.iter().any(|nothing| text.contains(nothing)) => git.failed(output),
        [] => ToolError::new("nothing is staged; set paths, or run git add with bash"),
        _ => ToolError::new("these paths have no changes"),
    })
}

/// Splits paths into lists that each fit on one command line.
fn batches(paths: &[OsString]) -> impl Iterator<Item = &[OsString]> {
    let mut rest = paths;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |path: &&OsString| {
            bytes += path.len();
            bytes <= limits::GIT_PATHS_BYTES_MAX
        };
        let (part, after) = rest.split_at(rest.iter().take_while(fits).count().max(1).min(rest.len()));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}
