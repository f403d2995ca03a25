//! `git_branch`: lists, creates and switches branches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::AccessShape;
use crate::content::{ToolContent, ToolKind};
use crate::limits;
use crate::permission::{Access, AccessKind};
use crate::toolkit::git::{Git, quoted};
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput};
use crate::workspace::Workspace;

pub(super) struct GitBranch;

/// Lists branches, creates one at the current commit (without switching to it), or switches to one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct GitBranchInput {
    action: BranchAction,
    #[serde(default, alias = "branch")]
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum BranchAction {
    List,
    Create,
    Switch,
}

/// Fields of a branch, each terminated by NUL: `*` for the current one, name, commit, upstream,
/// distance to the upstream, date, subject.
const FORMAT: &str = "--format=%(HEAD)%00%(refname:short)%00%(objectname:short)%00%(upstream:short)%00%(upstream:track,nobracket)%00\
                      %(committerdate:iso-strict)%00%(contents:subject)%00";
const FIELDS: usize = 7;

impl GitBranchInput {
    /// The git arguments for an action that changes the repository; `None` for `List`.
    fn change(&self) -> Option<[&str; 2]> {
        let name = self.name.as_deref().unwrap_or_default();
        match self.action {
            BranchAction::List => None,
            BranchAction::Create => Some(["branch", name]),
            BranchAction::Switch => Some(["switch", name]),
        }
    }
}

/// The details of the result of a `git_branch` call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GitBranchDetails {
    /// Only for `list`; the most recently committed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    branches: Option<Vec<Branch>>,
    /// Only for `list`: there are more branches.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// The current branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<String>,
}

/// A branch in the details of a `git_branch`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Branch {
    name: String,
    /// Abbreviated id.
    commit: String,
    /// Date of the commit, ISO 8601.
    date: String,
    /// First line of the commit's message.
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// Distance to the upstream, such as `ahead 1, behind 2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    track: Option<String>,
}

impl Tool for GitBranch {
    type Input = GitBranchInput;
    type Details = GitBranchDetails;
    const NAME: &'static str = "git_branch";
    const LABEL: &'static str = "Create or switch branch";
    const ALIASES: &'static [&'static str] = &[];
    const KIND: ToolKind = ToolKind::Execute;
    const ACCESS: &'static [AccessShape] = AccessShape::READ_OR_COMMAND;

    fn title(&self, input: &GitBranchInput, _: &Workspace) -> String {
        let name = input.name.as_deref().unwrap_or_default();
        match input.action {
            BranchAction::List => "List branches".into(),
            BranchAction::Create => format!("Create branch {name}"),
            BranchAction::Switch => format!("Switch to branch {name}"),
        }
    }

    fn access(&self, input: &GitBranchInput) -> Access {
        match input.change() {
            None => Access::read("."),
            Some([verb, name]) => {
                let command = Some(format!("git {verb} {}", quoted(name)));
                Access { kind: AccessKind::Exec, command, ..Access::none() }
            }
        }
    }

    async fn preview(&self, input: &GitBranchInput, _: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        Ok(self.access(input).command.map(ToolContent::text).into_iter().collect())
    }

    async fn run(&self, input: GitBranchInput, context: &ToolContext) -> Result<ToolOutput<GitBranchDetails>, ToolError> {
        let git = Git::open(context).await?;
        let Some([verb, name]) = input.change() else { return list(&git).await };
        if name.is_empty() {
            return Err(ToolError(format!("git_branch: name: missing; git {verb} requires the name of a branch")));
        }
        // git would parse a name with a leading `-` as an option.
        if name.starts_with('-') || git.try_read(["check-ref-format", "--branch", name]).await?.code != 0 {
            return Err(ToolError(format!("git_branch: name: {name:?} is not a valid branch name")));
        }
        let output = git.change([verb, name]).await?;
        if output.code != 0 {
            return Err(git.failed(&output));
        }
        let current = git.read(["branch", "--show-current"]).await?.text();
        let result =
            if verb == "branch" { format!("created {name}; still on {current}") } else { format!("switched to {current}") };
        Ok(ToolOutput::text(
            format!("{result}\n{}", output.sandbox_notes),
            GitBranchDetails { branches: None, truncated: None, current: Some(current) },
        ))
    }
}

/// The branches, the most recently committed first.
async fn list(git: &Git<'_>) -> Result<ToolOutput<GitBranchDetails>, ToolError> {
    let current = git.read(["branch", "--show-current"]).await?.text();
    let count = format!("--count={}", limits::GIT_ENTRIES_MAX + 1);
    let output = git.read(["for-each-ref", "--sort=-committerdate", &count, FORMAT, "refs/heads"]).await?;
    let fields: Vec<String> =
        output.fields().map(|field| String::from_utf8_lossy(field).trim_start_matches('\n').to_owned()).collect();
    let truncated = output.truncated || fields.len() / FIELDS > limits::GIT_ENTRIES_MAX;
    let mut text = String::new();
    let mut branches = Vec::new();
    for fields in fields.chunks_exact(FIELDS).take(limits::GIT_ENTRIES_MAX) {
        let [head, name, commit, upstream, track, date, subject] = fields else { continue };
        let tracking = match (upstream.is_empty(), track.is_empty()) {
            (_, false) => format!(" [{upstream}: {track}]"),
            (false, true) => format!(" [{upstream}]"),
            (true, true) => String::new(),
        };
        let mark = if head == "*" { '*' } else { ' ' };
        text.push_str(&format!("{mark} {name} {commit}{tracking} {subject}\n"));
        let present = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        branches.push(Branch {
            name: name.clone(),
            commit: commit.clone(),
            date: date.clone(),
            subject: subject.clone(),
            upstream: present(upstream),
            track: present(track),
        });
    }
    if branches.is_empty() {
        text.push_str(&format!("no commits yet; the first one will be on {current}\n"));
    }
    if truncated {
        text.push_str(&format!("[the {} newest; git branch --list PATTERN with bash shows others]\n", limits::GIT_ENTRIES_MAX));
    }
    let current = Some(current).filter(|current| !current.is_empty());
    Ok(ToolOutput::text(text, GitBranchDetails { branches: Some(branches), truncated: Some(truncated), current }))
}
