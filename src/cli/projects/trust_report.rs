//! The list of everything that a project starts and allows once it is trusted.

use std::path::Path;

use serde::Serialize;
use toml::{Table, Value};

use super::trust_programs::{ProgramRow, own_programs, path_servers, programs};
use crate::app::Bootstrap;
use crate::config::{Policy, Rule, Trust, TrustStatus, TrustedContent, mask_urls, project_settings};
use crate::error::Result;
use crate::hub::project_files::{ForeignConfig, project_files};
use crate::limits;
use crate::terminal_text::output_line;

/// Maximum number of entries of skill directories that are read to list their scripts.
const SKILL_ENTRIES_MAX: usize = 20_000;

/// Directories with the skills of a project.
const SKILLS: [&str; 3] = [".nuncio/skills", ".claude/skills", ".agents/skills"];
/// Settings that other parts of the list show. `*` is any name.
const SHOWN: [&str; 8] = [
    "lsp.*.command",
    "mcp.*.bearer_token_command",
    "mcp.*.command",
    "mcp.*.url",
    "permissions.rules",
    "providers.*.api_key_command",
    "verify.commands",
    "worktree.setup",
];

/// Everything that a directory starts and allows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct TrustReport {
    directory: String,
    status: &'static str,
    /// Programs of the project that nuncio starts by itself.
    runs: Vec<ProgramRow>,
    /// Programs of the user's settings that run in the project or run a file of it.
    own_programs: Vec<ProgramRow>,
    /// Language servers on PATH that tools start. In the mode `ask` they are not confined.
    path_servers: Vec<String>,
    /// URLs of the project's MCP servers, to which nuncio connects.
    connects: Vec<String>,
    /// Checks that run by themselves only after a permission request.
    asks: Vec<String>,
    /// Scripts of skills, which the model runs with its tools.
    skill_scripts: Vec<String>,
    skill_scripts_omitted: usize,
    /// Permission rules that allow calls.
    allows: Vec<String>,
    /// Other settings that only a trusted project may set, with their values.
    sets: Vec<String>,
    /// Files that other agents load, without confinement by nuncio.
    other_agents: Vec<ForeignConfig>,
    /// Files whose content is compared before each start.
    compared: Vec<String>,
}

impl TrustReport {
    /// Describes the project in `directory`, which is free of symlinks. Nothing of it is started.
    pub(in crate::cli) fn new(bootstrap: &Bootstrap, directory: &Path, content: &TrustedContent) -> Result<TrustReport> {
        let user = &bootstrap.loaded.settings;
        let settings = content.settings.as_deref().map(|text| project_settings(user, directory, text)).transpose()?;
        let (settings, widening) = settings.unwrap_or_default();
        let compared = content.settings.iter().map(|_| ".nuncio/config.toml".to_owned());
        let compared = compared.chain(content.files.iter().map(|(name, file)| format!("{name} ({})", file.size())));
        let allows = settings.permissions.rules.iter().filter(|rule| rule.policy == Policy::Allow);
        let (runs, asks) = programs(bootstrap, directory, &settings, content);
        let (skill_scripts, skill_scripts_omitted) = skill_scripts(directory);
        let mut sets = Vec::new();
        values(&widening, "", &mut sets);
        let urls =
            settings.mcp.iter().filter_map(|(name, server)| Some(format!("mcp {name}: {}", mask_urls(server.url.as_deref()?))));
        Ok(TrustReport {
            directory: directory.display().to_string(),
            status: match Trust::load(&bootstrap.places).status(directory) {
                TrustStatus::Yes => "trusted",
                TrustStatus::No => "not trusted yet",
                TrustStatus::Changed => "changed since it was trusted",
                TrustStatus::NoDigest => "trusted with an older version of nuncio, without the content",
            },
            runs,
            own_programs: own_programs(bootstrap, directory),
            path_servers: path_servers(bootstrap, &settings),
            connects: urls.collect(),
            asks,
            skill_scripts,
            skill_scripts_omitted,
            allows: allows.map(rule_text).collect(),
            sets,
            other_agents: project_files(directory),
            compared: compared.collect(),
        })
    }

    /// Formats the report for people.
    pub(in crate::cli) fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.directory, self.status);
        let mut section = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                text += &format!(" {title}\n");
                lines.iter().for_each(|line| text += &format!("  {}\n", output_line(line)));
            }
        };
        let lines = |programs: &[ProgramRow]| programs.iter().map(ProgramRow::line).collect();
        section("runs by itself, confined to the project:", lines(&self.runs));
        section("runs of your own settings, confined to the project:", lines(&self.own_programs));
        section("language servers on PATH, not confined in the mode ask:", self.path_servers.clone());
        section("connects to:", self.connects.clone());
        section("runs after a permission request:", self.asks.clone());
        let omitted = (self.skill_scripts_omitted > 0).then(|| format!("and at least {} more", self.skill_scripts_omitted));
        section("when the model asks for it:", self.skill_scripts.iter().cloned().chain(omitted).collect());
        section("allows without a question:", self.allows.clone());
        section("sets:", self.sets.clone());
        let others = self.other_agents.iter().map(|config| format!("{config}, by {}", config.agent));
        section("loaded by other agents, which nuncio does not confine:", others.collect());
        section("compared before each start:", self.compared.clone());
        if !self.runs.is_empty() || !self.own_programs.is_empty() {
            section(
                "not compared:",
                vec!["what these programs load: imports, packages, Makefile, .env files, git hooks and filters".into()],
            );
        }
        text
    }
}

/// Lists the values of settings that no other part of the list shows.
fn values(table: &Table, prefix: &str, all: &mut Vec<String>) {
    for (name, value) in table {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(inner) => values(inner, &path, all),
            _ if path == "hooks" || SHOWN.iter().any(|shown| fits(shown, &path)) => {}
            _ => all.push(format!("{path} = {}", mask_urls(&value.to_string()))),
        }
    }
}

/// Returns whether a dotted name fits a pattern. The name that `*` stands for may contain dots.
fn fits(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => path == pattern,
        Some((start, end)) => path.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
    }
}

/// Formats a rule on one line: the tool, and the calls that the rule matches.
fn rule_text(rule: &Rule) -> String {
    let kind = rule.kind.and_then(|kind| serde_json::to_value(kind).ok()?.as_str().map(String::from));
    let parts = [rule.tool.clone(), kind, rule.path.clone(), rule.pattern.clone()].into_iter().flatten();
    let text = parts.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "everything".into() } else { text }
}

/// Returns the files of the project's skills that are no Markdown, within limits, and the number of
/// those beyond the limits that were found.
fn skill_scripts(directory: &Path) -> (Vec<String>, usize) {
    let mut found = Vec::new();
    let mut open: Vec<_> = SKILLS.iter().map(|skills| directory.join(skills)).collect();
    let mut left = SKILL_ENTRIES_MAX;
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten().take(left) {
            left -= 1;
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            } else if path.extension().is_none_or(|extension| extension != "md") {
                found.push(path.strip_prefix(directory).unwrap_or(&path).display().to_string());
            }
        }
    }
    found.sort();
    let omitted = found.len().saturating_sub(limits::PROMPT_FILES_MAX) + if left == 0 { open.len().max(1) } else { 0 };
    found.truncate(limits::PROMPT_FILES_MAX);
    (found, omitted)
}
