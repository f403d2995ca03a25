//! `git_status`: shows the branch and the changed files.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::content::ToolKind;
use crate::limits;
use crate::permission::Access;
use crate::toolkit::git::changes::status_name;
use crate::toolkit::git::{Git, with_paths};
use crate::toolkit::{Output, Tool, ToolContext, ToolError, ToolProperties};
use crate::workspace::Workspace;

pub struct GitStatus;

/// Shows the git branch, and the staged, changed, untracked and conflicted files.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {}

impl Tool for GitStatus {
    type Input = Input;
    const NAME: &'static str = "git_status";
    const ALIASES: &'static [&'static str] = &[];
    const KIND: ToolKind = ToolKind::Search;
    const PROPERTIES: ToolProperties = ToolProperties { lists_files: true, ..ToolProperties::NONE };

    fn title(&self, _: &Input, _: &Workspace) -> String {
        "Git status".into()
    }

    fn access(&self, _: &Input) -> Access {
        Access::read(".")
    }

    /// details: `{branch?, commit?, upstream?, ahead?, behind?, staged, unstaged: [{path, status,
    /// from?}], untracked: [path], conflicted: [{path, status}], truncated}`; `branch` is absent
    /// for a detached head, `commit` before the first commit.
    async fn run(&self, _: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let git = Git::open(context).await?;
        let arguments =
            ["status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty", "--untracked-files=normal", "--"];
        let output = git.read(with_paths(&arguments, &git.scope(None)?)).await?;
        let mut state = State { truncated: output.truncated, ..State::default() };
        let mut fields = output.fields();
        while let Some(field) = fields.next() {
            state.add(&git, field, &mut fields);
        }
        Ok(state.output())
    }
}

/// The parsed status.
#[derive(Default)]
struct State {
    /// Headers `branch.NAME`: name and value.
    head: Vec<(String, String)>,
    staged: Vec<Value>,
    unstaged: Vec<Value>,
    untracked: Vec<Value>,
    conflicted: Vec<Value>,
    /// True if entries were omitted.
    truncated: bool,
}

impl State {
    /// Adds a record of git-status(1), "Porcelain Format Version 2". The record of a rename
    /// includes the next field.
    fn add<'f>(&mut self, git: &Git<'_>, field: &'f [u8], rest: &mut impl Iterator<Item = &'f [u8]>) {
        let (sort, record) = (field.first().copied().unwrap_or(0), field.get(2..).unwrap_or_default());
        match sort {
            b'#' => {
                let line = String::from_utf8_lossy(record);
                if let Some((name, value)) = line.split_once(' ') {
                    self.head.push((name.to_owned(), value.to_owned()));
                }
            }
            b'1' => self.changed(git, record, 7, None),
            b'2' => {
                let from = rest.next();
                self.changed(git, record, 8, from);
            }
            b'u' => {
                let path = record.splitn(10, |byte| *byte == b' ').nth(9).unwrap_or_default();
                if self.has_room(git, path) {
                    let status = String::from_utf8_lossy(&record[..2]);
                    self.conflicted.push(json!({ "path": git.show(path), "status": status }));
                }
            }
            b'?' if self.has_room(git, record) => self.untracked.push(json!(git.show(record))),
            _ => {}
        }
    }

    /// Adds the staged and the unstaged change of a record `XY sub …`, whose path follows `before`
    /// words.
    fn changed(&mut self, git: &Git<'_>, record: &[u8], before: usize, from: Option<&[u8]>) {
        let path = record.splitn(before + 1, |byte| *byte == b' ').nth(before).unwrap_or_default();
        for (letter, staged) in [(record[0], true), (record[1], false)] {
            if letter == b'.' || !self.has_room(git, path) {
                continue;
            }
            let mut change = json!({ "path": git.show(path), "status": status_name(letter) });
            if let (Some(from), b'R' | b'C') = (from, letter) {
                change["from"] = json!(git.show(from));
            }
            if staged { &mut self.staged } else { &mut self.unstaged }.push(change);
        }
    }

    /// True if another entry for `path` may be added: the limit is not reached, and the path is not
    /// hidden by rules.
    fn has_room(&mut self, git: &Git<'_>, path: &[u8]) -> bool {
        let kept = self.staged.len() + self.unstaged.len() + self.untracked.len() + self.conflicted.len();
        self.truncated |= kept >= limits::GIT_ENTRIES_MAX;
        !self.truncated && !git.hides(path)
    }

    /// The value of the header `branch.NAME`. Placeholders such as `(detached)` count as absent.
    fn branch(&self, name: &str) -> Option<&str> {
        let found = self.head.iter().find(|(other, _)| other.strip_prefix("branch.") == Some(name));
        found.map(|(_, value)| value.as_str()).filter(|value| !value.starts_with('('))
    }

    fn output(self) -> Output {
        let mut details = json!({});
        for (key, name) in [("branch", "head"), ("commit", "oid"), ("upstream", "upstream")] {
            if let Some(value) = self.branch(name) {
                details[key] = json!(value);
            }
        }
        let mut text = match (self.branch("head"), self.branch("oid")) {
            (Some(branch), Some(_)) => format!("on {branch}"),
            (Some(branch), None) => format!("on {branch}, no commits yet"),
            (None, commit) => format!("detached at {}", commit.map_or("nothing", |commit| &commit[..commit.len().min(10)])),
        };
        if let Some(upstream) = self.branch("upstream") {
            let counts = self.branch("ab").and_then(|counts| counts.split_once(' '));
            let count = |text: &str| text[1..].parse::<u64>().ok();
            match counts.and_then(|(ahead, behind)| Some((count(ahead)?, count(behind)?))) {
                Some((ahead, behind)) => {
                    text.push_str(&format!(", {ahead} ahead and {behind} behind {upstream}"));
                    details["ahead"] = json!(ahead);
                    details["behind"] = json!(behind);
                }
                None => text.push_str(&format!(", upstream {upstream} does not exist")),
            }
        }
        text.push('\n');
        let lists = [
            ("conflicted", "conflicts", self.conflicted),
            ("staged", "staged", self.staged),
            ("unstaged", "not staged", self.unstaged),
            ("untracked", "untracked", self.untracked),
        ];
        let clean = lists.iter().all(|(_, _, list)| list.is_empty());
        for (key, title, list) in lists {
            if !list.is_empty() {
                text.push_str(&format!("{title}:\n"));
            }
            list.iter().for_each(|entry| text.push_str(&format!("  {}\n", line(entry))));
            details[key] = json!(list);
        }
        if clean {
            text.push_str("no changes\n");
        }
        if self.truncated {
            text.push_str(&format!("[the first {} entries; for a part, run git status PATH with bash]\n", limits::GIT_ENTRIES_MAX));
        }
        details["truncated"] = json!(self.truncated);
        Output::text(text, details)
    }
}

fn line(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    match (text("status"), text("path"), text("from")) {
        (Some(status), Some(path), Some(from)) => format!("{status} {from} -> {path}"),
        (Some(status), Some(path), None) => format!("{status} {path}"),
        _ => entry.as_str().unwrap_or_default().to_owned(),
    }
}
