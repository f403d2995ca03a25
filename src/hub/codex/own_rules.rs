//! The settings and files with which Codex acts without asking nuncio.

use std::fs::read_dir;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::hub::own_rules::{AskingSettings, OwnRules};
use crate::hub::project_config;
use crate::options::Mode;

/// The settings that make Codex ask nuncio before each command and each change of files: the key in
/// the configuration, the parameter of a thread, and nuncio's value.
pub(super) const ASKING: [(&str, &str, &str); 2] =
    [("approval_policy", "approvalPolicy", "untrusted"), ("approvals_reviewer", "approvalsReviewer", "user")];

/// The configuration of all users of the machine.
const SYSTEM: &str = "/etc/codex";

/// Returns the cause with which Codex acts without asking nuncio.
pub(in crate::hub) fn own_rules(settings: &AskingSettings<'_>) -> Option<OwnRules> {
    let AskingSettings { services, name, config, command, mode } = settings;
    // An invalid configuration fails the start.
    let config: Value = config.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let replaced = |(key, _, ours): &(&str, &str, &str)| {
        let value = config.get(key).filter(|value| *value != ours)?;
        Some(format!("{key} = {value} in config of [agents.{name}]"))
    };
    // In mode plan, nuncio replaces them.
    if let Some(source) = ASKING.iter().filter(|_| *mode != Mode::Plan).find_map(replaced) {
        return Some(OwnRules { source, unasked: OwnRules::COMMANDS_AND_EDITS });
    }
    // Codex reads the rules of a project only if `projects` in the configuration can trust it.
    let project = command.cwd.ancestors().filter(|_| config.get("projects").is_some()).map(|directory| directory.join(".codex"));
    let directories = project_config::codex_home(services, command).into_iter().chain([SYSTEM.into()]).chain(project);
    let file = directories.filter_map(|directory| rules_file(&directory)).next()?;
    Some(OwnRules { source: file.display().to_string(), unasked: OwnRules::COMMANDS })
}

/// Returns a file of rules in a directory of Codex. They can allow commands, which then run without
/// a question and outside of the sandbox of Codex.
fn rules_file(directory: &Path) -> Option<PathBuf> {
    let files = read_dir(directory.join("rules")).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let has_rules = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "rules") && !is_empty(path);
    files.filter(has_rules).min()
}

fn is_empty(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.len() == 0)
}
