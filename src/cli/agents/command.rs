//! `nuncio agents`: lists and checks the agents that can work in sessions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::json;

use super::exec;
use super::file;
use crate::api::{App, StopAgents, StopAgentsParams, StoppedAgents};
use crate::app::{self, Bootstrap};
use crate::cli::terminal::output::{print, print_json, print_stderr};
use crate::client::SessionClient;
use crate::config::{AgentKind, HostedAgent};
use crate::error::{Error, Result};
use crate::hub::{self, AgentCheck, KNOWN};
use crate::id::SessionId;
use crate::session::{AgentProgram, HostedProcess};
use crate::terminal_text::output_line;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AgentsCommand {
    /// List nuncio's own agent and the hosted agents of the settings
    List {
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Add a hosted agent to the user's settings file, and allow it
    Add(AgentsAddOptions),
    /// Start hosted agents in an empty directory, and report versions, missing logins and errors
    Check {
        /// Names of agents; without them, all allowed agents
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// End the processes of hosted agents and cancel their turns; with --cwd, only those in DIR
    Stop {
        /// Only those of one agent
        #[arg(value_name = "NAME")]
        name: Option<String>,
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

#[derive(Debug, Args)]
pub(in crate::cli) struct AgentsAddOptions {
    /// Name: claude-code, codex, gemini or opencode; with --kind or a command, any name
    pub name: String,
    /// Set the protocol: acp, claude-code, codex or opencode
    #[arg(long, value_name = "KIND", value_parser = kind_parser(), hide_possible_values = true)]
    pub kind: Option<AgentKind>,
    /// Pass an environment variable that nuncio hides from other programs (repeatable)
    #[arg(long = "env-pass", value_name = "VARIABLE")]
    pub env_pass: Vec<String>,
    /// Program and arguments of the agent, after `--`; without --kind, it speaks ACP
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

fn kind_parser() -> impl TypedValueParser<Value = AgentKind> {
    let kind = |name: String| AgentKind::OFFERED.into_iter().find(|kind| kind.id() == name);
    PossibleValuesParser::new(AgentKind::OFFERED.map(AgentKind::id)).map(move |name| kind(name).expect("a possible value"))
}

/// Runs `nuncio agents`. `cwd` is the directory that a flag names. Returns the exit code.
pub(crate) async fn run(bootstrap: Bootstrap, command: AgentsCommand, cwd: Option<PathBuf>) -> Result<u8> {
    match command {
        AgentsCommand::List { json } => list(&*app::build(bootstrap)?, json),
        AgentsCommand::Add(options) => add(&bootstrap.places.file, options),
        AgentsCommand::Check { names, json } => check(&*app::build(bootstrap)?, names, json).await,
        AgentsCommand::Stop { name } => stop(app::build(bootstrap)?, StopAgentsParams { agent: name, cwd }).await,
        AgentsCommand::Attach { id } => attach(&app::build(bootstrap)?, &id.into()).await,
        AgentsCommand::Exec { words } => exec::run(&*app::build(bootstrap)?, words).await,
    }
}

fn add(file: &Path, options: AgentsAddOptions) -> Result<u8> {
    let AgentsAddOptions { name, kind, env_pass, command } = options;
    let known = KNOWN.iter().find(|known| known.name == name);
    let mut agent = match (kind, known) {
        (Some(kind), _) => HostedAgent::new(kind),
        (None, Some(known)) => (known.settings)(),
        (None, None) if !command.is_empty() => HostedAgent::new(AgentKind::Acp),
        (None, None) => {
            let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
            let hint = format!("use one of {}; or give the command of an ACP agent after `--`", names.join(", "));
            return Err(Error::invalid_params(format!("agent {name} is unknown")).hint(hint));
        }
    };
    if !command.is_empty() {
        agent.command = command;
    }
    agent.env_pass.extend(env_pass);
    agent.check().map_err(|why| Error::invalid_params(format!("{name}: {why}")))?;
    file::add(file, &name, &agent)?;
    print(format!("added {name} to {}; to test it: nuncio agents check {name}\n", file.display())).map(|()| 0)
}

/// Ends processes of agents, and prints a line for each. Returns exit code 1 if another nuncio
/// process could not be asked.
async fn stop(app: Arc<App>, params: StopAgentsParams) -> Result<u8> {
    let result = SessionClient::new(app.clone(), "terminal").call::<StopAgents>(params).await;
    app.shut_down().await;
    let StoppedAgents { stopped, failures } = result?;
    for HostedProcess { agent, pid, cwd, .. } in &stopped {
        print(output_line(&format!("ended {agent}, process {pid} in {}", cwd.display())) + "\n")?;
    }
    if stopped.is_empty() {
        print("no process of an agent was running\n")?;
    }
    for failure in &failures {
        print_stderr(output_line(&format!("nuncio: agents were not ended: {failure}")) + "\n");
    }
    Ok(u8::from(!failures.is_empty()))
}

async fn attach(app: &Arc<App>, id: &SessionId) -> Result<u8> {
    let session = app.sessions().await?.open_read_only(id).await?;
    let (agent, session) = session.log.state(|state| (state.settings.agent.clone(), state.settings.agent_session.clone()));
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
        let AgentProgram { name, kind, command, version } = agent.program;
        if as_json {
            let line = json!({ "name": name, "kind": kind, "command": command.unwrap_or_default(), "problem": agent.problem });
            print_json(format!("{line}\n"))?;
        } else {
            let command = command.map_or(version.unwrap_or_default(), |command| command.join(" "));
            let problem = agent.problem.map(|problem| format!(" ({problem})")).unwrap_or_default();
            print(output_line(&format!("{:16} {:12} {command}{problem}", name, kind)) + "\n")?;
        }
    }
    if app.services.user.settings.agents.agents.is_empty() && !as_json {
        list_known(app)?;
    }
    Ok(0)
}

/// Lists the agents that could be added.
fn list_known(app: &App) -> Result<()> {
    let path = app.services.environment.get("PATH").unwrap_or_default();
    print("\nOther agents can work in nuncio's sessions, with their own logins (docs/AGENTS.md):\n")?;
    for known in KNOWN {
        let settings = (known.settings)();
        let program = settings.command_line().into_iter().next().unwrap_or_default();
        let next = match hub::find(&program, path) {
            Some(_) => format!("{program} is installed; to use it: nuncio agents add {}", known.name),
            None => format!("{program} is not installed: {}", known.install),
        };
        print(output_line(&format!("{:16} {:12} {next}", known.name, settings.kind.id())) + "\n")?;
    }
    Ok(())
}

/// Checks agents concurrently and prints each result when it is there. Returns exit code 1 if an
/// agent does not work.
async fn check(app: &App, mut names: Vec<String>, as_json: bool) -> Result<u8> {
    let services = &app.services;
    if names.is_empty() {
        names.clone_from(&services.user.settings.agents.allowed);
    }
    if names.is_empty() {
        print("The settings allow no hosted agents: nuncio agents list shows which can be added\n")?;
    }
    let mut checks: FuturesUnordered<_> = names.iter().map(|name| hub::check(services, name)).collect();
    let mut failed = false;
    while let Some(report) = checks.next().await {
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
    let AgentCheck { program: AgentProgram { name, version, .. }, ms, options, login, problem, hint } = report;
    match problem {
        None => {
            let version = version.as_deref().unwrap_or("unknown version");
            let options = if options.is_empty() { String::new() } else { format!("; options: {}", options.join(", ")) };
            let login = login.as_deref().map(|login| format!("; logged in as {login}")).unwrap_or_default();
            format!("ok   {name:16} {version}, ready in {} ms{login}{options}", ms.unwrap_or_default())
        }
        Some(problem) => {
            let hint = hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("FAIL {name:16} {problem}{hint}")
        }
    }
}
