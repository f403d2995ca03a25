//! Settings of hosted agents: other agents that work in nuncio's sessions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::model_settings::SecretText;
use super::sandbox_settings::SandboxMode;

/// Default of the setting `agents.idle_ttl_s`.
const AGENT_IDLE: Duration = Duration::from_secs(600);

/// The name of nuncio's own agent in the list of agents.
pub(crate) const NATIVE: &str = "nuncio";

/// Hosted agents. Only the user's settings file can set them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentSettings {
    /// Names of the agents that may be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// Seconds without a turn after which the process of an agent is ended.
    pub idle_ttl_s: u64,
    /// The agents, by name.
    #[serde(flatten)]
    pub agents: BTreeMap<String, HostedAgent>,
}

impl Default for AgentSettings {
    fn default() -> Self {
        AgentSettings { allowed: Vec::new(), idle_ttl_s: AGENT_IDLE.as_secs(), agents: BTreeMap::new() }
    }
}

/// The protocol of a hosted agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentKind {
    /// The Agent Client Protocol on standard input and output.
    Acp,
    /// The HTTP server of OpenCode (`opencode serve`).
    Opencode,
    /// The app server of Codex (`codex app-server`).
    Codex,
    /// Claude Code with JSON lines on standard input and output (`claude -p`).
    ClaudeCode,
    /// nuncio itself, over ACP, with the scripted model in the file `config`. For tests of clients.
    Fake,
}

impl AgentKind {
    /// The kinds that `nuncio agents add` offers.
    pub(crate) const OFFERED: [AgentKind; 4] = [AgentKind::Acp, AgentKind::ClaudeCode, AgentKind::Codex, AgentKind::Opencode];

    /// Returns the name in the settings, and the program that runs if the settings name none. The
    /// program is empty if there is no default, or if it is this one.
    fn row(self) -> (&'static str, &'static str) {
        match self {
            AgentKind::Acp => ("acp", ""),
            AgentKind::Opencode => ("opencode", "opencode"),
            AgentKind::Codex => ("codex", "codex"),
            AgentKind::ClaudeCode => ("claude-code", "claude"),
            AgentKind::Fake => ("fake", ""),
        }
    }

    /// Returns the name in the settings.
    pub(crate) fn id(self) -> &'static str {
        self.row().0
    }
}

/// Returns the path of the running binary. The path in /proc, where there is one, also leads to a
/// binary that has been replaced.
fn own_program() -> String {
    let link = "/proc/self/exe";
    let program = if Path::new(link).exists() { PathBuf::from(link) } else { std::env::current_exe().unwrap_or_default() };
    program.to_string_lossy().into_owned()
}

/// The sessions that share a process of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentScope {
    /// One process for each session.
    #[default]
    Session,
    /// One process for all sessions of a directory. For `opencode`.
    Workspace,
}

/// A hosted agent.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostedAgent {
    pub kind: AgentKind,
    /// The program and its arguments. Default: the usual program of the kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Arguments after those of `command`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables of the program. A value `$NAME` is the value of the environment
    /// variable NAME of nuncio.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, SecretText>,
    /// Environment variables that nuncio hides from other programs, such as API keys, and that this
    /// program gets if they are set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_pass: Vec<String>,
    #[serde(default)]
    pub scope: AgentScope,
    /// Replaces `idle_ttl_s` of `[agents]`.
    pub idle_ttl_s: Option<u64>,
    /// Configuration of the agent: for `opencode` the JSON of `OPENCODE_CONFIG_CONTENT`, for
    /// `claude-code` the JSON of `--settings`, for `codex` the JSON form of its `config.toml`, for
    /// `fake` the file of the scripted model. `${NAME}` is the environment variable NAME of nuncio.
    pub config: Option<String>,
    /// The sandbox around the agent's process (docs/AGENTS.md). Default: `--sandbox`, else off.
    pub sandbox: Option<SandboxMode>,
    /// Directories that the agent may write to in the sandbox, in addition to those of the session
    /// and of its own state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<PathBuf>,
    /// Run the project's checks after a turn that changed files, as `verify.auto` does for nuncio's
    /// own agent. If one fails, the agent is prompted again with the failing part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify: bool,
    /// Give the agent nuncio's MCP server, and the MCP servers that the client gave.
    #[serde(default = "yes")]
    pub mcp: bool,
}

fn yes() -> bool {
    true
}

impl HostedAgent {
    /// Creates the settings of an agent with the defaults of its kind.
    pub(crate) fn new(kind: AgentKind) -> HostedAgent {
        HostedAgent {
            kind,
            command: Vec::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            env_pass: Vec::new(),
            scope: AgentScope::default(),
            idle_ttl_s: None,
            config: None,
            sandbox: None,
            writable: Vec::new(),
            verify: false,
            mcp: true,
        }
    }

    /// Returns the program with all arguments of the settings.
    pub(crate) fn command_line(&self) -> Vec<String> {
        let mut line = self.command.clone();
        if line.is_empty() {
            let program = if self.kind == AgentKind::Fake { own_program() } else { self.kind.row().1.to_owned() };
            line.extend(Some(program).filter(|program| !program.is_empty()));
        }
        line.extend(self.args.iter().cloned());
        line
    }

    /// Checks settings that depend on each other. The error is a message.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.kind {
            AgentKind::Acp if self.command.is_empty() => Err("set command = [\"PROGRAM\", …]".into()),
            AgentKind::Fake if self.config.is_none() => Err("set config to the file of a scripted model".into()),
            _ if self.scope == AgentScope::Workspace && self.kind != AgentKind::Opencode => {
                Err("scope = \"workspace\" is for kind = \"opencode\"".into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the names of the environment variables that contain the agent's secrets.
    pub(crate) fn secret_names(&self) -> impl Iterator<Item = String> {
        self.env.values().filter_map(|text| text.variable().map(str::to_owned)).chain(self.env_pass.iter().cloned())
    }
}
