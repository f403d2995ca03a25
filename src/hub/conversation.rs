//! The interface of the protocols of hosted agents: a conversation with a running agent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::driver::TurnIo;
use super::mcp_servers::AgentMcp;
use super::opencode::OpencodeServers;
use super::process::{AgentProcess, ProgramStart};
use crate::config::{HostedAgent, McpServer, SandboxMode};
use crate::content::{Cost, Part, StopReason};
use crate::context::commands::{self, SlashCommand};
use crate::error::{Error, Result};
use crate::event::{Actor, SessionChange};
use crate::session::{AgentChoice, AgentOption};

/// The properties of the session with which a process is started.
#[derive(Clone, Default, PartialEq)]
pub(super) struct LiveSetup {
    pub cwd: PathBuf,
    pub directories: Vec<PathBuf>,
    /// MCP servers that the client gave.
    pub given: BTreeMap<String, McpServer>,
    /// The settings that the agent receives when it starts.
    pub settings: SessionChange,
    pub sandbox: Option<SandboxMode>,
    /// The session has hooks for tool calls.
    pub has_hooks: bool,
}

/// The input for starting an agent for a session.
pub(super) struct OpenInput {
    pub start: ProgramStart,
    pub settings: HostedAgent,
    /// The directory for files of the agent.
    pub data: PathBuf,
    pub setup: LiveSetup,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The id of the session in the agent, if it exists.
    pub session: Option<String>,
    /// The recorded cost of the session.
    pub cost: Cost,
    pub mcp: AgentMcp,
    /// The setting `config`, with values instead of names of environment variables.
    pub config: Option<String>,
    /// The servers of OpenCode that sessions share.
    pub opencode: Arc<OpencodeServers>,
}

/// The properties and state that a running agent has reported.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentReport {
    pub version: Option<String>,
    /// The account with which the agent is logged in, if it reports one.
    pub login: Option<String>,
    pub commands: Vec<SlashCommand>,
    /// The options with their current values. The option `mode` may have a choice `plan`.
    pub options: Vec<AgentOption>,
    /// The model of the last request, if the agent reports it besides the option `model`.
    pub model_in_use: Option<String>,
    /// Tokens of the context window; 0 if they are unknown.
    pub context_window: u64,
}

/// A turn that another client of an agent has begun.
pub(super) struct ExternalTurn {
    pub prompt: Vec<Part>,
    pub by: Actor,
}

/// A session in a running agent. Dropping it ends the agent's process.
pub(super) trait HostedConversation: Send + Sync {
    /// Returns the agent's id of the session, with which the session can be resumed.
    fn session(&self) -> &str;

    /// Runs a prompt until the agent has ended its turn, and records its events. After
    /// `turn.cancel`, the agent receives a request to stop; the future ends within
    /// [`crate::limits::AGENT_CANCEL`], if necessary by stopping the process.
    fn prompt<'a>(&'a self, parts: &'a [Part], io: &'a mut TurnIo<'_>) -> BoxFuture<'a, Result<StopReason>>;

    /// Waits until another client of the agent has begun a turn in the session. Cancel-safe.
    fn external_turn(&self) -> BoxFuture<'_, Result<ExternalTurn>> {
        Box::pin(std::future::pending())
    }

    /// Runs a turn that another client has begun, like [`HostedConversation::prompt`].
    fn follow<'a>(&'a self, _io: &'a mut TurnIo<'_>) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(async { Err(Error::internal("nuncio is the only client of the agent")) })
    }

    fn process(&self) -> &AgentProcess;

    fn report(&self) -> AgentReport;

    /// Sets an option. [`HostedConversation::report`] then contains the value that the agent
    /// reports.
    fn set_option<'a>(&'a self, id: &'a str, value: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Returns whether another process of the agent can resume the session.
    fn can_resume(&self) -> bool {
        true
    }

    /// Returns whether the agent asks nuncio's hooks before each call ([`LiveSetup::has_hooks`]).
    fn asks_before_calls(&self) -> bool {
        false
    }

    /// Returns the names of MCP servers that the agent does not support.
    fn unused_servers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the port of the agent's own server on 127.0.0.1, if it has one.
    fn port(&self) -> Option<u16> {
        None
    }

    /// Returns whether the process may be ended after a cancelled turn.
    fn is_disposable(&self) -> bool {
        self.can_resume()
    }

    /// Stops the process if no other session uses it.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.process().end())
    }
}

/// Name of the slash command that replaces an agent's conversation by a summary.
pub(super) const COMPACT: &str = "compact";

/// Creates the command for an agent that has a method instead.
pub(super) fn compact_command() -> SlashCommand {
    let description = "Replace the conversation by a summary".into();
    SlashCommand { name: COMPACT.into(), description, hint: Default::default(), text: None }
}

/// Returns whether a prompt is the command.
pub(super) fn is_compaction(parts: &[Part]) -> bool {
    parts.len() == 1 && commands::parse(parts).is_some_and(|(name, _)| name == COMPACT)
}

/// Creates a choice of an option, without a description.
pub(super) fn choice(value: &str, name: &str) -> AgentChoice {
    AgentChoice { value: value.into(), name: name.into(), description: None }
}

/// Creates an option whose category is its id.
pub(super) fn option(id: &str, name: &str, current: &str, choices: Vec<AgentChoice>) -> AgentOption {
    AgentOption { id: id.into(), name: name.into(), category: Some(id.into()), current: current.into(), choices }
}

/// Converts an entry of a list of slash commands. Returns `None` for an entry without a name.
/// `hint` describes the arguments of the command.
pub(super) fn slash_command(entry: &Value, hint: &Value) -> Option<SlashCommand> {
    Some(SlashCommand {
        name: entry["name"].as_str()?.to_owned().into(),
        description: entry["description"].as_str().unwrap_or_default().to_owned().into(),
        hint: hint.as_str().unwrap_or_default().to_owned().into(),
        text: None,
    })
}

/// Starts an agent, and creates or resumes its session.
pub(super) type Open = fn(OpenInput) -> BoxFuture<'static, Result<Arc<dyn HostedConversation>>>;
