//! Models, agents and slash commands that an OpenCode server offers in its directory.

use std::collections::HashMap;

use serde_json::Value;

use crate::context::commands::SlashCommand;
use crate::hub::conversation::{choice, option, slash_command};
use crate::hub::opencode_server::OpencodeServer;
use crate::limits;
use crate::session::{AgentChoice, AgentOption};

/// Agents that every version of OpenCode has.
const BUILD: &str = "build";
pub(super) const PLAN: &str = "plan";

/// Models, agents and slash commands that a server offers.
pub(super) struct Catalog {
    /// `PROVIDER/MODEL` each.
    models: Vec<AgentChoice>,
    pub default_model: String,
    agents: Vec<AgentChoice>,
    default_agent: String,
    pub commands: Vec<SlashCommand>,
    /// Tokens of the context windows, by provider and model.
    pub windows: HashMap<String, u64>,
}

impl Catalog {
    /// Fetches the lists. A list that cannot be read is empty.
    pub(super) async fn read(server: &OpencodeServer) -> Catalog {
        let (providers, agents, commands, config) = tokio::join!(
            server.get("/config/providers", &[]),
            server.get("/agent", &[]),
            server.get("/command", &[]),
            server.get("/config", &[]),
        );
        let (agents, commands, config) = (agents.unwrap_or_default(), commands.unwrap_or_default(), config.unwrap_or_default());
        let mut catalog = Catalog {
            models: Vec::new(),
            default_model: config["model"].as_str().unwrap_or_default().into(),
            agents: agents.as_array().into_iter().flatten().take(limits::AGENT_ITEMS_MAX).filter_map(agent).collect(),
            default_agent: config["default_agent"].as_str().unwrap_or(BUILD).into(),
            commands: Vec::new(),
            windows: HashMap::new(),
        };
        if catalog.agents.is_empty() {
            catalog.agents = vec![choice(BUILD, "Build"), choice(PLAN, "Plan")];
        }
        let list = commands.as_array().into_iter().flatten();
        catalog.commands = list.take(limits::AGENT_ITEMS_MAX).filter_map(|command| slash_command(command, &Value::Null)).collect();
        catalog.add_models(&providers.unwrap_or_default());
        catalog
    }

    fn add_models(&mut self, providers: &Value) {
        for provider in providers["providers"].as_array().into_iter().flatten() {
            for (id, model) in provider["models"].as_object().into_iter().flatten() {
                let Some(provider) = provider["id"].as_str() else { continue };
                let name = format!("{provider}/{id}");
                if let Some(window) = model["limit"]["context"].as_u64() {
                    self.windows.insert(name.clone(), window);
                }
                if self.models.len() < limits::AGENT_ITEMS_MAX {
                    self.models.push(choice(&name, model["name"].as_str().unwrap_or(id)));
                }
            }
        }
    }

    /// Returns the options with these current values; `None` selects the default value.
    pub(super) fn options(&self, agent: Option<&str>, model: Option<&str>) -> Vec<AgentOption> {
        let mut options = vec![option("mode", "Mode", agent.unwrap_or(&self.default_agent), self.agents.clone())];
        if !self.models.is_empty() {
            options.push(option("model", "Model", model.unwrap_or(&self.default_model), self.models.clone()));
        }
        options
    }
}

/// Converts an agent that a user can choose. Returns `None` for a subagent or a hidden agent.
fn agent(agent: &Value) -> Option<AgentChoice> {
    let name = agent["name"].as_str().filter(|_| agent["mode"] != "subagent" && agent["hidden"] != true)?;
    Some(AgentChoice { description: agent["description"].as_str().map(String::from), ..choice(name, name) })
}
