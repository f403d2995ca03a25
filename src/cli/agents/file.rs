//! Adds hosted agents to the user's settings file. Comments and the order of the file are kept.

use std::path::Path;

use toml::{Table, Value};

use crate::cli::projects::settings_file::{SettingsFile, appended, check_name, list, table};
use crate::config::{HostedAgent, NATIVE};
use crate::error::{Error, Result};

/// Appends `[agents.NAME]` to the file, and adds the name to `allowed` of `[agents]`.
pub(in crate::cli) fn add(file: &Path, name: &str, agent: &HostedAgent) -> Result<()> {
    check_name(name)?;
    if name == NATIVE || ["allowed", "idle_ttl_s"].contains(&name) {
        let message = format!("invalid name \"{name}\": it has another meaning");
        return Err(Error::invalid_params(message).hint("choose another name for the agent, and give --kind or a command"));
    }
    let before = SettingsFile::read(file)?;
    let mut expected = before.table()?;
    let agents = expected.entry("agents").or_insert_with(|| Table::new().into());
    if agents.get(name).is_some() {
        return Err(
            Error::invalid_params(format!("the settings already have an agent {name}")).hint(format!("nuncio agents check {name}"))
        );
    }
    let section = section(name, agent);
    let mut text = before.text.clone();
    if let Some(agents) = agents.as_table_mut() {
        agents.insert(name.into(), table(&section)?["agents"][name].clone());
        let allowed = agents.entry("allowed").or_insert_with(|| Value::Array(Vec::new()));
        if let Some(allowed) = allowed.as_array_mut().filter(|allowed| !allowed.iter().any(|known| known.as_str() == Some(name))) {
            allowed.push(name.into());
            text = with_allowed(&text, name);
        }
    }
    before.replace(&appended(&text, &section), &expected)
}

/// Formats the section of an agent, with the settings that are not the default.
fn section(name: &str, agent: &HostedAgent) -> String {
    let mut text = format!("[agents.{name}]\nkind = \"{}\"\n", agent.kind.id());
    for (key, texts) in [("command", &agent.command), ("env_pass", &agent.env_pass)] {
        if !texts.is_empty() {
            text += &format!("{key} = {}\n", list(texts));
        }
    }
    text
}

/// Adds a name to the list `allowed` of `[agents]`, which is created if it does not exist.
fn with_allowed(text: &str, name: &str) -> String {
    let (mut at, mut after_header, mut is_inside) = (0, None, false);
    for line in text.split_inclusive('\n') {
        let start = line.trim_start();
        if start.starts_with('[') {
            is_inside =
                start.strip_prefix("[agents]").is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with('#'));
            after_header = after_header.or(is_inside.then_some(at + line.len()));
        }
        let value = start.strip_prefix("allowed").and_then(|rest| rest.trim_start().strip_prefix('='));
        if let Some(value) = value.filter(|_| is_inside)
            && let Some(end) = end_of_items(&text[at + line.len() - value.len()..])
        {
            let (before, after) = text.split_at(at + line.len() - value.len() + end);
            let separator = match before.as_bytes().last() {
                Some(b'[') => "",
                Some(b',') => " ",
                _ => ", ",
            };
            return format!("{before}{separator}\"{name}\"{after}");
        }
        at += line.len();
    }
    let setting = format!("allowed = [\"{name}\"]\n");
    match after_header.map(|at| text.split_at(at)) {
        Some((before, after)) => format!("{before}{}{setting}{after}", if before.ends_with('\n') { "" } else { "\n" }),
        None => appended(text, &format!("[agents]\n{setting}")),
    }
}

/// Returns the end of the last item of the array at the start of `value`, or of its `[`.
fn end_of_items(value: &str) -> Option<usize> {
    let (mut end, mut quote, mut is_comment) = (None, None, false);
    let mut characters = value.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            _ if is_comment => is_comment = character != '\n',
            (Some('"'), '\\') => _ = characters.next(),
            (Some(open), close) if open == close => (quote, end) = (None, Some(at + 1)),
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '#') => is_comment = true,
            (None, ']') => return end,
            (None, character) if character.is_whitespace() => {}
            (None, character) => end = Some(at + character.len_utf8()),
        }
    }
    None
}
