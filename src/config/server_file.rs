//! Changes of the MCP servers in the user's settings file.

use std::path::Path;

use toml_edit::{InlineTable, Table, value};

use super::mcp_settings::McpServer;
use super::settings_file::{SettingsFile, check_name, list};
use crate::error::{Error, Result};

/// Adds `[mcp.NAME]` to the file.
pub(crate) fn add_server(file: &Path, name: &str, server: &McpServer) -> Result<()> {
    check_name(name)?;
    let mut settings = SettingsFile::read(file)?;
    if settings.table("mcp")?.contains_key(name) {
        return Err(
            Error::invalid_params(format!("the settings already have a server {name}")).hint(format!("nuncio mcp rm {name}"))
        );
    }
    settings.add("mcp", name, table(server))?;
    settings.save()
}

/// Removes `[mcp.NAME]` and its tables from the file.
pub(crate) fn remove_server(file: &Path, name: &str) -> Result<()> {
    let mut settings = SettingsFile::read(file)?;
    if !settings.remove("mcp", name) {
        return Err(Error::invalid_params(format!("{} has no server {name}", file.display())));
    }
    settings.save()
}

/// Converts a server to a table of the settings that are not the default.
fn table(server: &McpServer) -> Table {
    let mut table = Table::new();
    if !server.command.is_empty() {
        table.insert("command", list(&server.command));
    }
    for (key, text) in [("url", &server.url), ("bearer_token_env", &server.bearer_token_env)] {
        if let Some(text) = text {
            table.insert(key, value(text));
        }
    }
    for (key, pairs) in [("env", &server.env), ("headers", &server.headers)] {
        if !pairs.is_empty() {
            table.insert(key, value(pairs.iter().map(|(name, text)| (name.as_str(), text.0.as_str())).collect::<InlineTable>()));
        }
    }
    table
}
