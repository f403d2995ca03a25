//! `git_log`: shows the history of the current commit.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::content::ToolKind;
use crate::limits;
use crate::permission::Access;
use crate::toolkit::git::Git;
use crate::toolkit::{Output, Tool, ToolContext, ToolError};
use crate::workspace::Workspace;

pub struct GitLog;

/// Shows the latest commits, newest first.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// Default 20, at most 200.
    #[serde(default, alias = "limit", alias = "max_count")]
    count: Option<u64>,
    /// Show only commits that changed this file or directory.
    #[serde(default, alias = "file_path")]
    path: Option<String>,
}

const COUNT: u64 = 20;

/// Fields of a commit, each terminated by NUL: id, author, date, refs that point to it, subject.
const FORMAT: &str = "--format=tformat:%H%x00%an%x00%aI%x00%D%x00%s";
const FIELDS: usize = 5;

impl Tool for GitLog {
    type Input = Input;
    const NAME: &'static str = "git_log";
    const ALIASES: &'static [&'static str] = &[];
    const KIND: ToolKind = ToolKind::Read;

    fn title(&self, input: &Input, workspace: &Workspace) -> String {
        let path = input.path.as_ref().map(|path| format!(" of {}", workspace.show(&workspace.resolve(path).path)));
        format!("Git log{}", path.unwrap_or_default())
    }

    fn access(&self, input: &Input) -> Access {
        Access::read(input.path.as_deref().unwrap_or("."))
    }

    /// details: `{commits: [{commit, author, date, refs, subject}]}`; dates are ISO 8601.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let git = Git::open(context).await?;
        let none = || Output::text("no commits yet\n", json!({ "commits": [] }));
        if git.try_read(["rev-parse", "--verify", "--quiet", "HEAD"]).await?.code != 0 {
            return Ok(none());
        }
        let count = input.count.unwrap_or(COUNT).clamp(1, limits::GIT_LOG_MAX);
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
            commits.push(json!({ "commit": commit, "author": author, "date": date, "refs": refs, "subject": subject }));
        }
        if commits.is_empty() {
            text.push_str("no commit changes this path\n");
        }
        Ok(Output::text(text, json!({ "commits": commits })))
    }
}
