//! `git_branch`: lists branches, makes one, switches to one.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Git, quoted};
use crate::content::{ToolContent, ToolKind};
use crate::limits;
use crate::permission::{Access, AccessKind};
use crate::tools::{Output, Tool, ToolContext, ToolError};
use crate::workspace::Workspace;

pub struct Branch;

/// Lists branches, creates one at the current commit (without switching to it), or switches to one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Input {
    action: Action,
    #[serde(default, alias = "branch")]
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    List,
    Create,
    Switch,
}

/// Fields of a branch, each ended by NUL: `*` for the current one, its name, commit, upstream, how far apart they are, date, subject.
const FORMAT: &str = "--format=%(HEAD)%00%(refname:short)%00%(objectname:short)%00%(upstream:short)%00%(upstream:track,nobracket)%00\
                      %(committerdate:iso-strict)%00%(contents:subject)%00";
const FIELDS: usize = 7;

impl Input {
    /// What changes the repository, as it would be typed; none when it only lists.
    fn words(&self) -> Option<[&str; 2]> {
        let name = self.name.as_deref().unwrap_or_default();
        match self.action {
            Action::List => None,
            Action::Create => Some(["branch", name]),
            Action::Switch => Some(["switch", name]),
        }
    }
}

impl Tool for Branch {
    type Input = Input;
    const NAME: &'static str = "git_branch";
    const ALIASES: &'static [&'static str] = &[];
    const KIND: ToolKind = ToolKind::Execute;

    fn title(&self, input: &Input, _: &Workspace) -> String {
        let name = input.name.as_deref().unwrap_or_default();
        match input.action {
            Action::List => "List branches".into(),
            Action::Create => format!("Create branch {name}"),
            Action::Switch => format!("Switch to branch {name}"),
        }
    }

    fn access(&self, input: &Input) -> Access {
        match input.words() {
            None => Access::read("."),
            Some([verb, name]) => {
                let command = Some(format!("git {verb} {}", quoted(name)));
                Access { kind: AccessKind::Exec, command, ..Access::none() }
            }
        }
    }

    async fn preview(&self, input: &Input, _: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        Ok(self.access(input).command.map(ToolContent::text).into_iter().collect())
    }

    /// details: `{current?, branches?: [{name, commit, upstream?, track?, date, subject}], truncated?}`; the list comes with `list` alone.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let git = Git::open(context).await?;
        let Some([verb, name]) = input.words() else { return list(&git).await };
        if name.is_empty() {
            return Err(ToolError(format!("git_branch: name: missing; git {verb} needs the name of a branch")));
        }
        // Such a name would be an option.
        if name.starts_with('-') || git.try_read(["check-ref-format", "--branch", name]).await?.code != 0 {
            return Err(ToolError(format!("git_branch: name: {name:?} cannot be the name of a branch")));
        }
        let said = git.change([verb, name]).await?;
        if said.code != 0 {
            return Err(git.failed(&said));
        }
        let current = git.read(["branch", "--show-current"]).await?.text();
        let did = if verb == "branch" { format!("created {name}; still on {current}") } else { format!("switched to {current}") };
        Ok(Output::text(format!("{did}\n{}", said.confinement), json!({ "current": current })))
    }
}

async fn list(git: &Git<'_>) -> Result<Output, ToolError> {
    let current = git.read(["branch", "--show-current"]).await?.text();
    let most = format!("--count={}", limits::GIT_ENTRIES_MAX + 1);
    let said = git.read(["for-each-ref", "--sort=-committerdate", &most, FORMAT, "refs/heads"]).await?;
    let fields: Vec<String> =
        said.fields().map(|field| String::from_utf8_lossy(field).trim_start_matches('\n').to_owned()).collect();
    let truncated = said.cut || fields.len() / FIELDS > limits::GIT_ENTRIES_MAX;
    let mut text = String::new();
    let mut branches = Vec::new();
    for fields in fields.chunks_exact(FIELDS).take(limits::GIT_ENTRIES_MAX) {
        let [head, name, commit, upstream, track, date, subject] = fields else { continue };
        let mut branch = json!({ "name": name, "commit": commit, "date": date, "subject": subject });
        let mut apart = String::new();
        if !upstream.is_empty() {
            branch["upstream"] = json!(upstream);
            apart = format!(" [{upstream}]");
        }
        if !track.is_empty() {
            branch["track"] = json!(track);
            apart = format!(" [{upstream}: {track}]");
        }
        let mark = if head == "*" { '*' } else { ' ' };
        text.push_str(&format!("{mark} {name} {commit}{apart} {subject}\n"));
        branches.push(branch);
    }
    if branches.is_empty() {
        text.push_str(&format!("no commits yet; the first one will be on {current}\n"));
    }
    if truncated {
        text.push_str(&format!("[the {} newest; git branch --list PATTERN with bash shows others]\n", limits::GIT_ENTRIES_MAX));
    }
    let mut details = json!({ "branches": branches, "truncated": truncated });
    if !current.is_empty() {
        details["current"] = json!(current);
    }
    Ok(Output::text(text, details))
}
