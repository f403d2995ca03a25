//! `git_branch`: lists, creates and switches branches, and sets upstreams and remotes, which are in
//! git's configuration, where sandboxed commands cannot write.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::config::AccessShape;
use crate::content::{ToolContent, ToolKind};
use crate::limits;
use crate::permission::{Access, AccessKind};
use crate::toolkit::git::{Git, quoted};
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput};
use crate::workspace::Workspace;

pub(super) struct GitBranch;

/// Lists branches, creates one at the current commit (without switching to it), switches to one,
/// sets its upstream (target: origin/main), or sets the URL of a remote.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct GitBranchInput {
    action: BranchAction,
    #[serde(default, alias = "branch")]
    name: Option<String>,
    #[serde(default, alias = "upstream", alias = "url")]
    target: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum BranchAction {
    List,
    Create,
    Switch,
    SetUpstream,
    SetRemote,
}

/// Fields of a branch, each terminated by NUL: `*` for the current one, name, commit, upstream,
/// distance to the upstream, date, subject.
const FORMAT: &str = "--format=%(HEAD)%00%(refname:short)%00%(objectname:short)%00%(upstream:short)%00%(upstream:track,nobracket)%00\
                      %(committerdate:iso-strict)%00%(contents:subject)%00";
const FIELDS: usize = 7;

/// Schemes of the URLs of remotes. Others start programs.
const SCHEMES: [&str; 4] = ["https://", "http://", "ssh://", "git://"];

impl GitBranchInput {
    /// Returns the git arguments for an action that changes the repository; `None` for `List`.
    fn change(&self) -> Option<Vec<&str>> {
        let (name, target) = (self.name.as_deref().unwrap_or_default(), self.target.as_deref().unwrap_or_default());
        match self.action {
            BranchAction::List => None,
            BranchAction::Create => Some(vec!["branch", name]),
            BranchAction::Switch => Some(vec!["switch", name]),
            BranchAction::SetUpstream => Some(vec!["branch", "--set-upstream-to", target, name]),
            BranchAction::SetRemote => Some(vec!["remote", "set-url", name, target]),
        }
    }

    /// Returns the command line of an action that changes the repository; `None` for `List`.
    fn command_line(&self) -> Option<String> {
        let words: Vec<String> = self.change()?.into_iter().map(quoted).collect();
        Some(format!("git {}", words.join(" ")))
    }

    /// Returns whether the action changes git's configuration.
    fn configures(&self) -> bool {
        matches!(self.action, BranchAction::SetUpstream | BranchAction::SetRemote)
    }

    /// Checks the texts of the input. Git would parse one with a leading `-` as an option.
    async fn check(&self, git: &Git<'_>) -> Result<(), ToolError> {
        let invalid = |field: &str, text: &str, what: &str| Err(ToolError(format!("git_branch: {field}: {text:?} is not {what}")));
        let (name, target) = (self.name.as_deref().unwrap_or_default(), self.target.as_deref().unwrap_or_default());
        if name.is_empty() {
            return Err(ToolError::new("git_branch: name: missing; this action requires the name of a branch or remote"));
        }
        let is_branch = async |text: &str| {
            let checked = git.try_read(["check-ref-format", "--branch", text]).await;
            checked.map(|output| !text.starts_with('-') && output.code == 0)
        };
        if !is_branch(name).await? {
            return invalid(
                "name",
                name,
                if self.action == BranchAction::SetRemote { "a valid name" } else { "a valid branch name" },
            );
        }
        match self.action {
            BranchAction::SetUpstream if !is_branch(target).await? => invalid("target", target, "a valid branch name"),
            BranchAction::SetRemote if !is_address(target) => invalid("target", target, "an https, ssh or git URL"),
            _ => Ok(()),
        }
    }
}

/// Returns whether a text is the URL of a remote, or `user@host:path` (git-fetch(1), GIT URLS).
fn is_address(text: &str) -> bool {
    let is_plain = |name: &str| name.starts_with(char::is_alphanumeric) && !name.contains(['/', ':']);
    let has_scheme =
        SCHEMES.iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| rest.starts_with(char::is_alphanumeric)));
    let short = text.split_once(':').filter(|(_, path)| !path.starts_with(':'));
    let is_short = short.and_then(|(place, _)| place.split_once('@')).is_some_and(|(user, host)| is_plain(user) && is_plain(host));
    (has_scheme || is_short) && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}

