//! The list of everything that a project starts and allows once it is trusted.

use std::path::Path;

use serde::Serialize;

use crate::app::Bootstrap;
use crate::config::{
    Policy, ProgramKind, ProjectProgram, Rule, Settings, Trust, Trusted, TrustedContent, declared_checks, project_settings,
    referenced_files,
};
use crate::error::{Error, Result};
use crate::hub::project_files::{ForeignConfig, project_files};
use crate::limits;
use crate::terminal_text::output_line;
use crate::workspace::read_small_text;

/// Directories with the skills of a project.
const SKILLS: [&str; 3] = [".nuncio/skills", ".claude/skills", ".agents/skills"];
/// Settings that the list of programs shows.
const PROGRAMS: [&str; 4] = ["hooks", "lsp", "mcp", "worktree"];

/// Everything that a directory starts and allows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TrustReport {
    directory: String,
    status: &'static str,
    /// Programs that nuncio starts by itself.
    runs: Vec<Program>,
    /// Scripts of skills, which the model runs with its tools.
    skill_scripts: Vec<String>,
    /// Permission rules that allow calls.
    allows: Vec<String>,
    /// Other settings that only a trusted project may set.
    sets: Vec<String>,
    /// Files that other agents load, without confinement by nuncio.
    other_agents: Vec<ForeignConfig>,
    /// Files whose content is compared before each start.
    compared: Vec<String>,
}

/// A program that nuncio starts by itself.
#[derive(Serialize)]
struct Program {
    kind: &'static str,
    name: String,
    command: String,
    /// TCP and UDP, which the user's settings grant.
    network: bool,
    /// Directories outside of the project that the user's settings grant.
    writable: Vec<String>,
}

impl TrustReport {
    /// Reads the project in `directory`, which is free of symlinks. Nothing of it is started.
    pub(super) fn of(bootstrap: &Bootstrap, directory: &Path) -> Result<TrustReport> {
        let user = &bootstrap.loaded.settings;
        let (settings, sets) = project_settings(user, directory)?.unwrap_or_default();
        let failed = |error| Error::io(format_args!("reading the settings of {}", directory.display()), error);
        let content = TrustedContent::read(directory).map_err(failed)?;
        let files = referenced_files(directory, content.settings.as_deref());
        let compared = content.settings.iter().map(|_| ".nuncio/config.toml".to_owned());
        let lines =
            |path: &Path| read_small_text(path).map_or_else(|_| "binary".into(), |text| format!("{} lines", text.lines().count()));
        let compared = compared.chain(files.iter().map(|(name, path)| format!("{name} ({})", lines(path))));
        let allows = settings.permissions.rules.iter().filter(|rule| rule.policy == Policy::Allow);
        Ok(TrustReport {
            directory: directory.display().to_string(),
            status: match Trust::load(&bootstrap.places).status(directory) {
                Trusted::Yes => "trusted",
                Trusted::No => "not trusted yet",
                Trusted::Changed => "changed since it was trusted",
                Trusted::NoDigest => "trusted with an older version of nuncio, without the content",
            },
            runs: programs(bootstrap, directory, &settings),
            skill_scripts: skill_scripts(directory),
            allows: allows.map(rule_text).collect(),
            sets: sets
                .into_iter()
                .filter(|name| !PROGRAMS.contains(&name.as_str()) && !name.starts_with("permissions.rules"))
                .collect(),
            other_agents: project_files(directory),
            compared: compared.collect(),
        })
    }

    /// The report for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.directory, self.status);
        let mut section = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                text += &format!(" {title}\n");
                lines.iter().for_each(|line| text += &format!("  {}\n", output_line(line)));
            }
        };
        section("runs by itself, confined to the project:", self.runs.iter().map(Program::line).collect());
        section("when the model asks for it:", self.skill_scripts.clone());
        section("allows without a question:", self.allows.clone());
        section("sets:", self.sets.clone());
        let others = self.other_agents.iter().map(|config| format!("{config}, by {}", config.agent));
        section("loaded by other agents, which nuncio does not confine:", others.collect());
        section("compared before each start:", self.compared.clone());
        if !self.runs.is_empty() {
            section("not compared:", vec!["what these programs load: imports, packages, .env files".into()]);
        }
        text
    }
}

impl Program {
    fn line(&self) -> String {
        let network = if self.network { "network" } else { "no network" };
        let writable: String = self.writable.iter().map(|path| format!(", writes {path}")).collect();
        format!("{:<6} {:<22} {}  ({network}{writable})", self.kind, self.name, self.command)
    }
}

/// A rule on one line: the tool, and what it matches.
fn rule_text(rule: &Rule) -> String {
    let kind = rule.kind.and_then(|kind| serde_json::to_value(kind).ok()?.as_str().map(String::from));
    let parts = [rule.tool.clone(), kind, rule.path.clone(), rule.pattern.clone()].into_iter().flatten();
    let text = parts.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "everything".into() } else { text }
}

fn programs(bootstrap: &Bootstrap, directory: &Path, settings: &Settings) -> Vec<Program> {
    let program = |title: &'static str, name: &str, command: String, kind: ProgramKind<'_>| {
        let grant = ProjectProgram::new(&bootstrap.places, &bootstrap.loaded.settings.trust, directory, kind, true).grant;
        let writable = grant.writable.iter().map(|path| path.display().to_string()).collect();
        Program { kind: title, name: name.into(), command, network: grant.network, writable }
    };
    let mut all = Vec::new();
    for hook in &settings.hooks {
        let event = serde_json::to_value(hook.event).ok();
        let event = event.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
        all.push(program("hook", event, hook.command.join(" "), ProgramKind::Hook));
    }
    for (name, server) in &settings.mcp {
        let command = server.url.clone().unwrap_or_else(|| server.command.join(" "));
        all.push(program("mcp", name, command, ProgramKind::Mcp(name)));
        if let Some(command) = &server.bearer_token_command {
            all.push(program("token", name, command.join(" "), ProgramKind::Mcp(name)));
        }
    }
    for (name, server) in settings.lsp.iter().filter(|(_, server)| !server.command.is_empty()) {
        all.push(program("lsp", name, server.command.join(" "), ProgramKind::Lsp(name)));
    }
    for (name, provider) in &settings.providers {
        if let Some(command) = &provider.api_key_command {
            all.push(program("token", name, command.join(" "), ProgramKind::Token));
        }
    }
    let declared = || read_small_text(&directory.join("AGENTS.md")).map(|text| declared_checks(&text)).unwrap_or_default();
    let (source, checks) = match settings.verify.commands.is_empty() {
        true => ("AGENTS.md", declared()),
        false => ("verify.commands", settings.verify.commands.clone()),
    };
    all.extend(checks.into_iter().map(|line| program("check", source, line, ProgramKind::Check)));
    all.extend(settings.worktree.setup.iter().map(|line| program("setup", "worktree", line.clone(), ProgramKind::Setup)));
    all
}

/// Returns the files of the project's skills that are no Markdown, within limits.
fn skill_scripts(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<_> = SKILLS.iter().map(|skills| directory.join(skills)).collect();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten().take(limits::PROMPT_FILES_MAX) {
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.as_ref().is_ok_and(std::fs::FileType::is_dir) && open.len() < limits::PROMPT_FILES_MAX {
                open.push(path);
            } else if path.extension().is_none_or(|extension| extension != "md") && found.len() < limits::PROMPT_FILES_MAX {
                found.push(path.strip_prefix(directory).unwrap_or(&path).display().to_string());
            }
        }
    }
    found.sort();
    found
}
