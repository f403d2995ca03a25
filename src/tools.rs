//! The tools that models call: one file for each, named as on the wire, and the table of all tools.

mod apply_patch;
mod argument_names;
mod artifact;
mod bash;
mod bash_kill;
mod bash_output;
mod capture;
mod change;
mod client;
mod context;
mod diagnostics;
mod diagram;
mod edit;
mod fetch;
mod files_seen;
mod follow;
mod git;
mod glob;
mod grep;
mod grep_sink;
mod input;
mod jobs;
mod list;
mod plan;
mod read;
mod repo_map;
mod shell;
mod terminal;
mod text;
mod tool;
mod write;

use std::sync::Arc;

use serde_json::Value;

pub use client::{ClientHands, ClientTerminal, Refused, TerminalCommand};
pub use context::{Progress, Reach, ToolContext};
pub use diagnostics::after_edit;
pub use files_seen::{FilesSeen, PathLocks};
pub use repo_map::MapCache;
pub use shell::{Shell, Start, remove_orphans};
pub use tool::{AnyCall, AnyTool, Output, Prepared, Tool, ToolError};

use crate::model::ToolSpec;

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
            tool::entry(read::Read),
            tool::entry(write::Write),
            tool::entry(edit::Edit),
            tool::entry(apply_patch::ApplyPatch),
            tool::entry(bash::Bash),
            tool::entry(bash_output::BashOutput),
            tool::entry(bash_kill::BashKill),
            tool::entry(glob::Glob),
            tool::entry(grep::Grep),
            tool::entry(list::List),
            tool::entry(repo_map::RepoMap),
            tool::entry(git::GitStatus),
            tool::entry(git::GitDiff),
            tool::entry(git::GitLog),
            tool::entry(git::GitCommit),
            tool::entry(git::GitBranch),
            tool::entry(plan::Plan),
            tool::entry(diagram::Diagram),
            tool::entry(fetch::Fetch),
            tool::entry(diagnostics::Diagnostics),
        ])
    }

    /// A table of these tools.
    pub fn of(tools: Vec<Arc<dyn AnyTool>>) -> Tools {
        let specs = tools.iter().map(|tool| tool.spec().clone()).collect();
        Tools { tools, specs }
    }

    /// The tool with this name or alias.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        let named = |tool: &&Arc<dyn AnyTool>| tool.name() == name;
        self.tools.iter().find(named).or_else(|| self.tools.iter().find(|tool| tool.aliases().contains(&name)))
    }

    /// Looks up the tool and parses its input. The result is what permission rules evaluate, and
    /// then runs unchanged.
    pub fn prepare(&self, name: &str, input: Value, context: &ToolContext) -> Result<Prepared, ToolError> {
        match self.get(name) {
            Some(tool) => tool.clone().prepare(input, context),
            None => Err(ToolError(format!("there is no tool {name}; available: {}", self.names().collect::<Vec<_>>().join(", ")))),
        }
    }

    /// The specifications of all tools for models.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    /// All tools.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn AnyTool>> {
        self.tools.iter()
    }

    /// The name of each tool with its aliases.
    pub fn known(&self) -> Vec<(&str, &[&str])> {
        self.tools.iter().map(|tool| (tool.name(), tool.aliases())).collect()
    }

    /// The names of all tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }
}
