//! Parses settings files and checks their values.

use std::fmt;
use std::path::Path;

use toml::{Table, Value};

use super::agent_settings::NATIVE;
use super::context_settings;
use super::hook_settings;
use super::model_settings::{self, Provider};
use super::secret::{CREDENTIALS_HINT, has_credentials, mask_urls};
use super::settings::Settings;
use crate::error::{Error, Kind, Result, out_of_files};
use crate::similar_names;
use crate::workspace::read_small_text;

/// Parses a settings file. Returns its table and text, or `None` if the file is missing and not
/// `required`.
pub(super) fn read(path: &Path, required: bool) -> Result<Option<(Table, String)>> {
    let text = match read_small_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => return Ok(None),
        Err(error) if out_of_files(&error) => return Err(Error::io(format_args!("reading config {}", path.display()), error)),
        Err(error) => return Err(invalid(path, error)),
    };
    toml::from_str(&text).map(|table| Some((table, text))).map_err(|error| invalid(path, error))
}

/// Converts a table to settings and checks their values. Errors name `path`.
pub(super) fn parse(table: &Table, path: &Path) -> Result<Settings> {
    let settings: Settings = serde_path_to_error::deserialize(Value::Table(table.clone())).map_err(|error| {
        let field = error.path().to_string();
        let message = error.into_inner().to_string();
        let hint = nearest(&message);
        let mut error = invalid(path, if field == "." { message.trim().into() } else { format!("{field}: {}", message.trim()) });
        error.hint = hint;
        error
    })?;
    check_servers(&settings).map_err(|problem| invalid(path, problem))?;
    context_settings::check(&settings.context).map_err(|problem| invalid(path, problem))?;
    hook_settings::check(&settings.hooks).map_err(|problem| invalid(path, problem))?;
    check_trust(&settings).map_err(|problem| invalid(path, problem))?;
    check_rules(&settings).map_err(|problem| invalid(path, problem))?;
    settings.budget.check().map_err(|problem| invalid(path, problem))?;
    settings.chat.check().map_err(|problem| invalid(path, problem))?;
    model_settings::check(&settings.providers, &settings.models).map_err(|problem| invalid(path, problem))?;
    let has_credentials = |provider: &Provider| provider.base_url.as_deref().is_some_and(has_credentials);
    if let Some((name, _)) = settings.providers.iter().find(|(_, provider)| has_credentials(provider)) {
        return Err(invalid(path, format!("providers.{name}.base_url has a user name or password")).hint(CREDENTIALS_HINT));
    }
    Ok(settings)
}

/// Checks the text of a settings file. Errors name `path`.
pub(crate) fn check_settings(path: &Path, text: &str) -> Result<()> {
    let table: Table = toml::from_str(text).map_err(|error| invalid(path, error))?;
    parse(&table, path).map(drop)
}

/// Rejects invalid agents and MCP servers, a language server that has a command but no files, and
/// invalid globs.
fn check_servers(settings: &Settings) -> Result<(), String> {
    for (name, agent) in &settings.agents.agents {
        if name == NATIVE {
            return Err(format!("agents.{name}: the name is that of nuncio's own agent"));
        }
        agent.check().map_err(|why| format!("agents.{name}: {why}"))?;
    }
    for (name, server) in &settings.mcp {
        server.check().map_err(|why| format!("mcp.{name}: {why}"))?;
    }
    for (name, server) in &settings.lsp {
        if !server.command.is_empty() && server.files.is_empty() {
            return Err(format!("lsp.{name}.files: set file patterns, e.g. files = [\"*.rs\"]"));
        }
        for glob in &server.files {
            globset::Glob::new(glob).map_err(|error| format!("lsp.{name}.files: {error}"))?;
        }
    }
    Ok(())
}

/// Rejects directories in `trust` that are not absolute.
fn check_trust(settings: &Settings) -> Result<(), String> {
    match settings.trust.keys().find(|directory| directory.is_relative() && !directory.starts_with("~")) {
        Some(directory) => Err(format!("trust.\"{}\": begin the directory with / or ~/", directory.display())),
        None => Ok(()),
    }
}

/// Rejects rules for a directory that is not absolute, and exact ones without a directory.
fn check_rules(settings: &Settings) -> Result<(), String> {
    if settings.permissions.rules.iter().any(|rule| rule.is_exact() && rule.directory.is_none()) {
        return Err("permissions.rules: an exact rule needs a directory".into());
    }
    let mut directories = settings.permissions.rules.iter().filter_map(|rule| rule.directory.as_ref());
    match directories.find(|directory| directory.is_relative() && !directory.starts_with("~")) {
        Some(directory) => Err(format!("permissions.rules: directory \"{}\": begin it with / or ~/", directory.display())),
        None => Ok(()),
    }
}

/// Creates an error about the settings file at `path`, with credentials in URLs masked.
pub(super) fn invalid(path: &Path, problem: impl fmt::Display) -> Error {
    // The text of the problem may quote the file, including URLs with credentials.
    let problem = mask_urls(&problem.to_string());
    Error::new(Kind::InvalidParams, format!("reading config {}: {problem}", path.display()))
}

/// Suggests the closest known name for serde's error message "unknown field `x`, expected one of
/// `a`, `b`", and for the message about an unknown variant.
fn nearest(message: &str) -> Option<String> {
    let rest = ["unknown field ", "unknown variant "].iter().find_map(|start| message.strip_prefix(start))?;
    let mut names = rest.lines().next()?.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    let known: Vec<&str> = names.collect();
    closest(unknown, &known)
}

/// Returns a hint with the known name that is most similar to `unknown`, if any is similar.
pub(super) fn closest(unknown: &str, known: &[&str]) -> Option<String> {
    most_similar(unknown, known).map(|name| format!("did you mean `{name}`?"))
}

/// Returns the known name that is most similar to `unknown`, if any is similar.
pub(crate) fn most_similar<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    similar_names::nearest(unknown, known, 0.5).map(|index| known[index])
}
