//! The settings of a session that not every agent can follow.

use crate::content::{BudgetLimit, BudgetLimits, Resource};
use crate::error::Error;
use crate::event::{Body, SessionChange};

/// A setting of a session that an agent may be unable to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentSetting {
    Model,
    Thinking,
    /// Replaces the agent's own system prompt.
    SystemPrompt,
    /// Added to the agent's own system prompt.
    AddedPrompt,
    Tools,
    /// Replaces the messages that the model sees.
    Messages,
    Compaction,
    /// A limit of a turn or of the session.
    Limit(Resource),
    Sandbox,
    Verify,
    Review,
    /// Hooks that run before a tool call.
    BeforeHooks,
    /// Hooks that run after a tool call.
    AfterHooks,
}

impl AgentSetting {
    /// Returns the name in messages and docs: the field of a method, or the section of the settings
    /// file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            AgentSetting::Model => "model",
            AgentSetting::Thinking => "thinking",
            AgentSetting::SystemPrompt | AgentSetting::AddedPrompt => "systemPrompt",
            AgentSetting::Tools => "tools",
            AgentSetting::Messages => "messages",
            AgentSetting::Compaction => "compact",
            AgentSetting::Limit(Resource::Requests) => "budget.maxRequests",
            AgentSetting::Limit(Resource::Tokens) => "budget.maxTokens",
            AgentSetting::Limit(Resource::Cost) => "budget.maxCost",
            AgentSetting::Limit(Resource::Time) => "budget.maxWallS",
            AgentSetting::Sandbox => "sandbox",
            AgentSetting::Verify => "verify",
            AgentSetting::Review => "review",
            AgentSetting::BeforeHooks => "hooks before tool calls",
            AgentSetting::AfterHooks => "hooks after tool calls",
        }
    }

    /// Returns the settings that an event sets for its session.
    pub(crate) fn set_by(body: &Body) -> Vec<AgentSetting> {
        match body {
            Body::SessionUpdated { change } => AgentSetting::changed_by(change),
            Body::MessagesReplaced { .. } => vec![AgentSetting::Messages],
            _ => Vec::new(),
        }
    }

    /// Returns the settings that a change sets for its session. An empty value removes a setting.
    pub(crate) fn changed_by(change: &SessionChange) -> Vec<AgentSetting> {
        let has_text = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let tools = change.tools.as_ref().is_some_and(|tools| *tools != ["*"]);
        let set = [
            (AgentSetting::Model, change.model.is_some()),
            (AgentSetting::Thinking, change.thinking.is_some()),
            (AgentSetting::SystemPrompt, has_text(&change.system_prompt)),
            (AgentSetting::AddedPrompt, has_text(&change.system_prompt_append)),
            (AgentSetting::Tools, tools),
        ];
        let set = set.into_iter().filter(|(_, is_set)| *is_set).map(|(setting, _)| setting);
        set.chain(change.budget.iter().flat_map(AgentSetting::limited_by)).collect()
    }

    /// Returns the settings for which a budget has a limit.
    pub(crate) fn limited_by(budget: &BudgetLimits) -> Vec<AgentSetting> {
        let amount = |resource, session| budget.get(BudgetLimit { resource, session }).unwrap_or_default();
        let resources = [Resource::Requests, Resource::Tokens, Resource::Cost, Resource::Time];
        let limited = resources.into_iter().filter(|resource| amount(*resource, false).max(amount(*resource, true)) > 0);
        limited.map(AgentSetting::Limit).collect()
    }

    /// Creates the error for a setting that an agent cannot follow.
    pub(crate) fn refused(self, agent: &str) -> Error {
        let message = format!("{}: the agent {agent} cannot follow this setting", self.name());
        Error::invalid_params(message).hint("docs/AGENTS.md lists the settings that each agent follows")
    }
}
