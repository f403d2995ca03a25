//! The hosted agents of the settings: names, permission to use them in a directory, and missing
//! requirements.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::KNOWN;
use super::conversation::{LiveSetup, OpenInput};
use super::mcp_servers::AgentMcp;
use super::opencode::OpencodeServers;
use super::own_rules::{AskingSettings, OwnRules};
use super::process_handle::ProcessSlot;
use super::project_files::project_files;
use super::{
    attach,
    process::{ProgramStart, unavailable},
    project_config, reported_version,
};
use crate::config::{AgentKind, HostedAgent, Trust};
use crate::content::Cost;
use crate::error::{Error, Kind, Result};
use crate::options::Mode;
use crate::process::{Command, find_program};
use crate::runtime::Services;
use crate::session::{AgentInfo, AgentProgram};
use crate::toolkit::git::quoted;

/// Returns the settings of an agent that may be used.
pub(super) fn allowed(services: &Services, name: &str) -> Result<HostedAgent> {
    let agents = &services.user.settings.agents;
    let agent = agents.agents.get(name).ok_or_else(|| unknown(services, name))?;
    if !agents.allowed.iter().any(|allowed| allowed == name) {
        let message = format!("agent: {name} is not allowed");
        return Err(Error::new(Kind::Forbidden, message).hint(format!("add \"{name}\" to allowed in [agents]")));
    }
    Ok(agent.clone())
}

/// Fails if the settings have no agent with this name.
pub(crate) fn check_name(services: &Services, name: &str) -> Result<()> {
    let known = services.user.settings.agents.agents.contains_key(name);
    if known { Ok(()) } else { Err(unknown(services, name)) }
}

/// Creates the error for an agent without settings.
pub(super) fn unknown(services: &Services, name: &str) -> Error {
    let own: Vec<&str> = services.user.settings.agents.agents.keys().map(String::as_str).collect();
    let own = if own.is_empty() { "no agents".into() } else { own.join(", ") };
    let command = if KNOWN.iter().any(|known| known.name == name) { "" } else { " -- COMMAND" };
    let hint = format!("the settings have {own}; to add it: nuncio agents add {name}{command}");
    Error::invalid_params(format!("agent: {name} is unknown")).hint(hint)
}

/// Checks that an agent may start in a directory. Several agents run programs that the directory's
/// files name, without asking.
pub(super) fn check_trust(services: &Services, name: &str, cwd: &Path) -> Result<()> {
    if Trust::load(&services.places).covers(cwd) {
        return Ok(());
    }
    let message = format!("agent {name}: {} is not trusted, and the agent may run programs that its files name", cwd.display());
    let files: Vec<String> = project_files(cwd).iter().map(|file| format!(", {file}")).collect();
    let hint = format!("check its files{}, then run: nuncio trust {}", files.concat(), cwd.display());
    Err(Error::new(Kind::Forbidden, message).hint(hint))
}

/// Returns the input for starting an agent in a directory with a new session, without MCP servers.
pub(super) fn opening(
    services: &Services,
    name: &str,
    settings: &HostedAgent,
    cwd: &Path,
    opencode: &Arc<OpencodeServers>,
) -> Result<OpenInput> {
    let data = data(services, name);
    let start = ProgramStart {
        name: name.into(),
        launcher: services.launcher.clone(),
        command: command(services, name, settings, cwd, &data)?,
        process: ProcessSlot::default(),
        web: services.models.clients.clone(),
    };
    Ok(OpenInput {
        start,
        settings: settings.clone(),
        config: config(services, name, settings)?,
        data,
        setup: LiveSetup { cwd: cwd.into(), ..LiveSetup::default() },
        home: services.places.home.clone(),
        session: None,
        cost: Cost::default(),
        mcp: AgentMcp::default(),
        opencode: opencode.clone(),
    })
}

/// Returns the time without a turn after which the agent's process is stopped.
pub(super) fn idle_ttl(services: &Services, agent: &HostedAgent) -> Duration {
    Duration::from_secs(agent.idle_ttl_s.unwrap_or(services.user.settings.agents.idle_ttl_s))
}

/// Returns the command that starts an agent in a directory, with its arguments and environment.
fn command(services: &Services, name: &str, agent: &HostedAgent, cwd: &Path, data: &Path) -> Result<Command> {
    let mut command = program(services, name, agent, cwd)?.arguments(agent.kind.protocol().arguments);
    if agent.kind == AgentKind::Fake {
        let script = agent.config.as_deref().unwrap_or_default();
        command = command.arguments(["acp", "--model", &format!("scripted:{script}"), "--data-dir", &data.to_string_lossy()]);
    }
    project_config::exclude(services, name, agent, command, data)
}

