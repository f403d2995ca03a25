//! The settings of a session that its hosted agent receives.

use super::abilities::{self, Means};
use crate::config::{HostedAgent, Overrides};
use crate::event::SessionChange;
use crate::options::OptionValue;
use crate::session::AgentSetting;

/// Returns the settings that the flags next to `--agent NAME` set for the sessions of an agent.
pub(super) fn set_by_flags(overrides: &Overrides, name: &str) -> Vec<AgentSetting> {
    let own = is_for(overrides, name);
    let set = [
        (AgentSetting::Model, own && overrides.model.is_some()),
        (AgentSetting::Thinking, own && overrides.thinking.is_some()),
        (AgentSetting::SystemPrompt, own && overrides.system_prompt.is_some()),
        (AgentSetting::Tools, own && overrides.tools.is_some()),
    ];
    set.into_iter().filter(|(_, is_set)| *is_set).map(|(setting, _)| setting).collect()
}

/// Returns the settings of a session, from its log, else from the flags of the process. An agent
/// uses its own for those that are missing.
pub(super) fn wanted(settings: &SessionChange, overrides: &Overrides, name: &str) -> SessionChange {
    let flags = Some(overrides).filter(|overrides| is_for(overrides, name));
    let thinking = settings.thinking.as_ref().and_then(OptionValue::known).or_else(|| flags?.thinking);
    SessionChange {
        model: settings.model.clone().or_else(|| flags?.model.clone()),
        thinking: thinking.map(OptionValue::Known),
        system_prompt: settings.system_prompt.clone().or_else(|| flags?.system_prompt.clone()),
        system_prompt_append: settings.system_prompt_append.clone(),
        tools: settings.tools.clone().or_else(|| flags?.tools.clone()).filter(|tools| *tools != ["*"]),
        ..SessionChange::default()
    }
}

/// Returns those of the wanted settings that an agent receives when it starts.
pub(super) fn at_start(wanted: SessionChange, agent: &HostedAgent) -> SessionChange {
    let starts = |setting| abilities::means(agent, setting) == Some(Means::Start);
    SessionChange {
        model: wanted.model.filter(|_| starts(AgentSetting::Model)),
        thinking: wanted.thinking.filter(|_| starts(AgentSetting::Thinking)),
        system_prompt: wanted.system_prompt.filter(|_| starts(AgentSetting::SystemPrompt)),
        system_prompt_append: wanted.system_prompt_append.filter(|_| starts(AgentSetting::AddedPrompt)),
        tools: wanted.tools.filter(|_| starts(AgentSetting::Tools)),
        ..SessionChange::default()
    }
}

/// Returns whether the flags of the process are for the sessions of this agent.
fn is_for(overrides: &Overrides, name: &str) -> bool {
    matches!(&*overrides.agents, [only] if only == name)
}
