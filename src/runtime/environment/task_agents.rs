//! The agents that the tool `task` can start in a directory, from agent definitions.

use std::path::Path;

use crate::config::{HostedAgent, KnownTool, Policy, Trust};
use crate::context::agent_definitions::{self, AgentDefinition, SubagentProfile, at_line};
use crate::context::frontmatter::plain;
use crate::permission::Access;
use crate::permission::rules::stricter;
use crate::runtime::services::Services;
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
            Ok((agent, notices)) => {
                found.notices.extend(notices.into_iter().map(|notice| format!("{}: {notice}", file.path.display())));
                found.agents.push(agent);
            }
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

/// Converts a definition. Also returns the parts that have no effect. The error says why the
/// definition is skipped.
fn agent(name: &str, definition: AgentDefinition, tools: &Tools) -> Result<(TaskAgent, Vec<String>), String> {
    let AgentDefinition { description, mut profile, disallowed_tools, modes, tool_lines, mut notices } = definition;
    let [tools_line, disallowed_line] = tool_lines;
    let known_tools = tools.known();
    let (mut list, unknown) = allowed(profile.tools, &known_tools).map_err(|why| at_line(&why, tools_line))?;
    exclude(&mut list, &disallowed_tools, &known_tools).map_err(|why| at_line(&why, disallowed_line))?;
    notices.extend(unknown.iter().map(|name| at_line(&format!("tools: there is no tool {name}"), tools_line)));
    (profile.name, profile.tools) = (Some(name.into()), Some(list).filter(|list| *list != ["*"]));
    let mode = modes.into_iter().reduce(|one, other| stricter(one, other, Policy::Ask));
    Ok((TaskAgent { name: name.into(), description, mode, profile }, notices))
}

/// Returns the list of the tools that a definition allows, see [`crate::toolkit::tool_list`], and
/// the names of unknown tools, which are omitted. Fails if the definition limits the calls of a
/// tool, or if all of its tools are unknown.
fn allowed(named: Option<Vec<String>>, tools: &[KnownTool<'_>]) -> Result<(Vec<String>, Vec<String>), String> {
    let Some(named) = named else { return Ok((vec!["*".into()], Vec::new())) };
    let (mut list, mut unknown) = (Vec::new(), Vec::new());
    for entry in &named {
        let name = without_pattern("tools", entry)?;
        if name.contains([':', '{']) {
            return Err("tools: expected a list of names".into());
        }
        match name {
            _ if name.starts_with("mcp__") && name.matches("__").count() == 1 => list.push(format!("{name}__*")),
            _ if name == "*" || name.starts_with("mcp__") => list.push(name.into()),
            _ => match known(name, tools) {
                Some(tool) => list.push(tool.name.into()),
                None => unknown.push(name.to_owned()),
            },
        }
    }
    if list.is_empty() && !unknown.is_empty() {
        return Err(format!("tools: there is no tool {}", unknown.join(" and no tool ")));
    }
    if list.iter().any(|entry| entry == "*") {
        list = vec!["*".into()];
    }
    Ok((list, unknown))
}

/// Excludes tools from `list`. Fails if one is unknown, or if only some of its calls are excluded.
fn exclude(list: &mut Vec<String>, disallowed: &[String], tools: &[KnownTool<'_>]) -> Result<(), String> {
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
    Ok(())
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
