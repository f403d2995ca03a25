//! The interface between a session and its agent.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;
use tokio_util::sync::CancellationToken;

use super::Turn;
use crate::config::{McpServer, Policy};
use crate::content::{Part, StopReason, ToolCategory, ToolKind};
use crate::context::commands::SlashCommand;
use crate::error::{Error, Result};
use crate::event::{Actor, SessionParent};
use crate::id::{SessionId, ToolCallId};
use crate::session::agent_setting::AgentSetting;
use crate::session::context_report::ContextReport;
use crate::session::events::log::SessionLog;
use crate::session::message::IncomingMessage;
use crate::toolkit::jobs::{Job, Jobs};

/// The agent of one session. It lives as long as the session is open.
pub trait Agent: Send + Sync + 'static {
    /// Runs one turn and records its events in the turn's log. Cancellation is a normal outcome
    /// ([`StopReason::Cancelled`]); an error is shown to the user. The future is never dropped
    /// before it completes, so it must watch `turn.cancel`.
    fn run<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<StopReason>>;

    /// Reports what fills the context window of the model. `log` is the session's.
    fn context<'a>(&'a self, log: &'a SessionLog) -> BoxFuture<'a, Result<ContextReport>>;

    /// Returns the model, the system prompt and the tools of the next request, outside of a turn
    /// and without a connection to a server. `log` is the session's. A hosted agent has only a
    /// model.
    fn setup<'a>(&'a self, _log: &'a SessionLog) -> BoxFuture<'a, Result<AgentSetup>> {
        let model = self.options().into_iter().find(|option| option.category.as_deref() == Some("model"));
        let setup = AgentSetup { model: model.map(|option| option.current), ..AgentSetup::default() };
        Box::pin(async move { Ok(setup) })
    }

    /// Replaces the MCP servers that the client gave for the session, by name. Must not wait for
    /// them.
    fn set_mcp_servers(&self, servers: BTreeMap<String, McpServer>);

    /// Returns an error if the agent cannot follow one of `settings`, which a client sets for the
    /// session. nuncio's own agent follows all.
    fn check_settings(&self, _settings: &[AgentSetting]) -> Result<()> {
        Ok(())
    }

    /// Completes a message of the user before it is recorded, for example with the text of a slash
    /// command. `opens`: the conversation has no message with the environment context yet. An error
    /// rejects the message, which is recorded outside the conversation. Must watch `turn.cancel`.
    fn prepare<'a>(&'a self, _turn: &'a Turn, _message: &'a mut IncomingMessage, _opens: bool) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns the slash commands of a session in `cwd`. Unless `check` is set, changes of files
    /// since the last check are ignored.
    fn commands<'a>(&'a self, _cwd: &'a Path, _check: bool) -> BoxFuture<'a, Arc<[SlashCommand]>> {
        Box::pin(async { Arc::default() })
    }

    /// Returns the resources of the session's MCP servers that are ready.
    fn resources(&self) -> BoxFuture<'_, Vec<McpResource>> {
        Box::pin(async { Vec::new() })
    }

    /// Returns the options of a hosted agent that is running. nuncio's own agent returns an empty
    /// list.
    fn options(&self) -> Vec<AgentOption> {
        Vec::new()
    }

    /// Returns the process of a hosted agent, if it runs or starts. Several sessions can use one
    /// process.
    fn process(&self) -> Option<HostedProcess> {
        None
    }

    /// Ends the process of a hosted agent, also if other sessions use it. Waits for `cancelled`:
    /// then the turns of these sessions are cancelled. From the first poll on, later turns wait for
    /// the end. Returns the process that was running at the first poll.
    fn end_process(&self, _cancelled: CancellationToken) -> BoxFuture<'_, Option<HostedProcess>> {
        Box::pin(async { None })
    }

    /// Returns the setting or the file with which a hosted agent makes calls without asking nuncio;
    /// `None` if it asks, or if this is not known. `log` is the session's.
    fn own_rules(&self, _log: &SessionLog) -> Option<String> {
        None
    }

    /// Runs a command line of a hosted agent as a tool call of the running turn. Dropping the
    /// future cancels the call.
    fn execute(&self, _command: CommandRequest) -> BoxFuture<'_, Result<CommandResult>> {
        let message = "only a hosted agent can run commands during its turn";
        Box::pin(async move { Err(Error::invalid_params(message).hint("prompt the session instead")) })
    }

    /// Returns whether background work, such as a job, is running.
    fn has_background_work(&self) -> bool;

    /// Returns the background jobs of the session's commands; `None` if nuncio runs none for this
    /// agent.
    fn jobs(&self) -> Option<Arc<Jobs>> {
        None
    }

    /// Returns the commands that run in the background, between turns.
    fn background_jobs(&self) -> Vec<Arc<Job>> {
        self.jobs().map(|jobs| jobs.running()).unwrap_or_default()
    }

    /// Stops background work, such as jobs, and waits a limited time for it to end. No turn runs
    /// during the call; a later turn starts from a fresh environment.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Starts a turn for an external turn: another client of the agent has started it. Receives its
/// prompt and its author. Fails if the session is busy.
pub type ExternalTurnStarter = Arc<dyn Fn(Vec<Part>, Actor) -> Result<()> + Send + Sync>;

