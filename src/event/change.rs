//! Changes of the settings of a session.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::BudgetLimits;
use crate::options::{OptionValue, Thinking};

/// Settings of a session. An absent field did not change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `PROVIDER/NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `off`, `minimal`, `low`, `medium` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<OptionValue<Thinking>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_directories: Option<Vec<PathBuf>>,
    /// Replaces nuncio's own system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Names and globs of the tools that the model gets; `*` stands for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Added to the system prompt, whichever that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt_append: Option<String>,
    /// The name of the hosted agent that works in the session, from the settings `[agents]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The id of the session in the hosted agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    /// Options that are set in the hosted agent before each turn: id and value. They replace those
    /// with the same id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_options: BTreeMap<String, String>,
    /// `comparison` of agents or `delegation` by another agent; missing if a person created the
    /// session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Limits of the session and of its turns, which replace those of the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetLimits>,
}
