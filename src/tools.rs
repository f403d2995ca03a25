//! The built-in tools that models call, and the table of all tools. Each tool has its own module
//! with the name that models use for the tool.

mod apply_patch;
mod bash;
mod bash_kill;
mod bash_output;
mod diagnostics;
#[cfg(feature = "diagrams")]
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
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
mod plan;
mod read;
mod repo_map;
pub(crate) mod task;
mod verify;
mod write;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use globset::Glob;
use serde_json::Value;

use self::repo_map::MapCache;
pub(crate) use self::repo_map::{RelevantFile, Survey};
use crate::config::KnownTool;
use crate::model::ToolSpec;
use crate::toolkit::{AnyTool, PreparedCall, Tool, ToolContext, ToolError, entry, tool_list};

/// A table of tools, in the order in which models receive them.
#[derive(Clone)]
pub struct Tools {
    tools: Vec<Arc<dyn AnyTool>>,
    /// Tools that models can call by name, but do not receive in the list of tools.
    unlisted: Vec<Arc<dyn AnyTool>>,
    /// Tools that models receive in the list of tools.
    offered: Vec<Arc<dyn AnyTool>>,
    /// The specifications of `offered`, once they are needed.
    specs: OnceLock<Arc<[ToolSpec]>>,
    /// The size of `specs`, once it is needed.
    spec_bytes: OnceLock<usize>,
    /// Parsed source files, which tables that are made from this one share.
    maps: Arc<MapCache>,
}

impl Tools {
    /// Creates a table of the built-in tools, sorted by name.
    pub fn native() -> Tools {
        let maps = Arc::<MapCache>::default();
        let native = Tools::new(vec![
            entry(apply_patch::ApplyPatch),
            entry(bash::Bash),
            entry(bash_kill::BashKill),
            entry(bash_output::BashOutput),
            entry(diagnostics::Diagnostics),
            #[cfg(feature = "diagrams")]
            entry(diagram::Diagram),
            entry(edit::Edit),
            entry(fetch::Fetch),
            entry(git_branch::GitBranch),
            entry(git_commit::GitCommit),
            entry(git_diff::GitDiff),
            entry(git_log::GitLog),
            entry(git_status::GitStatus),
            entry(glob::Glob),
            entry(grep::Grep),
            entry(list::List),
            entry(plan::Plan),
            entry(read::Read),
            entry(repo_map::RepoMap::new(maps.clone())),
            entry(task::Task::default()),
            entry(verify::Verify),
            entry(write::Write),
        ]);
        Tools { maps, ..native }
    }

    pub(crate) fn new(tools: Vec<Arc<dyn AnyTool>>) -> Tools {
        let (offered, unlisted) = (tools.clone(), Vec::new());
        Tools { tools, unlisted, offered, specs: OnceLock::new(), spec_bytes: OnceLock::new(), maps: Arc::default() }
    }

    /// Returns this table with further tools at its end, and with `unlisted` as its unlisted tools.
    pub(crate) fn with_tools(&self, extra: &[Arc<dyn AnyTool>], unlisted: &[Arc<dyn AnyTool>]) -> Tools {
        let all = Tools::new(self.tools.iter().chain(extra).cloned().collect());
        Tools { maps: self.maps.clone(), unlisted: unlisted.to_vec(), ..all }
    }

    /// Returns this table with `tool` in the place of the tool with the same name, and without
    /// unlisted tools.
    pub(crate) fn replacing(&self, tool: &Arc<dyn AnyTool>) -> Tools {
        let chosen = |known: &Arc<dyn AnyTool>| if known.name() == tool.name() { tool.clone() } else { known.clone() };
        Tools { maps: self.maps.clone(), ..Tools::new(self.tools.iter().map(chosen).collect()) }
    }

    /// Returns this table with only the tools that a list allows, and without unlisted tools.
    pub(crate) fn only(&self, list: &[String]) -> Tools {
        let named = self.tools.iter().filter(|tool| tool_list::allows(list, tool.name()));
        Tools { maps: self.maps.clone(), ..Tools::new(named.cloned().collect()) }
    }

    /// Returns the tools of this table whose names match one of the patterns.
    pub(crate) fn matching(&self, patterns: &[String]) -> Tools {
        let globs: Vec<_> = patterns.iter().filter_map(|pattern| Some(Glob::new(pattern).ok()?.compile_matcher())).collect();
        let matches = |tool: &&Arc<dyn AnyTool>| globs.iter().any(|glob| glob.is_match(tool.name()));
        let unlisted = self.unlisted.iter().filter(matches).cloned().collect();
        Tools { maps: self.maps.clone(), unlisted, ..Tools::new(self.tools.iter().filter(matches).cloned().collect()) }
    }

    /// Returns this table, of which models receive only the tools that `is_offered` accepts.
    pub(crate) fn offering(&self, is_offered: impl Fn(&str) -> bool) -> Tools {
        let offered = self.tools.iter().filter(|tool| is_offered(tool.name())).cloned().collect();
        Tools { offered, specs: OnceLock::new(), spec_bytes: OnceLock::new(), ..self.clone() }
    }

    /// Returns whether models receive a tool with this name.
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.offered.iter().any(|tool| tool.name() == name)
    }

    /// Finds the tool with this name or alias. An unlisted tool is found only by its name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        let named = |tool: &&Arc<dyn AnyTool>| tool.name() == name;
        let listed = self.tools.iter().find(named).or_else(|| self.tools.iter().find(|tool| tool.aliases().contains(&name)));
        listed.or_else(|| self.unlisted.iter().find(named))
    }

    /// Looks up the tool and parses its input. Permission rules evaluate the prepared call, which
    /// then runs unchanged.
    pub fn prepare(&self, name: &str, input: Value, context: &ToolContext) -> Result<PreparedCall, ToolError> {
        match self.get(name) {
            Some(tool) => tool.clone().prepare(input, context),
            None => Err(ToolError(format!("there is no tool {name}; available: {}", self.offered_names()))),
        }
    }

    /// Surveys the files below the session's directory until `until`. Returns at most `count` files
    /// that fit `prompt`.
    pub(crate) fn survey(&self, prompt: &str, context: &ToolContext, until: Instant, count: usize) -> Survey {
        repo_map::survey(&context.workspace.cwd, prompt, &self.maps, context, until, count)
    }

    /// Returns the specifications of the offered tools, as sent to models. Texts about background
    /// commands are omitted if no offered tool reads their results.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        let create = || {
            let mut specs: Vec<ToolSpec> = self.offered.iter().map(|tool| tool.spec().clone()).collect();
            if !self.offers(bash_output::BashOutput::NAME) {
                specs.iter_mut().filter(|spec| spec.name == bash::Bash::NAME).for_each(bash::without_background);
            }
            specs.into()
        };
        self.specs.get_or_init(create).clone()
    }

    /// Returns the size of the specifications of the offered tools in a request, in bytes.
    pub(crate) fn spec_bytes(&self) -> usize {
        *self.spec_bytes.get_or_init(|| self.specs().iter().map(ToolSpec::bytes).sum())
    }

    /// Returns all listed tools.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn AnyTool>> {
        self.tools.iter()
    }

    /// Returns the names, aliases and kinds of access of the listed tools.
    pub(crate) fn known(&self) -> Vec<KnownTool<'_>> {
        let tools = self.tools.iter();
        tools.map(|tool| KnownTool { name: tool.name(), aliases: tool.aliases(), access: tool.access() }).collect()
    }

    /// Returns the names of the tools that models receive.
    fn offered_names(&self) -> String {
        self.offered.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the names of all listed tools.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }
}
