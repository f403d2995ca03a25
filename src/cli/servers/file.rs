//! Changes of the MCP servers in the user's settings file. Comments and the order of the file stay.

use std::path::Path;

use toml::{Table, Value};

use crate::cli::projects::settings_file::{SettingsFile, appended, check_name, list, table};
use crate::config::McpServer;
use crate::error::{Error, Result};

/// Appends `[mcp.NAME]` to the file.
pub(crate) fn add(file: &Path, name: &str, server: &McpServer) -> Result<()> {
    check_name(name)?;
    let before = SettingsFile::read(file)?;
    let mut expected = before.table()?;
    let servers = expected.entry("mcp").or_insert_with(|| Table::new().into());
    if servers.get(name).is_some() {
        return Err(
            Error::invalid_params(format!("the settings already have a server {name}")).hint(format!("nuncio mcp rm {name}"))
        );
    }
    let section = section(name, server);
    let added = table(&section)?["mcp"][name].clone();
    if let Some(servers) = servers.as_table_mut() {
        servers.insert(name.into(), added);
    }
    before.replace(&appended(&before.text, &section), &expected)
}

/// Removes `[mcp.NAME]` and its tables from the file.
pub(crate) fn remove(file: &Path, name: &str) -> Result<()> {
    let before = SettingsFile::read(file)?;
    let mut expected = before.table()?;
    let servers = expected.get_mut("mcp").and_then(Value::as_table_mut);
    if servers.and_then(|servers| servers.remove(name)).is_none() {
        return Err(Error::invalid_params(format!("{} has no server {name}", file.display())));
    }
    if expected.get("mcp").and_then(Value::as_table).is_some_and(Table::is_empty) {
        expected.remove("mcp");
    }
    before.replace(&without(&before.text, name), &expected)
}

/// Formats the section of a server with the settings that are not the default.
fn section(name: &str, server: &McpServer) -> String {
    let mut text = format!("[mcp.{name}]\n");
    let mut line = |key: &str, value: Value| text += &format!("{key} = {value}\n");
    if !server.command.is_empty() {
        line("command", list(&server.command));
    }
    for (key, value) in [("url", &server.url), ("bearer_token_env", &server.bearer_token_env)] {
        if let Some(value) = value {
            line(key, Value::String(value.clone()));
        }
    }
    for (key, pairs) in [("env", &server.env), ("headers", &server.headers)] {
        if !pairs.is_empty() {
            line(key, Value::Table(pairs.iter().map(|(name, text)| (name.clone(), Value::String(text.0.clone()))).collect()));
        }
    }
    text
}

/// Removes the tables of the server from the text. Comments before the next table are kept.
fn without(text: &str, name: &str) -> String {
    let (own, inner) = (format!("[mcp.{name}]"), format!("[mcp.{name}."));
    let (mut kept, mut removed, mut removing) = (String::new(), Vec::new(), false);
    for line in text.split_inclusive('\n') {
        let start = line.trim_start();
        if start.starts_with('[') && removing | start.starts_with("[mcp.") {
            let ours = start.starts_with(&own) || start.starts_with(&inner);
            if removing && !ours {
                // The comments and blank lines before this table belong to it.
                let last = removed.iter().rposition(|line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
                kept.extend(removed.drain(..).skip(last.map_or(0, |last| last + 1)));
            }
            removing = ours;
        }
        if removing { removed.push(line) } else { kept += line }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tables_of_the_server_are_removed() {
        let text = "# top\nmodel = \"x/y\"\n\n[mcp.a]\ncommand = [\n  \"x\",\n]\n# of a\n[mcp.a.env]\nB = \"1\"\n\n# about ab\n[mcp.ab]\nurl = \"http://h/\"\n";
        let expected = "# top\nmodel = \"x/y\"\n\n\n# about ab\n[mcp.ab]\nurl = \"http://h/\"\n";
        assert_eq!(without(text, "a"), expected);
        assert_eq!(without(text, "none"), text);
        assert_eq!(without("[mcp.a]\nurl = \"u\"\n", "a"), "");
    }
}