/// Returns the program and the arguments of the settings, with the environment of the agent.
pub(super) fn program(services: &Services, name: &str, agent: &HostedAgent, cwd: &Path) -> Result<Command> {
    let variable = |variable: &str| variable_of(services, name, variable);
    let mut command = Command::program(agent.command_line(), cwd);
    for pass in &agent.env_pass {
        if let Some(value) = services.environment.get(pass) {
            command = command.env(pass, value);
        }
    }
    for (key, value) in &agent.env {
        let value = match value.variable() {
            Some(from) => variable(from)?,
            None => value.plain(),
        };
        command = command.env(key, value);
    }
    if let Some(variable) = agent.kind.protocol().config_variable
        && let Some(config) = config(services, name, agent)?
    {
        command = command.env(variable, config);
    }
    Ok(command)
}

/// Returns the cause with which an agent makes calls in a directory without asking nuncio, in a
/// session of this mode. Settings that cannot be read fail the start.
pub(super) fn own_rules(services: &Services, name: &str, agent: &HostedAgent, cwd: &Path, mode: Mode) -> Option<OwnRules> {
    let config = config(services, name, agent).ok()?;
    let command = program(services, name, agent, cwd).ok()?;
    (agent.kind.protocol().own_rules)(&AskingSettings { services, name, config, command, mode })
}

/// Returns the value of an environment variable that an agent needs. Fails if it is not set.
fn variable_of<'a>(services: &'a Services, name: &str, variable: &str) -> Result<&'a str> {
    let missing =
        || unavailable(name, format_args!("it needs the environment variable {variable}")).hint(format!("set {variable}"));
    services.environment.get(variable).ok_or_else(missing)
}

/// Returns the setting `config` of an agent. Replaces `${NAME}` by the value of the environment
/// variable NAME, escaped as in a JSON string.
pub(super) fn config(services: &Services, name: &str, agent: &HostedAgent) -> Result<Option<String>> {
    let Some(config) = &agent.config else { return Ok(None) };
    let mut pieces = config.split("${");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once('}') {
            Some((variable, rest)) => {
                let quoted = Value::from(variable_of(services, name, variable)?).to_string();
                text.extend([&quoted[1..quoted.len() - 1], rest]);
            }
            None => return Err(unavailable(name, "config: ${ without }")),
        }
    }
    Ok(Some(text))
}

/// Returns the path of the directory for files of an agent.
pub(super) fn data(services: &Services, name: &str) -> PathBuf {
    services.places.data.join("agents").join(name)
}

/// Lists the agents of the settings, each with the reason why it cannot be used, if any. Starts no
/// program.
pub(super) fn list(services: &Services) -> Vec<AgentInfo> {
    let agents = &services.user.settings.agents;
    let path = services.environment.get("PATH").unwrap_or_default();
    let entry = |(name, agent): (&String, &HostedAgent)| {
        let command = agent.command_line();
        let problem = allowed(services, name)
            .err()
            .map(|error| error.to_string())
            .or_else(|| find(command.first()?, path).is_none().then(|| format!("{} was not found", command[0])));
        let version = reported_version::read(&data(services, name), &command);
        let program = AgentProgram { name: name.clone(), kind: agent.kind.id().into(), command: Some(command), version };
        AgentInfo { program, problem, processes: None }
    };
    agents.agents.iter().map(entry).collect()
}

pub(super) fn program_is_missing(services: &Services, agent: &HostedAgent) -> bool {
    let path = services.environment.get("PATH").unwrap_or_default();
    agent.command_line().first().is_none_or(|program| find(program, path).is_none())
}

/// Finds a program as execvp(3) does.
pub(crate) fn find(program: &str, path: &str) -> Option<PathBuf> {
    find_program(program, path, Path::new(""))
}

/// Returns the command line that opens a session in the agent's own terminal client.
pub(crate) fn attach_command(services: &Services, name: &str, session: &str) -> Result<String> {
    let agent = allowed(services, name)?;
    let idle = || {
        let hint = "agents of kind \"opencode\" have a server, from a turn until idle_ttl_s after it";
        unavailable(name, format_args!("no server runs for the session {session}")).hint(hint)
    };
    let (url, password) = attach::read(&data(services, name), session).ok_or_else(idle)?;
    let program: Vec<String> = agent.command_line().iter().map(|word| quoted(word)).collect();
    Ok(format!("OPENCODE_SERVER_PASSWORD={password} {} attach {url} --session {session}", program.join(" ")))
}