/// The agents that can work in sessions.
pub trait Agents: Send + Sync + 'static {
    /// Returns the names, kinds and versions of all agents.
    fn list(&self) -> Vec<AgentInfo>;

    /// Creates the agent of a session. Must not block or use the network; configuration errors
    /// surface when the first turn runs. The agent calls `start_external` if another client of the
    /// agent starts a turn.
    fn open(&self, setup: SessionSetup, start_external: ExternalTurnStarter) -> Arc<dyn Agent>;

    /// Returns the directories, without symlinks, that a session can have without a signature. It
    /// works in the first one if its own is not below one of them. Empty: any directory.
    fn directories(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Checks that a new session can run turns, and that its agent can follow `settings`; on an
    /// error, the session is not created.
    fn check(&self, setup: &SessionSetup, settings: &[AgentSetting]) -> Result<()>;
}

/// The model, the system prompt and the tools with which an agent works in a session.
#[derive(Clone, Debug, Default)]
pub struct AgentSetup {
    /// `PROVIDER/NAME`; `None` if it is unknown.
    pub model: Option<String>,
    pub system_prompt: Option<String>,
    /// The tools, in the order in which the model receives them.
    pub tools: Vec<OfferedTool>,
}

/// A tool. `inputSchema` is a JSON Schema (draft 2020-12) of an object.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Tool")]
pub struct OfferedTool {
    pub name: String,
    /// The name for users.
    pub label: String,
    pub description: String,
    pub kind: ToolKind,
    /// The resources that its calls access.
    pub category: ToolCategory,
    /// The decision about an ordinary call inside the session's directory, by the session's mode
    /// and the rules; `ask`: the call needs approval. A rule about certain paths, commands or
    /// addresses can decide differently about a certain call.
    pub approval: Policy,
    pub input_schema: Value,
}

/// A resource of an MCP server.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpResource {
    /// The name of the server.
    pub server: String,
    pub uri: String,
    /// The name for users.
    pub name: String,
    pub description: Option<String>,
}

/// A command line of a hosted agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommandRequest {
    pub command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The result of a command line of a hosted agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandResult {
    pub tool_call_id: ToolCallId,
    /// False if the command was denied or could not run. A command that exits with an error is
    /// completed.
    pub completed: bool,
    pub output: String,
    /// The exit code, the duration and more, as in `details` of `tool.completed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// The properties of a session that its agent receives before the first turn.
#[derive(Clone, Debug)]
pub struct SessionSetup {
    pub id: SessionId,
    pub cwd: PathBuf,
    /// Directories besides `cwd`.
    pub directories: Vec<PathBuf>,
    /// The tool call that created the session, for a subagent.
    pub parent: Option<SessionParent>,
    /// The name of a hosted agent; `None`: nuncio's own agent.
    pub agent: Option<String>,
}

/// An agent and its program. `kind` is `native` for nuncio's own agent.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentProgram {
    pub name: String,
    pub kind: Cow<'static, str>,
    /// The program of a hosted agent and its arguments, with credentials in URLs masked.
    pub command: Option<Vec<String>>,
    /// The version that a hosted agent reported last, when it ran or was checked. No program is
    /// started for this list.
    pub version: Option<String>,
}

/// An agent. `kind` is `native` for nuncio's own agent.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Agent")]
pub struct AgentInfo {
    #[serde(flatten)]
    pub program: AgentProgram,
    /// Why sessions cannot use the agent.
    pub problem: Option<String>,
    /// The running processes of a hosted agent, in all nuncio processes that use the store.
    pub processes: Option<Vec<HostedProcess>>,
}

/// A process of a hosted agent.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentProcess")]
pub struct HostedProcess {
    /// The name of the agent.
    pub agent: String,
    /// The process id.
    pub pid: u32,
    /// The directory in which the process runs.
    pub cwd: PathBuf,
    /// When the process was started.
    pub started_at: String,
    /// The version that the agent reported.
    pub version: Option<String>,
    /// The port of the agent's own server on 127.0.0.1.
    pub port: Option<u16>,
    /// The number of sessions that use the process.
    pub sessions: usize,
}

/// An option of a hosted agent, such as its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOption {
    pub id: String,
    pub name: String,
    /// `mode`, `model`, `thought_level` or a category of the agent.
    pub category: Option<String>,
    pub current: String,
    pub choices: Vec<AgentChoice>,
}

impl AgentOption {
    /// Creates the choices of an option that is on or off.
    pub(crate) fn switch_choices() -> Vec<AgentChoice> {
        let choice = |value: bool, name: &str| AgentChoice { value: value.to_string(), name: name.into(), description: None };
        vec![choice(true, "On"), choice(false, "Off")]
    }

    /// Returns the current value of an option that is on or off; `None` for other options.
    pub(crate) fn switch(&self) -> Option<bool> {
        self.current.parse().ok().filter(|_| self.choices == AgentOption::switch_choices())
    }

    /// Returns whether the option sets the permissions of the agent.
    pub(crate) fn is_mode(&self) -> bool {
        self.id == "mode" || self.category.as_deref() == Some("mode")
    }
}

/// A value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentChoice {
    pub value: String,
    pub name: String,
    pub description: Option<String>,
}
