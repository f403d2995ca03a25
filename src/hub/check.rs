//! Starts a hosted agent in an empty directory, without a prompt, to report whether it works.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::conversation::AgentReport;
use super::known::KnownAgent;
use super::process::not_logged_in;
use super::protocols::LoginStatus;
use super::registry;
use super::reported_version;
use crate::config::HostedAgent;
use crate::error::{Kind, Result};
use crate::limits;
use crate::process::{Command, ProcessLauncher};
use crate::runtime::Services;
use crate::session::AgentProgram;
use crate::workspace::create_private_dir;

/// Maximum time of a command that reports the login of a hosted agent.
const AGENT_LOGIN_STATUS: Duration = Duration::from_secs(10);

#[skip_serializing_none]
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentCheck {
    #[serde(flatten)]
    pub program: AgentProgram,
    /// Milliseconds until a session could be used.
    pub ms: Option<u64>,
    /// Ids of the agent's options, such as `mode` and `model`.
    pub options: Vec<String>,
    /// The account with which the agent is logged in, if it reports one.
    pub login: Option<String>,
    /// Why the agent does not work.
    pub problem: Option<String>,
    /// How to make it work.
    pub hint: Option<String>,
}

pub(crate) async fn check(services: &Services, name: &str) -> AgentCheck {
    let Some(agent) = services.user.settings.agents.agents.get(name) else {
        let error = registry::unknown(services, name);
        let program = AgentProgram { name: name.into(), command: Some(Vec::new()), ..AgentProgram::default() };
        return AgentCheck { program, problem: Some(error.message), hint: error.hint, ..AgentCheck::default() };
    };
    let command = Some(agent.command_line());
    let program = AgentProgram { name: name.into(), kind: agent.kind.id().into(), command, version: None };
    let mut report = AgentCheck { program, ..AgentCheck::default() };
    let started = Instant::now();
    match start(services, name, agent).await {
        Ok(facts) => {
            report.ms = Some(started.elapsed().as_millis() as u64);
            report.options = facts.options.into_iter().map(|option| option.id).collect();
            (report.program.version, report.login) = (facts.version, facts.login);
        }
        Err(error) => {
            let known = KnownAgent::find(agent);
            report.hint = match (registry::program_is_missing(services, agent), error.kind) {
                (true, _) => known.map(|known| known.install.to_owned()).or(error.hint),
                (false, Kind::Unauthenticated) => error.hint.or(known.map(|known| known.login.to_owned())),
                (false, _) => error.hint,
            };
            report.problem = Some(error.message);
        }
    }
    if report.program.version.is_none() && report.problem.is_none() {
        report.program.version = version(&services.launcher, agent).await;
    }
    if let Some(version) = report.program.version.clone() {
        reported_version::write(registry::data(services, name), agent.command_line(), version).await;
    }
    report
}

/// Starts the agent. Returns what it reports. Fails also if the agent reports that it is not logged
/// in.
async fn start(services: &Services, name: &str, agent: &HostedAgent) -> Result<AgentReport> {
    registry::allowed(services, name)?;
    // The directory has no files that the agent could run.
    let cwd = registry::data(services, name).join("empty");
    create_private_dir(&cwd)?;
    let opening = registry::opening(services, name, agent, &cwd, &Arc::default())?;
    let conversation = (agent.kind.protocol().open)(opening).await?;
    let facts = conversation.report();
    conversation.close().await;
    let login = KnownAgent::find(agent).map_or("", |known| known.login);
    match agent.kind.protocol().login {
        LoginStatus::Printed(arguments) => {
            let command = registry::program(services, name, agent, &cwd)?.arguments(arguments);
            // Earlier versions do not support the command.
            let status = reported(&services.launcher, &command).await.unwrap_or_default();
            match (status["loggedIn"].as_bool(), status["email"].as_str(), status["authMethod"].as_str()) {
                (Some(false), ..) => Err(not_logged_in(name, "not logged in").hint(login)),
                (_, Some(email), Some(method)) => Ok(AgentReport { login: Some(format!("{email} ({method})")), ..facts }),
                (_, None, Some(method)) => Ok(AgentReport { login: Some(method.to_owned()), ..facts }),
                _ => Ok(facts),
            }
        }
        LoginStatus::ModelOption if !facts.options.iter().any(|option| option.id == "model") => {
            Err(not_logged_in(name, "no provider of models is set up").hint(login))
        }
        LoginStatus::ModelOption | LoginStatus::Start => Ok(facts),
    }
}

/// Runs a command and parses its output as JSON. Ignores the exit code.
async fn reported(launcher: &ProcessLauncher, command: &Command) -> Option<Value> {
    let (mut child, stdin, _errors) = launcher.spawn_captured(command).ok()?;
    drop(stdin);
    let mut output = Vec::new();
    let read = async { while output.len() < limits::KEY_BYTES_MAX && child.output.read(&mut output).await.unwrap_or(0) > 0 {} };
    tokio::time::timeout(AGENT_LOGIN_STATUS, read).await.ok()?;
    serde_json::from_slice(&output).ok()
}

/// Maximum time of `PROGRAM --version`.
const VERSION_WAIT: Duration = Duration::from_secs(10);

/// Returns the first line that `PROGRAM --version` prints.
async fn version(launcher: &ProcessLauncher, agent: &HostedAgent) -> Option<String> {
    let program = agent.command_line().into_iter().next()?;
    let command = [program, "--version".into()];
    let command = Command::program(command, "/");
    let printed = launcher.printed(&command);
    let printed = tokio::time::timeout(VERSION_WAIT, printed).await.ok()?.ok()?;
    printed.lines().next().map(String::from)
}
