//! The agents that the tool `task` can start in a directory, from agent definitions.

use std::path::Path;

use crate::agent::services::Services;
use crate::config::{HostedAgent, KnownTool, Policy, Trust};
use crate::context::agent_definitions::{self, AgentDefinition};
use crate::context::frontmatter::plain;
use crate::permission::Access;
use crate::permission::rules::stricter;
use crate::toolkit::SubagentProfile;
use crate::tools::Tools;
use crate::tools::task::{SkippedAgent, TaskAgent, TaskAgents};

/// Names of tools in the definitions of other programs, in lower case, with nuncio's names.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("bashoutput", "bash_output"),
    ("killbash", "bash_kill"),
    ("killshell", "bash_kill"),
    ("ls", "list"),
    ("monitor", "bash"),
    ("multiedit", "edit"),
    ("powershell", "bash"),
    ("runshellcommand", "bash"),
    ("webfetch", "fetch"),
];

/// Tools that other programs have, too.
const COMMON: &[&str] =
    &["bash", "bash_kill", "bash_output", "edit", "fetch", "glob", "grep", "list", "plan", "read", "task", "write"];

/// Tools of other programs, in lower case, for which nuncio has no tool, also none that does more.
const ABSENT: &[&str] =
    &["askuserquestion", "enterplanmode", "exitplanmode", "notebookedit", "notebookread", "skill", "slashcommand", "websearch"];

/// Length of the start of an MCP tool's name that nuncio never changes, in characters.
const MCP_PREFIX_CHARS_MAX: usize = 55;

/// Finds the agents for sessions in `cwd`: first the agents of definitions, then hosted agents,
/// each group sorted by name.
pub(crate) fn task_agents(services: &Services, cwd: &Path) -> TaskAgents {
    let trusted = Trust::load(&services.places).covers(cwd);
    let mut found = TaskAgents::default();
    for file in agent_definitions::find(cwd, &services.places, trusted) {
        match file.definition.and_then(|definition| agent(&file.name, definition, &services.tools)) {
            Ok(agent) => found.agents.push(agent),
            Err(reason) => found.skipped.push(SkippedAgent { name: file.name, path: file.path, reason }),
        }
    }
    if trusted {
        let settings = &services.user.settings.agents;
        for (name, hosted) in settings.agents.iter().filter(|(name, _)| settings.allowed.contains(name)) {
            // A definition replaces a hosted agent of its name, also one that is skipped.
            if found.agent(name).is_none() && found.skipped(name).is_none() {
                found.agents.push(hosted_agent(name, hosted));
            }
        }
    }
    found
}

/// Describes an agent of another program, which works in the child session.
fn hosted_agent(name: &str, hosted: &HostedAgent) -> TaskAgent {
    let profile = SubagentProfile { name: Some(name.into()), hosted: Some(name.into()), ..SubagentProfile::default() };
    let description = format!("another coding agent with tools of its own ({})", hosted.kind.id());
    TaskAgent { name: name.into(), description, mode: None, profile }
}

/// Converts a definition. The error says why it is skipped.
fn agent(name: &str, definition: AgentDefinition, tools: &Tools) -> Result<TaskAgent, String> {
    let AgentDefinition { description, system_prompt, tools: named, disallowed_tools, model, modes, max_requests } = definition;
    let profile = SubagentProfile {
        name: Some(name.into()),
        system_prompt: Some(system_prompt).filter(|prompt| !prompt.is_empty()),
        tools: tool_list(named, &disallowed_tools, &tools.known())?,
        model,
        max_requests,
        hosted: None,
    };
    let mode = modes.into_iter().reduce(|one, other| stricter(one, other, Policy::Ask));
    Ok(TaskAgent { name: name.into(), description, mode, profile })
}

/// Returns the list of the tools that a definition allows, see [`crate::toolkit::tool_list`];
/// `None`: all. Fails if the definition limits the calls of a tool, or excludes an unknown one.
fn tool_list(named: Option<Vec<String>>, disallowed: &[String], tools: &[KnownTool<'_>]) -> Result<Option<Vec<String>>, String> {
    let mut list = Vec::new();
    for entry in named.iter().flatten() {
        let name = without_pattern("tools", entry)?;
        if name.contains([':', '{']) {
            return Err("tools: expected a list of names".into());
        }
        list.extend(match name {
            "*" => Some("*".into()),
            _ if name.starts_with("mcp__") && name.matches("__").count() == 1 => Some(format!("{name}__*")),
            _ if name.starts_with("mcp__") => Some(name.into()),
            _ => known(name, tools).map(|tool| tool.name.into()),
        });
    }
    if named.is_none() || list.iter().any(|entry| entry == "*") {
        list = vec!["*".into()];
    }
    for entry in disallowed {
        match without_pattern("disallowedTools", entry)? {
            "*" => list.push("!*".into()),
            // nuncio changes long names and special characters of MCP tools at the end of the name.
            name if name.starts_with("mcp__") => list.push(format!("!{}*", mcp_prefix(name))),
            name => match known(name, tools) {
                Some(tool) => list.extend(with_relatives(tool, tools).map(|name| format!("!{name}"))),
                None if ABSENT.contains(&plain(name).as_str()) => {}
                None => return Err(format!("disallowedTools: there is no tool {name}")),
            },
        }
    }
    Ok(Some(list).filter(|list| *list != ["*"]))
}

/// Returns the name of the tool in an entry. Fails if a pattern follows, as in `Bash(git:*)`.
fn without_pattern<'a>(field: &str, entry: &'a str) -> Result<&'a str, String> {
    match entry.split_once('(') {
        None | Some((_, "*)")) => Ok(entry.trim_end_matches("(*)")),
        Some((name, _)) => Err(format!("{field}: {entry}: the calls of {name} cannot be limited by a pattern")),
    }
}

/// Returns the start of the names that nuncio gives to the MCP tools that `name` stands for.
fn mcp_prefix(name: &str) -> String {
    let accepted = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    name.trim_end_matches('*').chars().map(accepted).take(MCP_PREFIX_CHARS_MAX).collect()
}

/// Finds the tool that a name stands for. Other programs write names with other case and without
/// separators.
fn known<'a>(name: &str, tools: &'a [KnownTool<'a>]) -> Option<&'a KnownTool<'a>> {
    let name = plain(name);
    let wanted = OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, own)| plain(own));
    tools.iter().find(|tool| std::iter::once(&tool.name).chain(tool.aliases).any(|name| plain(name) == wanted))
}

/// Returns the name of an excluded tool, and of nuncio's tools with the same access that the author
/// of a definition for other programs does not know: without `edit`, there is no `apply_patch`.
fn with_relatives<'a>(excluded: &'a KnownTool<'a>, tools: &'a [KnownTool<'a>]) -> impl Iterator<Item = &'a str> {
    let access = Access::ordinary(excluded.access);
    let takes_along = COMMON.contains(&excluded.name) && access != Access::none();
    let is_relative =
        move |tool: &&KnownTool<'_>| takes_along && !COMMON.contains(&tool.name) && Access::ordinary(tool.access) == access;
    std::iter::once(excluded).chain(tools.iter().filter(is_relative)).map(|tool| tool.name)
}
