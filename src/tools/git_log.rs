//! `git_log`: shows the history of the current commit.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::ToolKind;
use crate::permission::Access;
use crate::toolkit::git::Git;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput};
use crate::workspace::Workspace;

/// Maximum number of commits in one `git_log` result.
const GIT_LOG_MAX: u64 = 200;

pub(super) struct GitLog;

/// Shows the latest commits, newest first.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GitLogInput {
    /// Default 20, at most 200.
    #[serde(default, alias = "limit", alias = "max_count")]
    count: Option<u64>,
    /// Only commits that changed this file or directory.
    #[serde(default, alias = "file_path")]
    path: Option<String>,
}

const COUNT: u64 = 20;

/// Fields of a commit, each terminated by NUL: id, author, date, refs that point to it, subject.
const FORMAT: &str = "--format=tformat:%H%x00%an%x00%aI%x00%D%x00%s";
const FIELDS: usize = 5;

/// The details of the result of a `git_log` call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GitLogDetails {
    /// Newest first.
    commits: Vec<Commit>,
}

/// A commit in the details of a `git_log`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Commit {
    /// The commit's id.
    commit: String,
    author: String,
    /// ISO 8601.
    date: String,
    /// Branches and tags that point to the commit, separated by commas.
    refs: String,
    /// First line of the message.
    subject: String,
}

impl Tool for GitLog {
    type Input = GitLogInput;
    type Details = GitLogDetails;
    const NAME: &'static str = "git_log";
    const LABEL: &'static str = "Show commits";
    const KIND: ToolKind = ToolKind::Read;

    fn title(&self, input: &GitLogInput, workspace: &Workspace) -> String {
        let path = input.path.as_ref().map(|path| format!(" of {}", workspace.show(&workspace.resolve(path).path)));
        format!("Git log{}", path.unwrap_or_default())
    }

    fn access(&self, input: &GitLogInput) -> Access {
        Access::read(input.path.as_deref().unwrap_or("."))
    }

    async fn run(&self, input: GitLogInput, context: &ToolContext) -> Result<ToolOutput<GitLogDetails>, ToolError> {
        let git = Git::open(context).await?;
        if git.try_read(["rev-parse", "--verify", "--quiet", "HEAD"]).await?.code != 0 {
            return Ok(ToolOutput::text("no commits yet\n", GitLogDetails { commits: Vec::new() }));
        }
        let count = input.count.unwrap_or(COUNT).clamp(1, GIT_LOG_MAX);
        let mut arguments = vec![
            OsString::from("log"),
            "-z".into(),
            format!("--max-count={count}").into(),
            "--decorate=short".into(),
            FORMAT.into(),
            "--".into(),
        ];
        arguments.extend(input.path.as_deref().map(|path| git.pathspec(path)).transpose()?);
        let output = git.read(arguments).await?;
        let fields: Vec<String> = output.fields().map(|field| String::from_utf8_lossy(field).into_owned()).collect();
        let mut text = String::new();
        let mut commits = Vec::new();
        for fields in fields.chunks_exact(FIELDS) {
            let [commit, author, date, refs, subject] = fields else { continue };
            let named = if refs.is_empty() { String::new() } else { format!(" ({refs})") };
            let day = date.get(..10).unwrap_or(date);
            text.push_str(&format!("{} {day} {author}{named}: {subject}\n", &commit[..commit.len().min(10)]));
            let [commit, author, date, refs, subject] = [commit, author, date, refs, subject].map(String::clone);
            commits.push(Commit { commit, author, date, refs, subject });
        }
        if commits.is_empty() {
            text.push_str("no commit changes this path\n");
        }
        Ok(ToolOutput::text(text, GitLogDetails { commits }))
    }
}
