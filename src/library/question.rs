//! Permission requests, and the answers of the embedding program.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::api::PermissionView;
use crate::config::{Policy, Rule};
use crate::content::{CallDetails, ToolCategory, ToolContent, ToolKind};
use crate::id::SessionId;
use crate::options::Mode;
use crate::permission::AccessKind;
use crate::permission::rules::{AccessRequest, Rules, decide};
use crate::permission::shell::CommandLine;

/// The callback that answers permission requests.
pub(super) type Decide = Arc<dyn Fn(Question) -> BoxFuture<'static, Decision> + Send + Sync>;

/// The tool that runs commands, whose rules a command is checked against.
const BASH: &str = "bash";

/// An answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// This call may run.
    Once,
    /// This call and later ones like it in the session may run.
    Always,
    /// The call does not run. The model receives the reason.
    Deny(String),
}

/// A tool call that needs a permission.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// The session of the call.
    pub session_id: SessionId,
    /// The name of the tool, or `budget` for a request to exceed a budget.
    pub tool: String,
    /// One line for users.
    pub title: String,
    /// The kind of resources that the call accesses; `None` if it is unknown.
    pub category: Option<ToolCategory>,
    /// The effect of the call.
    pub details: CallDetails,
}

impl Question {
    pub(super) fn new(view: PermissionView) -> Question {
        let PermissionView { session_id, tool_call, .. } = view;
        let (tool, details) = (tool_call.tool, tool_call.details);
        Question { session_id, tool: tool.name, title: tool.title, category: tool.category, details }
    }

    /// Returns the command line, if the call runs one.
    pub fn command(&self) -> Option<&str> {
        self.details.input["command"].as_str().filter(|_| self.category == Some(ToolCategory::Command))
    }

    /// Returns whether the call runs only commands that begin with these words. All commands of the
    /// line are checked, as by a permission rule with the pattern `words *`; a line that writes
    /// files by redirections does not match, nor does one whose commands are uncertain.
    pub fn command_starts_with(&self, words: &str) -> bool {
        let Some(command) = self.command() else { return false };
        let line = CommandLine::parse("", command);
        let rule = |pattern: &str| Rule {
            tool: Some(BASH.into()),
            kind: None,
            path: None,
            pattern: Some(pattern.into()),
            directory: None,
            exact: None,
            policy: Policy::Allow,
        };
        let rules = Rules { user: vec![rule(&format!("{words} *"))], ..Rules::default() };
        let writes = line.writes().next().is_some();
        let request = AccessRequest { line: Some(line), ..AccessRequest::new(BASH, AccessKind::Exec) };
        !writes && decide(&rules, Mode::Ask, Policy::Ask, &request).policy == Policy::Allow
    }

    /// Returns the absolute paths of the files that the call changes, creates, moves or deletes, as
    /// far as the tool names them: empty for a command, and for a tool of this program whose kind
    /// is not [`ToolKind::Edit`].
    pub fn changed_files(&self) -> Vec<&Path> {
        let named =
            self.details.locations.iter().filter(|_| self.details.kind == ToolKind::Edit).map(|location| location.path.as_path());
        let shown = self.details.content.iter().filter_map(|content| match content {
            ToolContent::Diff { path, .. } => Some(path.as_path()),
            _ => None,
        });
        let mut files: Vec<&Path> = named.chain(shown).collect();
        files.sort();
        files.dedup();
        files
    }
}
