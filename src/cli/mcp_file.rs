//! Changes of the MCP servers in the user's settings file. Comments and the order of the file stay.

use std::path::Path;

use toml::{Table, Value};

use crate::config::McpServer;
use crate::error::{Error, Result};
use crate::workspace::{create_private_dir, read_small_text, replace_private};

/// Appends `[mcp.NAME]` to the file.
pub(crate) fn add(file: &Path, name: &str, server: &McpServer) -> Result<()> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
        return Err(Error::invalid_params(format!("invalid name \"{name}\"")).hint("use letters, digits, `_` and `-`"));
    }
    let before = read(file)?;
    if servers(&before)?.contains_key(name) {
        return Err(
            Error::invalid_params(format!("the settings already have a server {name}")).hint(format!("nuncio mcp rm {name}"))
        );
    }
    let separator = if before.is_empty() || before.ends_with("\n\n") {
        ""
    } else if before.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let after = format!("{before}{separator}{}", section(name, server));
    if !servers(&after)?.contains_key(name) {
        return Err(by_hand(file));
    }
    write(file, &after)
}

/// Removes `[mcp.NAME]` and its tables from the file.
pub(crate) fn remove(file: &Path, name: &str) -> Result<()> {
    let before = read(file)?;
    let mut expected = table(&before)?;
    let servers = expected.get_mut("mcp").and_then(Value::as_table_mut);
    if servers.and_then(|servers| servers.remove(name)).is_none() {
        return Err(Error::invalid_params(format!("{} has no server {name}", file.display())));
    }
    if expected.get("mcp").and_then(Value::as_table).is_some_and(Table::is_empty) {
        expected.remove("mcp");
    }
    let after = without(&before, name);
    // The text was understood only if exactly the server is gone.
    if table(&after).ok().as_ref() != Some(&expected) {
        return Err(by_hand(file));
    }
    write(file, &after)
}

/// The section of a server, with the settings that are not the default.
fn section(name: &str, server: &McpServer) -> String {
    let mut text = format!("[mcp.{name}]\n");
    let mut line = |key: &str, value: Value| text += &format!("{key} = {value}\n");
    let list = |texts: &[String]| Value::Array(texts.iter().cloned().map(Value::String).collect());
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

/// The text without the tables of the server. Comments before the next table stay.
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

fn read(file: &Path) -> Result<String> {
    match read_small_text(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Error::io(format_args!("reading {}", file.display()), error)),
    }
}

/// Replaces the file, or the file to which a link leads.
fn write(file: &Path, text: &str) -> Result<()> {
    let file = &std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    if let Some(parent) = file.parent() {
        create_private_dir(parent)?;
    }
    replace_private(file, text.as_bytes()).map_err(|error| Error::io(format_args!("writing {}", file.display()), error))
}

fn table(text: &str) -> Result<Table> {
    text.parse().map_err(|error: toml::de::Error| Error::invalid_params(format!("the settings file: {}", error.message())))
}

fn servers(text: &str) -> Result<Table> {
    Ok(table(text)?.get("mcp").and_then(Value::as_table).cloned().unwrap_or_default())
}

fn by_hand(file: &Path) -> Error {
    Error::invalid_params(format!("{} is written in a way that cannot be changed automatically", file.display()))
        .hint("change it in an editor")
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
