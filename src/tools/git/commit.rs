//! `git_commit`: what is staged, or some files as they are.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::changes::{self, Change};
use super::{Git, Said, pathspec, quoted, words};
use crate::content::{ToolContent, ToolKind};
use crate::limits;
use crate::permission::{Access, AccessKind};
use crate::tools::{Output, Tool, ToolContext, ToolError};
use crate::workspace::Workspace;

pub struct Commit;

/// Commits what is staged, or with `paths` just those files as they are now, new ones too.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Input {
    message: String,
    #[serde(default, alias = "files")]
    paths: Option<Vec<String>>,
}

impl Input {
    fn paths(&self) -> &[String] {
        self.paths.as_deref().unwrap_or_default()
    }

    /// As it would be typed; rules about commands speak of it.
    fn command(&self) -> String {
        let mut command = format!("git commit -m {}", quoted(&self.message));
        if !self.paths().is_empty() {
            command.push_str(" --");
        }
        self.paths().iter().for_each(|path| command.push_str(&format!(" {}", quoted(path))));
        command
    }
}

impl Tool for Commit {
    type Input = Input;
    const NAME: &'static str = "git_commit";
    const ALIASES: &'static [&'static str] = &[];
    const KIND: ToolKind = ToolKind::Execute;

    fn title(&self, input: &Input, _: &Workspace) -> String {
        let subject: String = input.message.lines().next().unwrap_or_default().chars().take(limits::BASH_TITLE_CHARS_MAX).collect();
        format!("Commit \"{subject}\"")
    }

    fn access(&self, input: &Input) -> Access {
        Access { kind: AccessKind::Exec, paths: input.paths().to_vec(), command: Some(input.command()), ..Access::none() }
    }

    async fn preview(&self, input: &Input, _: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        Ok(vec![ToolContent::text(input.command())])
    }

    /// details: `{commit, branch?, files: [{path, status, from?, insertions?, deletions?}]}`.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        if input.message.trim().is_empty() {
            return Err(ToolError::new("git_commit: message is empty; say what the commit does"));
        }
        let git = Git::open(context).await?;
        let said = commit(&git, &input).await?;
        let head = git.read(["rev-parse", "HEAD"]).await?.text();
        let branch = git.read(["branch", "--show-current"]).await?.text();
        let mut arguments: Vec<&str> = vec!["diff-tree", "-r", "--root", "--no-commit-id", "--diff-merges=first-parent"];
        arguments.extend(changes::FORM.iter().chain(&["--raw", "--numstat", "-z", "HEAD", "--"]));
        let mut files = changes::read(&git, &git.read(arguments).await?);
        files.truncate(limits::GIT_ENTRIES_MAX);
        let place = if branch.is_empty() { "a detached head".to_owned() } else { branch.clone() };
        let mut text = format!("committed {} on {place}\n", &head[..head.len().min(10)]);
        files.iter().map(Change::line).for_each(|line| text.push_str(&format!("  {line}\n")));
        let hooks = said.text();
        if !hooks.is_empty() {
            text.push_str(&format!("hooks said:\n{}\n", &hooks[..hooks.floor_char_boundary(limits::GIT_ERROR_BYTES_MAX)]));
        }
        text.push_str(&said.confinement);
        let mut details = json!({ "commit": head, "files": files });
        if !branch.is_empty() {
            details["branch"] = json!(branch);
        }
        Ok(Output::text(text, details))
    }
}

/// What hooks printed. When it fails, the index is as it was.
async fn commit(git: &Git<'_>, input: &Input) -> Result<Said, ToolError> {
    let paths: Vec<OsString> = input.paths().iter().map(|path| git.pathspec(path)).collect::<Result<_, _>>()?;
    // A commit of some files knows only those that git knows.
    let new = if paths.is_empty() { Vec::new() } else { unknown(git, &paths).await? };
    let failed = match add_and_commit(git, input, &paths, &new).await {
        Ok(said) => return Ok(said),
        Err(failed) => failed,
    };
    for part in parts(&new) {
        if let Err(error) = git.undo(words(&["reset", "--quiet", "--"], part)).await {
            return Err(ToolError(format!("{failed}\n[new files stay marked to be added; git reset takes that back: {error}]")));
        }
    }
    Err(failed)
}

/// Files that git does not know yet.
async fn unknown(git: &Git<'_>, paths: &[OsString]) -> Result<Vec<OsString>, ToolError> {
    let listed = git.read(words(&["ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--"], paths)).await?;
    if listed.cut {
        return Err(ToolError::new("git_commit: paths: too many new files; commit a part of them, or with git in bash"));
    }
    Ok(listed.fields().map(|path| pathspec("top,literal", path)).collect())
}

async fn add_and_commit(git: &Git<'_>, input: &Input, paths: &[OsString], new: &[OsString]) -> Result<Said, ToolError> {
    for part in parts(new) {
        let added = git.change(words(&["add", "--intent-to-add", "--"], part)).await?;
        if added.code != 0 {
            return Err(git.failed(&added));
        }
    }
    let only: &[&str] = if paths.is_empty() { &[] } else { &["--only", "--"] };
    let said = git.change(words(&[&["commit", "--quiet", "--message", &input.message], only].concat(), paths)).await?;
    if said.code == 0 { Ok(said) } else { Err(refused(git, input, &said).await?) }
}

/// Why there was no commit.
async fn refused(git: &Git<'_>, input: &Input, said: &Said) -> Result<ToolError, ToolError> {
    let text = said.text();
    if text.contains("did not match any file(s) known to git") {
        for path in input.paths() {
            let asked = ["check-ignore", "--quiet", "--"].map(OsString::from).into_iter();
            if git.try_read(asked.chain([git.place(path)?.into()])).await?.code == 0 {
                let forced = "git add --force with bash, then git_commit, takes it";
                return Ok(ToolError(format!("{path} is ignored by git (.gitignore or the like); {forced}")));
            }
        }
    }
    let nothing = ["no changes added to commit", "nothing to commit", "nothing added to commit"];
    Ok(match input.paths() {
        _ if !text.is_empty() && !nothing.iter().any(|nothing| text.contains(nothing)) => git.failed(said),
        [] => ToolError::new("nothing is staged; give paths, or stage with git add in bash"),
        _ => ToolError::new("nothing changed in these paths"),
    })
}

/// As many paths at a time as a command takes.
fn parts(paths: &[OsString]) -> impl Iterator<Item = &[OsString]> {
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
