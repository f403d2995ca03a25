//! `git_commit`: what is staged, or some files as they are.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::changes::{self, Change};
use super::{Git, quoted};
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
        let paths: Vec<String> = input.paths().iter().map(|path| git.pathspec(path)).collect::<Result<_, _>>()?;
        let said = commit(&git, &input.message, &paths).await?;
        let head = git.read(["rev-parse", "HEAD"]).await?.text();
        let branch = git.read(["branch", "--show-current"]).await?.text();
        let mut arguments: Vec<&str> = vec!["diff-tree", "-r", "--root", "--no-commit-id", "--diff-merges=first-parent"];
        arguments.extend(changes::FORM.iter().chain(&["--raw", "--numstat", "-z", "HEAD", "--"]));
        let mut files = changes::read(&git, &git.read(arguments).await?);
        files.truncate(limits::GIT_ENTRIES_MAX);
        let place = if branch.is_empty() { "a detached head".to_owned() } else { branch.clone() };
        let mut text = format!("committed {} on {place}\n", &head[..head.len().min(10)]);
        files.iter().map(Change::line).for_each(|line| text.push_str(&format!("  {line}\n")));
        if !said.is_empty() {
            text.push_str(&format!("hooks said:\n{said}\n"));
        }
        let mut details = json!({ "commit": head, "files": files });
        if !branch.is_empty() {
            details["branch"] = json!(branch);
        }
        Ok(Output::text(text, details))
    }
}

/// What hooks printed, cut where it is long.
async fn commit(git: &Git<'_>, message: &str, paths: &[String]) -> Result<String, ToolError> {
    let words =
        |words: &[&str], paths: &[String]| words.iter().map(ToString::to_string).chain(paths.iter().cloned()).collect::<Vec<_>>();
    // A commit of some files knows only those that git knows.
    let mut new = Vec::new();
    if !paths.is_empty() {
        let listed = git.read(words(&["ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--"], paths)).await?;
        new.extend(listed.fields().map(|path| format!(":(top,literal){}", String::from_utf8_lossy(path))));
    }
    if !new.is_empty() {
        let added = git.change(words(&["add", "--intent-to-add", "--"], &new)).await?;
        if added.code != 0 {
            return Err(git.failed(&added));
        }
    }
    let mut arguments = words(&["commit", "--quiet", "--message", message], &[]);
    if !paths.is_empty() {
        arguments.extend(words(&["--only", "--"], paths));
    }
    let said = git.change(arguments).await;
    match said {
        Ok(said) if said.code == 0 => {
            let text = said.text();
            Ok(text[..text.floor_char_boundary(limits::GIT_ERROR_BYTES_MAX)].to_owned())
        }
        said => {
            if !new.is_empty() {
                git.change(words(&["reset", "--quiet", "--"], &new)).await?;
            }
            let said = said?;
            let text = said.text();
            if text.is_empty() || text.contains("no changes added to commit") || text.contains("nothing to commit") {
                return Err(ToolError::new("nothing is staged; give paths, or stage with git add in bash"));
            }
            Err(git.failed(&said))
        }
    }
}
