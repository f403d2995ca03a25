//! The settings of a session that hosted agents follow: one table for each protocol.
//! docs/AGENTS.md has the same table; a test tries each of its cells.

use crate::config::{AgentKind, FailurePolicy, HookSettings, HostedAgent, LoadedSettings};
use crate::content::{BudgetLimits, Resource};
use crate::error::{Error, Result};
use crate::event::HookEvent;
use crate::session::AgentSetting;

/// How an agent follows a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// A flag or a field when the agent's process or session starts. Another value starts a new
    /// process, which resumes the session.
    Start,
    /// An option of the agent, which is set before each turn.
    Option,
    /// A slash command of the agent.
    Command,
    /// nuncio, from what the agent reports.
    Reported,
    /// nuncio, where the agent asks for permission.
    Asked,
    /// nuncio.
    Nuncio,
}

/// The settings that an agent follows, besides those of [`ALL`]. It cannot follow the others.
type Abilities = &'static [(AgentSetting, Means)];

/// The settings that nuncio applies to all agents.
const ALL: Abilities = &[
    (AgentSetting::Limit(Resource::Time), Means::Nuncio),
    (AgentSetting::Sandbox, Means::Nuncio),
    (AgentSetting::Verify, Means::Nuncio),
    (AgentSetting::Review, Means::Nuncio),
    (AgentSetting::BeforeHooks, Means::Asked),
    (AgentSetting::AfterHooks, Means::Nuncio),
];

const ACP: Abilities = &[
    (AgentSetting::Model, Means::Option),
    (AgentSetting::Thinking, Means::Option),
    (AgentSetting::Compaction, Means::Command),
    (AgentSetting::Limit(Resource::Tokens), Means::Reported),
    (AgentSetting::Limit(Resource::Cost), Means::Reported),
];

/// claude-agent-acp, the adapter that runs Claude Code behind ACP.
const CLAUDE_AGENT_ACP: Abilities = &[
    (AgentSetting::Model, Means::Option),
    (AgentSetting::Thinking, Means::Option),
    (AgentSetting::SystemPrompt, Means::Start),
    (AgentSetting::AddedPrompt, Means::Start),
    (AgentSetting::Compaction, Means::Command),
    (AgentSetting::Limit(Resource::Tokens), Means::Reported),
    (AgentSetting::Limit(Resource::Cost), Means::Reported),
];

const CLAUDE_CODE: Abilities = &[
    (AgentSetting::Model, Means::Option),
    (AgentSetting::Thinking, Means::Start),
    (AgentSetting::SystemPrompt, Means::Start),
    (AgentSetting::AddedPrompt, Means::Start),
    (AgentSetting::Tools, Means::Start),
    (AgentSetting::BeforeHooks, Means::Nuncio),
    (AgentSetting::Compaction, Means::Command),
    (AgentSetting::Limit(Resource::Requests), Means::Reported),
    (AgentSetting::Limit(Resource::Tokens), Means::Reported),
    (AgentSetting::Limit(Resource::Cost), Means::Reported),
];

const CODEX: Abilities = &[
    (AgentSetting::Model, Means::Option),
    (AgentSetting::Thinking, Means::Option),
    (AgentSetting::SystemPrompt, Means::Start),
    (AgentSetting::AddedPrompt, Means::Start),
    (AgentSetting::Compaction, Means::Command),
    (AgentSetting::Limit(Resource::Requests), Means::Reported),
    (AgentSetting::Limit(Resource::Tokens), Means::Reported),
];

const OPENCODE: Abilities = &[
    (AgentSetting::Model, Means::Option),
    (AgentSetting::AddedPrompt, Means::Start),
    (AgentSetting::Compaction, Means::Command),
    (AgentSetting::Limit(Resource::Requests), Means::Reported),
    (AgentSetting::Limit(Resource::Tokens), Means::Reported),
    (AgentSetting::Limit(Resource::Cost), Means::Reported),
];

/// Returns the settings that an agent follows.
fn abilities(agent: &HostedAgent) -> Abilities {
    match agent.kind {
        AgentKind::Acp if is_claude_agent_acp(agent) => CLAUDE_AGENT_ACP,
        AgentKind::Acp | AgentKind::Fake => ACP,
        AgentKind::ClaudeCode => CLAUDE_CODE,
        AgentKind::Codex => CODEX,
        AgentKind::Opencode => OPENCODE,
    }
}

/// Returns whether an agent is claude-agent-acp, by the words of its command.
fn is_claude_agent_acp(agent: &HostedAgent) -> bool {
    agent.command_line().iter().any(|word| word.contains("claude-agent-acp") || word.contains("claude-code-acp"))
}

/// Returns how an agent follows a setting; `None` if it cannot.
pub(super) fn means(agent: &HostedAgent, setting: AgentSetting) -> Option<Means> {
    abilities(agent).iter().chain(ALL).find(|(known, _)| *known == setting).map(|(_, means)| *means)
}

/// Returns the resources whose use an agent reports.
pub(super) fn reported(agent: &HostedAgent) -> Vec<Resource> {
    let resource = |(setting, means): &(AgentSetting, Means)| match (setting, means) {
        (AgentSetting::Limit(resource), Means::Reported) => Some(*resource),
        _ => None,
    };
    abilities(agent).iter().filter_map(resource).collect()
}

/// Returns an error for the first setting that an agent cannot follow.
pub(super) fn check(name: &str, agent: &HostedAgent, settings: &[AgentSetting]) -> Result<()> {
    match settings.iter().find(|setting| means(agent, **setting).is_none()) {
        Some(setting) => Err(setting.refused(name)),
        None => Ok(()),
    }
}

/// Returns an error if a hook must block calls when it fails (`on_failure = "closed"`): a hosted
/// agent also makes calls without asking.
pub(super) fn check_hooks(name: &str, agent: &HostedAgent, loaded: &LoadedSettings) -> Result<()> {
    let is_closed =
        |hook: &HookSettings| hook.event == HookEvent::ToolExecuteBefore && hook.on_failure == Some(FailurePolicy::Closed);
    let asks_always = means(agent, AgentSetting::BeforeHooks) == Some(Means::Nuncio);
    match !asks_always && loaded.settings.hooks.iter().any(is_closed) {
        true => {
            let message = format!(
                "hooks: on_failure = \"closed\" is not possible with the agent {name}, which does not ask about every call"
            );
            Err(Error::invalid_params(message).hint("remove on_failure, or use nuncio's own agent"))
        }
        false => Ok(()),
    }
}

/// Returns whether a hook runs before tool calls.
pub(super) fn has_before_hooks(loaded: &LoadedSettings) -> bool {
    loaded.settings.hooks.iter().any(|hook| hook.event == HookEvent::ToolExecuteBefore)
}

/// Returns the limits of the settings, without the default, which is for nuncio's own agent.
pub(super) fn chosen_limits(loaded: &LoadedSettings) -> BudgetLimits {
    let limits = loaded.settings.budget.limits();
    let is_default = !loaded.origins.contains_key("budget.max_requests");
    BudgetLimits { max_requests: limits.max_requests.filter(|_| !is_default), ..limits }
}

/// Returns the settings of files that an agent cannot follow, as the text of a notice. Settings of
/// nuncio's own models do not count.
pub(super) fn not_followed(agent: &HostedAgent, loaded: &LoadedSettings) -> Option<String> {
    let set = AgentSetting::limited_by(&chosen_limits(loaded));
    let names: Vec<&str> = set.into_iter().filter(|setting| means(agent, *setting).is_none()).map(AgentSetting::name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
