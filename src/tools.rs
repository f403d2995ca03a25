//! The built-in tools that models call, and the table of all tools. Each tool has its own module
//! with the name that models use for the tool.

mod apply_patch;
mod bash;
mod bash_kill;
mod bash_output;
mod diagnostics;
mod diagram;
mod edit;
mod fetch;
mod git_branch;
mod git_commit;
mod git_diff;
mod git_log;
mod git_status;
mod glob;
mod grep;
mod list;
mod plan;
mod read;
mod repo_map;
mod write;

use std::sync::Arc;

use serde_json::Value;

use crate::model::ToolSpec;
use crate::toolkit::{AnyTool, PreparedCall, ToolContext, ToolError, entry};

/// The tools of a session, in the order in which models receive them.
#[derive(Clone)]
pub struct Tools {
    tools: Vec<Arc<dyn AnyTool>>,
    specs: Arc<[ToolSpec]>,
}

impl Tools {
    /// The built-in tools.
    pub fn native() -> Tools {
        Tools::of(vec![
            entry(read::Read),
            entry(write::Write),
            entry(edit::Edit),
            entry(apply_patch::ApplyPatch),
            entry(bash::Bash),
            entry(bash_output::BashOutput),
            entry(bash_kill::BashKill),
            entry(glob::Glob),
            entry(grep::Grep),
            entry(list::List),
            entry(repo_map::RepoMap::default()),
            entry(git_status::GitStatus),
            entry(git_diff::GitDiff),
            entry(git_log::GitLog),
            entry(git_commit::GitCommit),
            entry(git_branch::GitBranch),
            entry(plan::Plan),
            entry(diagram::Diagram),
            entry(fetch::Fetch),
            entry(diagnostics::Diagnostics),
        ])
    }

    /// Creates a table of the given tools.
    pub(crate) fn of(tools: Vec<Arc<dyn AnyTool>>) -> Tools {
        let specs = tools.iter().map(|tool| tool.spec().clone()).collect();
        Tools { tools, specs }
    }

    /// The tool with this name or alias.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        let named = |tool: &&Arc<dyn AnyTool>| tool.name() == name;
        self.tools.iter().find(named).or_else(|| self.tools.iter().find(|tool| tool.aliases().contains(&name)))
    }

    /// Looks up the tool and parses its input. Permission rules evaluate the prepared call, which
    /// then runs unchanged.
    pub fn prepare(&self, name: &str, input: Value, context: &ToolContext) -> Result<PreparedCall, ToolError> {
        match self.get(name) {
            Some(tool) => tool.clone().prepare(input, context),
            None => Err(ToolError(format!("there is no tool {name}; available: {}", self.names().collect::<Vec<_>>().join(", ")))),
        }
    }

    /// The specifications of all tools, as sent to models.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    /// All tools.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn AnyTool>> {
        self.tools.iter()
    }

    /// The name of each tool with its aliases.
    pub(crate) fn known(&self) -> Vec<(&str, &[&str])> {
        self.tools.iter().map(|tool| (tool.name(), tool.aliases())).collect()
    }

    /// The names of all tools.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }
}
