//! `git_status`: shows the branch and the changed files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::content::ToolKind;
use crate::limits;
use crate::permission::Access;
use crate::toolkit::git::changes::status_name;
use crate::toolkit::git::{Git, with_paths};
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use crate::workspace::Workspace;

pub(super) struct GitStatus;

/// Shows the git branch, and the staged, changed, untracked and conflicted files.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GitStatusInput {}

/// The details of the result of a `git_status` call.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct GitStatusDetails {
    /// Absent for a detached head.
    branch: Option<String>,
    /// Id of the current commit; absent before the first one.
    commit: Option<String>,
    upstream: Option<String>,
    /// Commits that the upstream does not have.
    ahead: Option<u64>,
    /// Commits that only the upstream has.
    behind: Option<u64>,
    conflicted: Vec<StatusEntry>,
    staged: Vec<StatusEntry>,
    unstaged: Vec<StatusEntry>,
    untracked: Vec<String>,
    /// Entries are missing.
    truncated: bool,
}

/// A changed file in the details of a `git_status`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StatusEntry {
    path: String,
    /// A word such as `modified`; for a conflict, the two letters of git-status(1).
    status: String,
    /// Path before a rename or copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

impl StatusEntry {
    fn line(&self) -> String {
        let from = self.from.as_ref().map(|from| format!("{from} -> ")).unwrap_or_default();
        format!("{} {from}{}", self.status, self.path)
    }
}

impl Tool for GitStatus {
    type Input = GitStatusInput;
    type Details = GitStatusDetails;
    const NAME: &'static str = "git_status";
    const LABEL: &'static str = "Show git status";
    const KIND: ToolKind = ToolKind::Search;
    const PROPERTIES: ToolProperties = ToolProperties { lists_files: true, ..ToolProperties::NONE };

    fn title(&self, _: &GitStatusInput, _: &Workspace) -> String {
        "Git status".into()
    }

    fn access(&self, _: &GitStatusInput) -> Access {
        Access::read(".")
    }

    async fn run(&self, _: GitStatusInput, context: &ToolContext) -> Result<ToolOutput<GitStatusDetails>, ToolError> {
        let git = Git::open(context).await?;
        let arguments =
            ["status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty", "--untracked-files=normal", "--"];
        let output = git.read(with_paths(&arguments, &git.scope(None)?)).await?;
        let mut parser = StatusParser::default();
        parser.details.truncated = output.truncated;
        let mut fields = output.fields();
        while let Some(field) = fields.next() {
            parser.add(&git, field, &mut fields);
        }
        Ok(parser.output())
    }
}

/// Parser for the output of `git status`.
#[derive(Default)]
struct StatusParser {
    /// Names and values of the `branch.NAME` headers.
    head: Vec<(String, String)>,
    details: GitStatusDetails,
}

impl StatusParser {
    /// Adds a record in the format of git-status(1), "Porcelain Format Version 2". A rename record
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
                    let status = String::from_utf8_lossy(&record[..2]).into_owned();
                    self.details.conflicted.push(StatusEntry { path: git.show(path), status, from: None });
                }
            }
            b'?' if self.has_room(git, record) => self.details.untracked.push(git.show(record)),
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
            let from = from.filter(|_| matches!(letter, b'R' | b'C')).map(|from| git.show(from));
            let entry = StatusEntry { path: git.show(path), status: status_name(letter).into(), from };
            if staged { &mut self.details.staged } else { &mut self.details.unstaged }.push(entry);
        }
    }

    /// Returns true if an entry for `path` may be added: the limit is not reached, and permission
    /// rules do not hide the path.
    fn has_room(&mut self, git: &Git<'_>, path: &[u8]) -> bool {
        let GitStatusDetails { conflicted, staged, unstaged, untracked, truncated, .. } = &mut self.details;
        let kept = conflicted.len() + staged.len() + unstaged.len() + untracked.len();
        *truncated |= kept >= limits::GIT_ENTRIES_MAX;
        !*truncated && !git.hides(path)
    }

    /// Returns the value of the header `branch.NAME`. Placeholders such as `(detached)` count as
    /// absent.
    fn branch(&self, name: &str) -> Option<String> {
        let found = self.head.iter().find(|(other, _)| other.strip_prefix("branch.") == Some(name));
        found.map(|(_, value)| value.clone()).filter(|value| !value.starts_with('('))
    }

    /// Returns the number of commits ahead of and behind the upstream; `None` if there is no
    /// upstream.
    fn distance(&self) -> Option<(u64, u64)> {
        let counts = self.branch("ab")?;
        let (ahead, behind) = counts.split_once(' ')?;
        let count = |text: &str| text[1..].parse::<u64>().ok();
        Some((count(ahead)?, count(behind)?))
    }

    fn output(mut self) -> ToolOutput<GitStatusDetails> {
        let (branch, commit, upstream) = (self.branch("head"), self.branch("oid"), self.branch("upstream"));
        let mut text = match (&branch, &commit) {
            (Some(branch), Some(_)) => format!("on {branch}"),
            (Some(branch), None) => format!("on {branch}, no commits yet"),
            (None, commit) => {
                format!("detached at {}", commit.as_ref().map_or("nothing", |commit| &commit[..commit.len().min(10)]))
            }
        };
        if let Some(upstream) = &upstream {
            let distance = self.distance();
            match distance {
                Some((ahead, behind)) => text.push_str(&format!(", {ahead} ahead and {behind} behind {upstream}")),
                None => text.push_str(&format!(", upstream {upstream} does not exist")),
            }
            (self.details.ahead, self.details.behind) = distance.unzip();
        }
        text.push('\n');
        let details = GitStatusDetails { branch, commit, upstream, ..self.details };
        let lines = |entries: &[StatusEntry]| entries.iter().map(StatusEntry::line).collect();
        let lists: [(&str, Vec<String>); 4] = [
            ("conflicts", lines(&details.conflicted)),
            ("staged", lines(&details.staged)),
            ("not staged", lines(&details.unstaged)),
            ("untracked", details.untracked.clone()),
        ];
        for (title, lines) in lists.iter().filter(|(_, lines)| !lines.is_empty()) {
            text.push_str(&format!("{title}:\n"));
            lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        }
        if lists.iter().all(|(_, lines)| lines.is_empty()) {
            text.push_str("no changes\n");
        }
        let most = limits::GIT_ENTRIES_MAX;
        let note = details.truncated.then(|| format!("the first {most} entries; for one directory, run git status PATH with bash"));
        ToolOutput::text(text, details).notes(note)
    }
}
