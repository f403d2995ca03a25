//! The checks of `nuncio doctor` for programs that nuncio starts: MCP servers, hooks, agents,
//! language servers and git, and for the sandbox of commands. The settings of an untrusted project
//! name no programs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::api::App;
use crate::cli::servers::command::connect;
use crate::config::{HookSettings, LoadedSettings, SandboxMode};
use crate::hub::{self, KnownAgent};
use crate::lsp;
use crate::process::{Command, PLATFORM, Sandbox};
use crate::runtime::SessionEnvironment;

/// Maximum time of the programs that `nuncio doctor` starts.
const DOCTOR_PROGRAMS: Duration = Duration::from_secs(15);

/// A line of the report.
pub(in crate::cli) enum Finding {
    Ok(String),
    /// Something optional is missing.
    Note(String),
    Fail(String),
}

impl From<Result<String, String>> for Finding {
    fn from(result: Result<String, String>) -> Finding {
        result.map_or_else(Finding::Fail, Finding::Ok)
    }
}

type Check = (&'static str, Finding);

pub(in crate::cli) async fn check(app: &Arc<App>, loaded: &LoadedSettings) -> Vec<Check> {
    let path = app.services.environment.get("PATH").unwrap_or_default();
    let (servers, git) = tokio::join!(mcp_servers(app, loaded), git(app));
    let mut checks = servers;
    checks.extend(hooks(app, loaded, path));
    checks.extend(agents(app, path));
    checks.extend(language_servers(loaded, path));
    checks.extend([("system", system()), ("sandbox", sandbox(app, loaded)), ("git", git)]);
    checks
}

/// Starts the enabled MCP servers concurrently.
async fn mcp_servers(app: &Arc<App>, loaded: &LoadedSettings) -> Vec<Check> {
    let environment = SessionEnvironment::new(app.services.clone(), None, None, app.cwd.clone(), Vec::new(), None);
    // Invalid settings were reported.
    let Ok(environment) = environment else { return Vec::new() };
    let servers = loaded.settings.mcp.iter().filter(|(_, server)| server.enabled);
    let checks = servers.map(|(name, server)| {
        let environment = &environment;
        async move {
            let connected = timeout(DOCTOR_PROGRAMS, connect(name, server, environment)).await;
            let late = || Err(format!("it is not ready after {} s", DOCTOR_PROGRAMS.as_secs()));
            (
                "mcp",
                match connected.unwrap_or_else(|_| late()) {
                    Ok(offer) => Finding::Ok(format!("{name}: {} tools, {} prompts", offer.tools.len(), offer.prompts.len())),
                    Err(why) => Finding::Fail(format!("{name}: {why} (to test it: nuncio mcp check {name})")),
                },
            )
        }
    });
    let checks = join_all(checks).await;
    match checks.is_empty() {
        true => vec![("mcp", Finding::Note("none; to add one: nuncio mcp add".into()))],
        false => checks,
    }
}

/// Looks for the programs and scripts of hooks, without running them.
fn hooks(app: &App, loaded: &LoadedSettings, path: &str) -> Vec<Check> {
    let check = |hook: &HookSettings| {
        let name = hook.command.join(" ");
        match hook.missing_file(&app.cwd, path) {
            None => ("hook", Finding::Ok(name)),
            Some(missing) => ("hook", Finding::Fail(format!("{name}: {missing}; correct command in [[hooks]]"))),
        }
    };
    loaded.settings.hooks.iter().map(check).collect()
}

/// Looks for the programs of hosted agents. `nuncio agents check` starts them.
fn agents(app: &App, path: &str) -> Vec<Check> {
    let settings = &app.services.user.settings.agents;
    let check = |name: &String| {
        let Some(agent) = settings.agents.get(name) else {
            return ("agent", Finding::Fail(format!("{name}: allowed, but not in the settings: nuncio agents add {name}")));
        };
        let program = agent.command_line().into_iter().next().unwrap_or_default();
        let install = KnownAgent::find(agent).map(|known| format!(": {}", known.install)).unwrap_or_default();
        (
            "agent",
            match hub::find(&program, path) {
                Some(_) => Finding::Ok(format!("{name}: found; to test its login: nuncio agents check {name}")),
                None => Finding::Fail(format!("{name}: {program} was not found{install}")),
            },
        )
    };
    let checks: Vec<Check> = settings.allowed.iter().map(check).collect();
    match checks.is_empty() {
        true => vec![("agent", Finding::Note("none; to add one: nuncio agents add NAME".into()))],
        false => checks,
    }
}

/// Looks for language servers, without starting them.
fn language_servers(loaded: &LoadedSettings, path: &str) -> Vec<Check> {
    let (mut checks, mut found) = (Vec::new(), Vec::new());
    for (name, server) in &loaded.settings.lsp {
        match server.command.first() {
            None => {}
            Some(program) if hub::find(program, path).is_some() => found.push(format!("{name}: {program}")),
            Some(program) => {
                checks.push(("lsp", Finding::Fail(format!("{name}: {program} was not found; install it or correct [lsp.{name}]"))));
            }
        }
    }
    let known = lsp::installed(path).filter(|(name, _)| !loaded.settings.lsp.contains_key(*name));
    found.extend(known.map(|(name, program)| format!("{name}: {program}")));
    checks.push(match found.is_empty() {
        true => ("lsp", Finding::Note("no language server is installed; see [lsp.NAME] in docs/TOOLS.md".into())),
        false => ("lsp", Finding::Ok(found.join(", "))),
    });
    checks
}

/// Reports which calls of the system nuncio uses, and what they do not provide.
fn system() -> Finding {
    match PLATFORM.lacks.join("; ") {
        lacks if lacks.is_empty() => Finding::Ok(format!("{}: {}", PLATFORM.name, PLATFORM.provides)),
        lacks => Finding::Note(format!("{}: {}; not provided: {lacks}", PLATFORM.name, PLATFORM.provides)),
    }
}

/// Reports whether commands can be confined.
fn sandbox(app: &App, loaded: &LoadedSettings) -> Finding {
    match (Sandbox::is_available(), loaded.settings.sandbox.mode) {
        (true, _) if !app.services.launcher.can_mount() => Finding::Note(
            "this system permits no mount namespaces: mode auto asks before commands in git repositories, and git's configuration and \
             hooks are restored after a command instead of being read-only"
                .into(),
        ),
        (true, _) if !Sandbox::is_watched() => Finding::Note(
            "no inotify instance is left (fs.inotify.max_user_instances): while a command runs, git's configuration and hooks are \
             checked every 20 ms instead of when another program replaces them"
                .into(),
        ),
        (true, _) => Finding::Ok("commands can be confined (Landlock)".into()),
        (false, mode) => {
            let commands = match mode {
                None => ", and mode auto asks before commands",
                Some(SandboxMode::Off) => "",
                Some(SandboxMode::WorkspaceWrite | SandboxMode::ReadOnly) => ", and commands without --sandbox off",
            };
            let message = "this system has no Landlock: programs of projects, checks, git tools and workspaces are refused";
            Finding::Note(format!("{message}{commands}"))
        }
    }
}

/// Runs `git --version`, outside of any repository.
async fn git(app: &App) -> Finding {
    let command = Command::program(["git", "--version"], "/");
    match timeout(DOCTOR_PROGRAMS, app.services.launcher.printed(&command)).await {
        Ok(Ok(version)) => Finding::Ok(version),
        _ => Finding::Note("git does not run; without it there are no git tools, reviews by commit and workspaces".into()),
    }
}
