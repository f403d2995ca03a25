//! The agents that the tool `task` can start in a directory, from agent definitions.

use std::path::Path;

use crate::agent::services::Services;
use crate::config::{HostedAgent, KnownTool, Trust};
use crate::context::agent_definitions::{self, AgentDefinition};
use crate::toolkit::SubagentProfile;
use crate::tools::Tools;
use crate::tools::task::TaskAgent;

/// Names of tools in the definitions of other programs, in lower case, with nuncio's names.
const OTHER_NAMES: &[(&str, &str)] =
    &[("ls", "list"), ("multiedit", "edit"), ("webfetch", "fetch"), ("bashoutput", "bash_output"), ("killshell", "bash_kill")];

/// Finds the agents for sessions in `cwd`: first the agents of definitions, then hosted agents,
/// each group sorted by name.
pub(crate) fn task_agents(services: &Services, cwd: &Path) -> Vec<TaskAgent> {
    let trusted = Trust::load(&services.places).covers(cwd);
    let found = agent_definitions::find(cwd, &services.places, trusted);
    let mut agents: Vec<TaskAgent> = found.into_iter().map(|definition| agent(definition, &services.tools)).collect();
    if trusted {
        let settings = &services.user.settings.agents;
        let hosted = settings.agents.iter().filter(|(name, _)| settings.allowed.contains(name));
        for (name, hosted) in hosted {
            if !agents.iter().any(|agent| agent.name.eq_ignore_ascii_case(name)) {
                agents.push(hosted_agent(name, hosted));
            }
        }
    }
    agents
}

/// Describes an agent of another program, which works in the child session.
fn hosted_agent(name: &str, hosted: &HostedAgent) -> TaskAgent {
    let profile = SubagentProfile { name: Some(name.into()), hosted: Some(name.into()), ..SubagentProfile::default() };
    let description = format!("another coding agent with tools of its own ({})", hosted.kind.id());
    TaskAgent { name: name.into(), description, mode: None, profile }
}

fn agent(definition: AgentDefinition, tools: &Tools) -> TaskAgent {
    let AgentDefinition { name, description, system_prompt, tools: named, model, mode, path: _ } = definition;
    let profile = SubagentProfile {
        name: Some(name.clone()),
        system_prompt: Some(system_prompt).filter(|prompt| !prompt.is_empty()),
        tools: named.map(|named| named.iter().filter_map(|name| own_name(name, tools)).collect()),
        model,
        hosted: None,
    };
    TaskAgent { name, description, mode, profile }
}

/// Returns nuncio's name of a tool; `None` if there is no such tool. Other programs write names
/// with other case, without separators, and with a pattern in parentheses.
fn own_name(name: &str, tools: &Tools) -> Option<String> {
    let name = name.split('(').next().unwrap_or_default().trim();
    if name.starts_with("mcp__") {
        return Some(name.into());
    }
    let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let wanted = plain(name);
    let wanted = OTHER_NAMES.iter().find(|(other, _)| *other == wanted).map_or(wanted.clone(), |(_, own)| plain(own));
    let matches = |tool: &KnownTool<'_>| std::iter::once(&tool.name).chain(tool.aliases).any(|name| plain(name) == wanted);
    tools.known().into_iter().find(matches).map(|tool| tool.name.into())
}
