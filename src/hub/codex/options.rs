//! The options of Codex: its mode, model and reasoning effort. They are part of the next request
//! that starts a turn.

use serde_json::{Map, Value, json};

use crate::hub::conversation::{choice, option};
use crate::limits;
use crate::session::{AgentChoice, AgentOption};

/// The mode that uses the sandbox from the settings.
const DEFAULT: &str = "default";
/// The mode that uses a read-only sandbox.
const PLAN: &str = "plan";

/// The type of the policy that leaves the sandbox to the program that started Codex.
pub(super) const EXTERNAL: &str = "externalSandbox";

#[derive(Default)]
pub(super) struct CodexOptions {
    mode: Option<String>,
    model: String,
    effort: String,
    models: Vec<CodexModel>,
    /// Describes the mode `default`.
    asking: &'static str,
    /// Parameters of `turn/start` for the options that were set.
    set: Map<String, Value>,
}

struct CodexModel {
    choice: AgentChoice,
    efforts: Vec<AgentChoice>,
    default_effort: String,
}

impl CodexOptions {
    /// Reads the responses to `thread/start` or `thread/resume`, and to `model/list`.
    pub(super) fn opened(&mut self, thread: &Value, models: &Value) {
        let models = models["data"].as_array().into_iter().flatten();
        self.models = models.take(limits::AGENT_ITEMS_MAX).filter_map(CodexModel::from_json).collect();
        self.asking = match thread["approvalPolicy"] == "untrusted" {
            true => "Asks before each command and each change of files",
            false => "Asks as the setting approval_policy of Codex says",
        };
        self.report(&thread["model"], &thread["reasoningEffort"]);
    }

    /// Records the values that Codex reports.
    pub(super) fn report(&mut self, model: &Value, effort: &Value) {
        if let Some(model) = model.as_str() {
            self.model = model.into();
        }
        let default = || self.model().map(|model| model.default_effort.clone());
        self.effort = effort.as_str().map(String::from).or_else(default).unwrap_or_default();
    }

    fn model(&self) -> Option<&CodexModel> {
        self.models.iter().find(|model| model.choice.value == self.model)
    }

    /// Returns the options with their choices. Adds the current model if Codex does not list it:
    /// Codex does not list the models of other providers.
    pub(super) fn list(&self) -> Vec<AgentOption> {
        let described = |value: &str, name: &str, description: &str| AgentChoice {
            description: Some(description.into()),
            ..choice(value, name)
        };
        let modes = vec![
            described(DEFAULT, "Default", self.asking),
            described(PLAN, "Plan", "Only reads; a command that needs more fails"),
        ];
        let mut options = vec![option("mode", "Mode", self.mode.as_deref().unwrap_or(DEFAULT), modes)];
        let mut models: Vec<AgentChoice> = self.models.iter().map(|model| model.choice.clone()).collect();
        if !self.model.is_empty() && self.model().is_none() {
            models.push(choice(&self.model, &self.model));
        }
        if !models.is_empty() {
            options.push(option("model", "Model", &self.model, models));
        }
        if let Some(model) = self.model().filter(|model| !model.efforts.is_empty()) {
            let effort = option("thought_level", "Reasoning effort", &self.effort, model.efforts.clone());
            options.push(AgentOption { id: "effort".into(), ..effort });
        }
        options
    }

    /// Sets an option. Returns false if Codex does not offer the value.
    pub(super) fn set(&mut self, id: &str, value: &str) -> bool {
        let has = |option: &AgentOption| option.id == id && option.choices.iter().any(|choice| choice.value == value);
        if !self.list().iter().any(has) {
            return false;
        }
        match id {
            "mode" => self.mode = Some(value.into()),
            "model" => {
                self.model = value.into();
                self.set.insert("model".into(), value.into());
                let unsupported = |model: &&CodexModel| !model.efforts.iter().any(|effort| effort.value == self.effort);
                if let Some(effort) = self.model().filter(unsupported).map(|model| model.default_effort.clone()) {
                    self.set_effort(effort);
                }
            }
            _ => self.set_effort(value.into()),
        }
        true
    }

    fn set_effort(&mut self, effort: String) {
        self.set.insert("effort".into(), effort.clone().into());
        self.effort = effort;
    }

    /// Returns the options as parameters of `turn/start`. `sandbox` and `approval` apply in the
    /// mode `default`.
    pub(super) fn turn(&self, sandbox: &Value, approval: &Value) -> Map<String, Value> {
        let mut params = self.set.clone();
        let confined = sandbox["type"] == EXTERNAL;
        let plan = (if confined { sandbox.clone() } else { json!({ "type": "readOnly" }) }, json!("never"));
        let (sandbox, approval) = match self.mode.as_deref() {
            Some(PLAN) => plan,
            _ => (sandbox.clone(), approval.clone()),
        };
        params.insert("approvalPolicy".into(), approval);
        if !sandbox.is_null() {
            params.insert("sandboxPolicy".into(), sandbox);
        }
        params
    }
}

impl CodexModel {
    fn from_json(model: &Value) -> Option<CodexModel> {
        let value = model["model"].as_str()?;
        let effort = |effort: &Value| {
            let value = effort["reasoningEffort"].as_str()?;
            Some(AgentChoice { description: effort["description"].as_str().map(String::from), ..choice(value, value) })
        };
        let efforts = model["supportedReasoningEfforts"].as_array().into_iter().flatten();
        Some(CodexModel {
            choice: AgentChoice {
                description: model["description"].as_str().map(String::from),
                ..choice(value, model["displayName"].as_str().unwrap_or(value))
            },
            efforts: efforts.take(limits::AGENT_ITEMS_MAX).filter_map(effort).collect(),
            default_effort: model["defaultReasoningEffort"].as_str().unwrap_or_default().into(),
        })
    }
}