/// The details of the result of a `git_branch` call.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GitBranchDetails {
    /// Only for `list`; the most recently committed first.
    branches: Option<Vec<Branch>>,
    /// Only for `list`: there are more branches.
    truncated: Option<bool>,
    /// The current branch.
    current: Option<String>,
}

/// A branch in the details of a `git_branch`.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Branch {
    name: String,
    /// Abbreviated id.
    commit: String,
    /// Date of the commit, ISO 8601.
    date: String,
    /// First line of the commit's message.
    subject: String,
    upstream: Option<String>,
    /// Distance to the upstream, such as `ahead 1, behind 2`.
    track: Option<String>,
}

impl Tool for GitBranch {
    type Input = GitBranchInput;
    type Details = GitBranchDetails;
    const NAME: &'static str = "git_branch";
    const LABEL: &'static str = "Create or switch branch";
    const KIND: ToolKind = ToolKind::Execute;
    const ACCESS: &'static [AccessShape] = AccessShape::READ_COMMAND_OR_WRITE;

    fn title(&self, input: &GitBranchInput, _: &Workspace) -> String {
        let name = input.name.as_deref().unwrap_or_default();
        match input.action {
            BranchAction::List => "List branches".into(),
            BranchAction::Create => format!("Create branch {name}"),
            BranchAction::Switch => format!("Switch to branch {name}"),
            BranchAction::SetUpstream => format!("Set the upstream of branch {name}"),
            BranchAction::SetRemote => format!("Set the URL of remote {name}"),
        }
    }

    fn access(&self, input: &GitBranchInput) -> Access {
        match input.command_line() {
            None => Access::read("."),
            // Writing this file requires permission in every mode.
            Some(_) if input.configures() => Access::write(".git/config"),
            command => Access { kind: AccessKind::Exec, command, ..Access::none() },
        }
    }

    async fn preview(&self, input: &GitBranchInput, _: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        Ok(input.command_line().map(ToolContent::text).into_iter().collect())
    }

    async fn run(&self, input: GitBranchInput, context: &ToolContext) -> Result<ToolOutput<GitBranchDetails>, ToolError> {
        let git = Git::open(context).await?;
        let Some(arguments) = input.change() else { return list(&git).await };
        input.check(&git).await?;
        let output =
            if input.configures() { git.configure(arguments.clone()).await? } else { git.change(arguments.clone()).await? };
        // `remote set-url` fails for a remote that does not exist.
        let output = match (input.action, output.code) {
            (BranchAction::SetRemote, 1..) => git.configure([&["remote", "add"], &arguments[2..]].concat()).await?,
            _ => output,
        };
        if output.code != 0 {
            return Err(git.failed(&output));
        }
        let current = git.read(["branch", "--show-current"]).await?.text();
        let name = input.name.as_deref().unwrap_or_default();
        let result = match input.action {
            BranchAction::List | BranchAction::Switch => format!("switched to {current}"),
            BranchAction::Create => format!("created {name}; still on {current}"),
            BranchAction::SetUpstream | BranchAction::SetRemote => {
                format!("{name}: set to {}", input.target.as_deref().unwrap_or_default())
            }
        };
        let (details, notes) = (GitBranchDetails { branches: None, truncated: None, current: Some(current) }, output.sandbox_notes);
        let shown = format!("{result}\n{}", notes.person());
        Ok(ToolOutput::text(result + "\n", details).notes(notes.model).shown_as(shown))
    }
}

/// Lists the branches, the most recently committed first.
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
    let most = limits::GIT_ENTRIES_MAX;
    let note = truncated.then(|| format!("the {most} newest; git branch --list PATTERN with bash shows others"));
    let current = Some(current).filter(|current| !current.is_empty());
    Ok(ToolOutput::text(text, GitBranchDetails { branches: Some(branches), truncated: Some(truncated), current }).notes(note))
}
