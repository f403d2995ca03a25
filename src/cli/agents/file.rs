//! Adds hosted agents to the user's settings file.

use std::path::Path;

use toml_edit::{Table, Value, value};

use crate::config::settings_file::{SettingsFile, append, check_name, list};
use crate::config::{HostedAgent, NATIVE};
use crate::error::{Error, Result};

/// Adds `[agents.NAME]` to the file, and the name to `allowed` of `[agents]`.
pub(in crate::cli) fn add(file: &Path, name: &str, agent: &HostedAgent) -> Result<()> {
    check_name(name)?;
    if name == NATIVE || ["allowed", "idle_ttl_s"].contains(&name) {
        let message = format!("invalid name \"{name}\": it has another meaning");
        return Err(Error::invalid_params(message).hint("choose another name for the agent, and give --kind or a command"));
    }
    let mut settings = SettingsFile::read(file)?;
    let agents = settings.table("agents")?;
    if agents.contains_key(name) {
        return Err(
            Error::invalid_params(format!("the settings already have an agent {name}")).hint(format!("nuncio agents check {name}"))
        );
    }
    let allowed = agents.entry("allowed").or_insert(list(&[]));
    let allowed = allowed.as_array_mut().ok_or_else(|| Error::invalid_params("agents.allowed is not a list"))?;
    if !allowed.iter().any(|known| known.as_str() == Some(name)) {
        append(allowed, name);
    }
    settings.add("agents", name, table(agent))?;
    settings.save()
}

/// Converts an agent to a table of the settings that are not the default.
fn table(agent: &HostedAgent) -> Table {
    let mut table = Table::new();
    table.insert("kind", value(Value::from(agent.kind.id())));
    for (key, texts) in [("command", &agent.command), ("env_pass", &agent.env_pass)] {
        if !texts.is_empty() {
            table.insert(key, list(texts));
        }
    }
    table
}
