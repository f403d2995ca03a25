//! The settings of a session that its hosted agent receives.

use super::abilities::{self, Means};
use crate::config::{HostedAgent, Overrides};
use crate::options::{OptionValue, Thinking};
use crate::session::{AgentSetting, SessionState};

/// Settings of a session. `None`: the agent uses its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SessionSettings {
    pub model: Option<String>,
    pub thinking: Option<Thinking>,
    /// Replaces the agent's own system prompt.
    pub system_prompt: Option<String>,
    /// Added to the agent's own system prompt.
    pub added_prompt: Option<String>,
    /// Names of the agent's tools.
    pub tools: Option<Vec<String>>,
}

impl SessionSettings {
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

    /// Returns the settings of a session, from its log, else from the flags of the process.
    pub(super) fn new(state: &SessionState, overrides: &Overrides, name: &str) -> SessionSettings {
        let flags = Some(overrides).filter(|overrides| is_for(overrides, name));
        SessionSettings {
            model: state.settings.model.clone().or_else(|| flags?.model.clone()),
            thinking: state.settings.thinking.as_ref().and_then(OptionValue::known).or_else(|| flags?.thinking),
            system_prompt: state.settings.system_prompt.clone().or_else(|| flags?.system_prompt.clone()),
            added_prompt: state.settings.system_prompt_append.clone(),
            tools: state.settings.tools.clone().or_else(|| flags?.tools.clone()).filter(|tools| *tools != ["*"]),
        }
    }

    /// Returns the settings that an agent receives when it starts.
    pub(super) fn at_start(self, agent: &HostedAgent) -> SessionSettings {
        let starts = |setting| abilities::means(agent, setting) == Some(Means::Start);
        SessionSettings {
            model: self.model.filter(|_| starts(AgentSetting::Model)),
            thinking: self.thinking.filter(|_| starts(AgentSetting::Thinking)),
            system_prompt: self.system_prompt.filter(|_| starts(AgentSetting::SystemPrompt)),
            added_prompt: self.added_prompt.filter(|_| starts(AgentSetting::AddedPrompt)),
            tools: self.tools.filter(|_| starts(AgentSetting::Tools)),
        }
    }
}

/// Returns whether the flags of the process are for the sessions of this agent.
fn is_for(overrides: &Overrides, name: &str) -> bool {
    matches!(&*overrides.agents, [only] if only == name)
}
