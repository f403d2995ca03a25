//! `nuncio agents`: lists and checks the agents that can work in sessions.

use std::ffi::OsString;
use std::sync::Arc;

use clap::Subcommand;
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::json;

use super::agents_exec;
use super::output::{print, print_json};
use super::stored::each_event;
use crate::api::App;
use crate::error::{Error, Result};
use crate::event::Body;
use crate::hub::{self, AgentCheck};
use crate::id::SessionId;
use crate::terminal_text::output_line;

#[derive(Debug, Subcommand)]
pub(super) enum AgentsCommand {
    /// List nuncio's own agent and the hosted agents of the settings
    List {
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Start hosted agents in an empty directory, and report versions, missing logins and errors
    Check {
        /// Names of agents; without them, all allowed agents
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Print the command that opens a session in the agent's own terminal client (OpenCode)
    Attach {
        /// The id of a session
        #[arg(value_name = "SESSION")]
        id: String,
    },
    /// Run an agent's own terminal client here: it continues its last session in this directory
    Exec {
        /// The name of the agent, and the arguments of its client, which take precedence
        #[arg(value_names = ["NAME", "ARGS"], num_args = 1.., required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

/// Runs `nuncio agents`. Returns the exit code.
pub(crate) async fn run(app: Arc<App>, command: AgentsCommand) -> Result<u8> {
    match command {
        AgentsCommand::List { json } => list(&app, json),
        AgentsCommand::Check { names, json } => check(&app, names, json).await,
        AgentsCommand::Attach { id } => attach(&app, &id.into()).await,
        AgentsCommand::Exec { words } => agents_exec::run(&app, words).await,
    }
}

async fn attach(app: &Arc<App>, id: &SessionId) -> Result<u8> {
    let (mut agent, mut session) = (None, None);
    each_event(app.sessions().await?, id, |event| {
        if let Body::SessionCreated { change, .. } | Body::SessionUpdated { change } = &event.body {
            agent = change.agent.clone().or(agent.take());
            session = change.agent_session.clone().or(session.take());
        }
        Ok(())
    })?;
    let command = match (agent, session) {
        (Some(agent), Some(session)) => hub::attach_command(&app.services, &agent, &session),
        _ => Err(Error::invalid_params(format!("session {id}: no hosted agent has worked in it"))),
    };
    print(command? + "\n")?;
    app.shut_down().await;
    Ok(0)
}

fn list(app: &App, as_json: bool) -> Result<u8> {
    for agent in app.agents.list() {
        if as_json {
            let (name, kind, command) = (agent.name, agent.kind, agent.command);
            let line = json!({ "name": name, "kind": kind, "command": command, "problem": agent.problem });
            print_json(format!("{line}\n"))?;
        } else {
            let command = if agent.command.is_empty() { agent.version.clone() } else { agent.command.join(" ") };
            let problem = agent.problem.map(|problem| format!(" ({problem})")).unwrap_or_default();
            print(output_line(&format!("{:16} {:12} {command}{problem}", agent.name, agent.kind)) + "\n")?;
        }
    }
    Ok(0)
}

/// Checks agents concurrently and prints each result when it is there. Returns exit code 1 if an
/// agent does not work.
async fn check(app: &App, mut names: Vec<String>, as_json: bool) -> Result<u8> {
    let services = &app.services;
    if names.is_empty() {
        names.clone_from(&services.user.settings.agents.allowed);
    }
    if names.is_empty() {
        print("The settings allow no hosted agents: see [agents] in docs/AGENTS.md\n")?;
    }
    let mut checks: FuturesUnordered<_> = names.iter().map(|name| hub::check(services, name)).collect();
    let mut failed = false;
    while let Some(report) = checks.next().await {
        let report = report?;
        failed |= report.problem.is_some();
        if as_json {
            print_json(format!("{}\n", json!(report)))?;
        } else {
            print(output_line(&text_line(&report)) + "\n")?;
        }
    }
    drop(checks);
    app.shut_down().await;
    Ok(u8::from(failed))
}

fn text_line(report: &AgentCheck) -> String {
    let AgentCheck { name, version, ms, options, problem, hint, .. } = report;
    match problem {
        None => {
            let version = version.as_deref().unwrap_or("unknown version");
            let options = if options.is_empty() { String::new() } else { format!("; options: {}", options.join(", ")) };
            format!("ok   {name:16} {version}, ready in {} ms{options}", ms.unwrap_or_default())
        }
        Some(problem) => {
            let hint = hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("FAIL {name:16} {problem}{hint}")
        }
    }
}
