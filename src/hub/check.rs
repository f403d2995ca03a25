//! Starts a hosted agent in an empty directory, without a prompt, to report whether it works.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::conversation::Opening;
use super::mcp_servers::AgentMcp;
use super::registry;
use crate::agent::Services;
use crate::config::{AgentKind, HostedAgent};
use crate::content::Cost;
use crate::error::{Error, Result};
use crate::process::ProcessLauncher;
use crate::workspace::create_private_dir;

/// The result of a check.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentCheck {
    pub name: String,
    pub kind: &'static str,
    pub command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Milliseconds until a session could be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// Ids of the agent's options, such as `mode` and `model`.
    pub options: Vec<String>,
    /// Why the agent does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How to make it work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Checks an agent of the settings.
pub(crate) async fn check(services: &Services, name: &str) -> Result<AgentCheck> {
    let agents = &services.user.settings.agents.agents;
    let agent = agents.get(name).ok_or_else(|| Error::invalid_params(format!("agent {name} is unknown")))?;
    let mut report = AgentCheck {
        name: name.into(),
        kind: agent.kind.id(),
        command: agent.command_line(),
        version: None,
        ms: None,
        options: Vec::new(),
        problem: None,
        hint: None,
    };
    let started = Instant::now();
    match start(services, name, agent).await {
        Ok((version, options)) => {
            report.ms = Some(started.elapsed().as_millis() as u64);
            (report.version, report.options) = (version, options);
        }
        Err(error) => {
            let installable = registry::program_is_missing(services, agent).then(|| install_hint(agent.kind)).flatten();
            report.hint = installable.map(String::from).or(error.hint);
            report.problem = Some(error.message);
        }
    }
    if report.version.is_none() && report.problem.is_none() {
        report.version = version(&services.launcher, agent).await;
    }
    Ok(report)
}

/// Starts the agent. Returns its version and the ids of its options.
async fn start(services: &Services, name: &str, agent: &HostedAgent) -> Result<(Option<String>, Vec<String>)> {
    registry::allowed(services, name)?;
    let open = registry::protocol(agent.kind);
    // The directory has no files that the agent could run.
    let cwd = registry::data(services, name).join("empty");
    create_private_dir(&cwd)?;
    let opening = Opening {
        name: name.into(),
        settings: agent.clone(),
        data: registry::data(services, name),
        command: registry::command(services, name, agent, &cwd, &registry::data(services, name))?,
        launcher: services.launcher.clone(),
        cwd: cwd.clone(),
        directories: Vec::new(),
        session: None,
        cost: Cost::default(),
        mcp: AgentMcp::default(),
        config: registry::config(services, name, agent)?,
        web: services.models.clients.clone(),
        opencode: Arc::default(),
    };
    let conversation = open(opening).await?;
    let facts = conversation.facts();
    conversation.close().await;
    Ok((facts.version, facts.options.into_iter().map(|option| option.id).collect()))
}

/// Maximum time of `PROGRAM --version`.
const VERSION_WAIT: Duration = Duration::from_secs(10);

/// The first line that `PROGRAM --version` prints.
async fn version(launcher: &ProcessLauncher, agent: &HostedAgent) -> Option<String> {
    let program = agent.command_line().into_iter().next()?;
    let command = [program, "--version".into()];
    let printed = launcher.printed(&command, Path::new("/"));
    let printed = tokio::time::timeout(VERSION_WAIT, printed).await.ok()?.ok()?;
    printed.lines().next().map(String::from)
}

/// How to install the program of a kind.
fn install_hint(kind: AgentKind) -> Option<&'static str> {
    match kind {
        AgentKind::Opencode => Some("npm install -g opencode-ai"),
        AgentKind::Codex => Some("npm install -g @openai/codex"),
        AgentKind::ClaudeCode => Some("npm install -g @anthropic-ai/claude-code"),
        AgentKind::Acp | AgentKind::Fake => None,
    }
}
