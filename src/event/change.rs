//! Changes of the settings of a session.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::content::BudgetLimits;
use crate::options::{OptionValue, Thinking};

/// The origin of a session that another agent began.
pub(crate) const DELEGATION: &str = "delegation";

/// The origin of a session that a person began in a process in the background.
pub(crate) const BACKGROUND: &str = "background";

/// Settings of a session. An absent field did not change.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionChange {
    /// One line for users.
    pub title: Option<String>,
    /// `PROVIDER/NAME`.
    pub model: Option<String>,
    /// `off`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`.
    pub thinking: Option<OptionValue<Thinking>>,
    /// The directory.
    pub cwd: Option<PathBuf>,
    /// Further directories to which the session has access.
    pub additional_directories: Option<Vec<PathBuf>>,
    /// Replaces nuncio's own system prompt.
    pub system_prompt: Option<String>,
    /// Names and globs of the tools that the model gets; `*` stands for all.
    pub tools: Option<Vec<String>>,
    /// Added to the system prompt, whichever that is.
    pub system_prompt_append: Option<String>,
    /// The name of the hosted agent that works in the session, from the settings `[agents]`.
    pub agent: Option<String>,
    /// The id of the session in the hosted agent.
    pub agent_session: Option<String>,
    /// Options that are set in the hosted agent before each turn: id and value. They replace those
    /// with the same id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_options: BTreeMap<String, String>,
    /// `comparison` of agents or `delegation` by another agent; missing if a person created the
    /// session.
    pub origin: Option<String>,
    /// Limits of the session and of its turns, which replace those of the settings.
    pub budget: Option<BudgetLimits>,
}

impl SessionChange {
    /// Changes the settings that `change` has. An empty system prompt removes an earlier one.
    pub(crate) fn apply(&mut self, change: SessionChange) {
        fn set<T>(value: &mut Option<T>, changed: Option<T>) {
            *value = changed.or(value.take());
        }
        let SessionChange { title, model, thinking, cwd, additional_directories, system_prompt, .. } = change;
        let SessionChange { tools, system_prompt_append, agent, agent_session, agent_options, origin, budget, .. } = change;
        set(&mut self.title, title);
        set(&mut self.model, model);
        set(&mut self.thinking, thinking);
        set(&mut self.cwd, cwd);
        set(&mut self.additional_directories, additional_directories);
        set(&mut self.system_prompt, system_prompt);
        self.system_prompt.take_if(|prompt| prompt.is_empty());
        set(&mut self.tools, tools);
        set(&mut self.system_prompt_append, system_prompt_append);
        set(&mut self.agent, agent);
        set(&mut self.agent_session, agent_session);
        self.agent_options.extend(agent_options);
        set(&mut self.origin, origin);
        self.budget = budget.map(|budget| budget.or(self.budget.unwrap_or_default())).or(self.budget);
    }
}
