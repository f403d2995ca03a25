//! The programs that start in a project once it is trusted.

use std::path::Path;

use serde::Serialize;

use crate::app::Bootstrap;
use crate::config::{ProgramKind, ProjectProgram, Settings, TrustedContent, files_in_command};
use crate::context::check_commands;
use crate::lsp::installed;

/// A program that nuncio starts by itself.
#[derive(Serialize)]
pub(in crate::cli) struct ProgramRow {
    kind: &'static str,
    name: String,
    command: String,
    /// TCP and UDP, which the user's settings grant.
    network: bool,
    /// Directories outside of the project that the user's settings grant.
    writable: Vec<String>,
}

impl ProgramRow {
    /// Describes the program on one line.
    pub(in crate::cli) fn line(&self) -> String {
        let network = if self.network { "network" } else { "no network" };
        let writable: String = self.writable.iter().map(|path| format!(", writes {path}")).collect();
        format!("{:<6} {:<22} {}  ({network}{writable})", self.kind, self.name, self.command)
    }
}

/// Creates the descriptions of programs in one directory.
struct Describe<'a> {
    bootstrap: &'a Bootstrap,
    directory: &'a Path,
    /// The project's settings name the programs.
    of_project: bool,
}

impl Describe<'_> {
    fn program(&self, title: &'static str, name: &str, command: String, kind: ProgramKind<'_>) -> ProgramRow {
        let Describe { bootstrap, directory, of_project } = *self;
        let grants = &bootstrap.loaded.settings.trust;
        let grant = ProjectProgram::new(&bootstrap.places, grants, directory, kind, of_project).grant;
        let writable = grant.writable.iter().map(|path| path.display().to_string()).collect();
        ProgramRow { kind: title, name: name.into(), command, network: grant.network, writable }
    }
}

/// Returns the programs that a project's files name, and the checks among them that ask first.
pub(in crate::cli) fn programs(
    bootstrap: &Bootstrap,
    directory: &Path,
    settings: &Settings,
    content: &TrustedContent,
) -> (Vec<ProgramRow>, Vec<String>) {
    let describe = Describe { bootstrap, directory, of_project: true };
    let mut all = Vec::new();
    for hook in &settings.hooks {
        let event = serde_json::to_value(hook.event).ok();
        let event = event.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
        all.push(describe.program("hook", event, hook.command.join(" "), ProgramKind::Hook));
    }
    for (name, server) in settings.mcp.iter().filter(|(_, server)| server.enabled) {
        if server.url.is_none() {
            all.push(describe.program("mcp", name, server.command.join(" "), ProgramKind::Mcp(name)));
        }
        if let Some(command) = &server.bearer_token_command {
            all.push(describe.program("token", name, command.join(" "), ProgramKind::Mcp(name)));
        }
    }
    for (name, server) in settings.lsp.iter().filter(|(_, server)| !server.command.is_empty()) {
        all.push(describe.program("lsp", name, server.command.join(" "), ProgramKind::Lsp(name)));
    }
    for (name, provider) in &settings.providers {
        if let Some(command) = &provider.api_key_command {
            all.push(describe.program("token", name, command.join(" "), ProgramKind::Token));
        }
    }
    let (checks, asks) = checks(directory, settings, content);
    all.extend(checks.into_iter().map(|(source, line)| describe.program("check", source, line, ProgramKind::Check)));
    let setup = settings.worktree.setup.iter();
    all.extend(setup.map(|line| describe.program("setup", "worktree", line.clone(), ProgramKind::Setup)));
    (all, asks)
}

/// Returns the check commands that run at the end of a turn, each with its source, and those that
/// ask first, because they are not a part of what is trusted.
fn checks(directory: &Path, settings: &Settings, content: &TrustedContent) -> (Vec<(&'static str, String)>, Vec<String>) {
    if !settings.verify.commands.is_empty() {
        return (settings.verify.commands.iter().map(|line| ("verify.commands", line.clone())).collect(), Vec::new());
    }
    if !content.checks.is_empty() {
        return (content.checks.iter().map(|line| ("AGENTS.md", line.clone())).collect(), Vec::new());
    }
    let of_makefile = check_commands::find(directory, false);
    let (runs, asks): (Vec<_>, Vec<_>) =
        check_commands::find(directory, true).into_iter().partition(|line| of_makefile.contains(line));
    let asks = asks.into_iter().map(|line| format!("check of an AGENTS.md above: {line}"));
    (runs.into_iter().map(|line| ("Makefile", line)).collect(), asks.collect())
}

/// Returns the programs of the user's settings that start in `directory` once it is trusted: those
/// with a `cwd` there, and those that run a file of it.
pub(in crate::cli) fn own_programs(bootstrap: &Bootstrap, directory: &Path) -> Vec<ProgramRow> {
    let (settings, places) = (&bootstrap.loaded.settings, &bootstrap.places);
    let describe = Describe { bootstrap, directory, of_project: false };
    let shown = directory.display().to_string();
    let runs_here = |command: &[String], cwd: Option<&Path>, outside: &Path| {
        let there = cwd.map(|cwd| directory.join(cwd.to_string_lossy().replace("$WORKSPACE", &shown)));
        let words: Vec<String> = command.iter().map(|word| word.replace("$WORKSPACE", &shown)).collect();
        let base = there.as_deref().unwrap_or(outside);
        let inside = |path: &Path| std::fs::canonicalize(path).is_ok_and(|real| real.starts_with(directory));
        let of_file = |file: &Path| inside(file) || file.parent().is_some_and(inside);
        inside(base) || files_in_command(base, &words).iter().any(|file| of_file(file))
    };
    let mut all = Vec::new();
    let beside = places.file.parent().unwrap_or(Path::new("/"));
    for hook in settings.hooks.iter().filter(|hook| runs_here(&hook.command, hook.cwd.as_deref(), beside)) {
        let event = serde_json::to_value(hook.event).ok();
        let event = event.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
        all.push(describe.program("hook", event, hook.command.join(" "), ProgramKind::Hook));
    }
    for (name, server) in settings.mcp.iter().filter(|(_, server)| server.enabled) {
        let (command, cwd) = (&server.command, server.cwd.as_deref());
        if server.url.is_none() && runs_here(command, cwd, &places.mcp_work(name)) {
            all.push(describe.program("mcp", name, command.join(" "), ProgramKind::Mcp(name)));
        }
        if let Some(command) = server.bearer_token_command.as_ref().filter(|command| runs_here(command, None, Path::new("/"))) {
            all.push(describe.program("token", name, command.join(" "), ProgramKind::Mcp(name)));
        }
    }
    for (name, provider) in &settings.providers {
        if let Some(command) = provider.api_key_command.as_ref().filter(|command| runs_here(command, None, Path::new("/"))) {
            all.push(describe.program("token", name, command.join(" "), ProgramKind::Token));
        }
    }
    all
}

/// Returns the language servers on PATH that tools start in a trusted project, with their
/// languages. A server of the settings replaces the one for its language.
pub(in crate::cli) fn path_servers(bootstrap: &Bootstrap, settings: &Settings) -> Vec<String> {
    let own = &bootstrap.loaded.settings.lsp;
    let search = bootstrap.environment.get("PATH").unwrap_or_default();
    let unnamed = installed(search).filter(|(name, _)| !own.contains_key(*name) && !settings.lsp.contains_key(*name));
    unnamed.map(|(name, program)| format!("{name}: {program}")).collect()
}
