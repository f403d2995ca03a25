//! The types of all settings. `schema/config.json` is generated from these types.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::agent_settings::AgentSettings;
use super::budget::Budget;
use super::chat_settings::ChatSettings;
use super::context_settings::ContextSettings;
use super::hook_settings::HookSettings;
use super::mcp_settings::McpServer;
use super::model_settings::{ModelSettings, Provider, RetrySettings, RoleSettings};
use super::project_program::{ProjectGrants, ProjectProgram};
use super::sandbox_settings::SandboxSettings;
use super::verify_settings::{ReviewSettings, VerifySettings};
use super::worktree_settings::WorktreeSettings;

/// The value of `store.url` for a file in the data directory.
pub(crate) const SQLITE: &str = "sqlite";
/// Default of `tools.mcp_wait_s`.
const MCP_START_WAIT: Duration = Duration::from_secs(10);
/// Default of `tools.mcp_wait_run_s`.
const MCP_START_WAIT_RUN: Duration = Duration::from_secs(60);
/// Default of `tools.mcp_tokens`.
const MCP_SPECS_TOKENS: usize = 8_000;

/// Settings of nuncio (`config.toml`, and `.nuncio/config.toml` of a project).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `PROVIDER/NAME`, or `scripted:FILE`. Default: the first provider with an API key in the
    /// environment, else a local server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When commits are flushed to the disk, to survive a power failure. A crash of nuncio alone
    /// loses nothing that a client has seen, with any value.
    pub durability: Durability,
    pub store: StoreSettings,
    /// Several machines that share a PostgreSQL database.
    pub cluster: ClusterSettings,
    /// Additional roots of every session.
    pub allowed_paths: Vec<PathBuf>,
    /// Additional model providers, or settings that override those of the built-in ones.
    pub providers: BTreeMap<String, Provider>,
    /// Settings of models, by a pattern of `PROVIDER/NAME`: `openai/*`.
    pub models: BTreeMap<String, ModelSettings>,
    pub roles: RoleSettings,
    pub retry: RetrySettings,
    pub budget: Budget,
    pub permissions: Permissions,
    pub tools: ToolSettings,
    pub sandbox: SandboxSettings,
    /// Language servers, by name. Without an entry for `rust`, `python`, `typescript`, `go` or `c`,
    /// the usual server is searched on PATH and started in trusted directories only.
    pub lsp: BTreeMap<String, LanguageServer>,
    /// MCP servers, by name. Their tools are `mcp__NAME__TOOL`.
    pub mcp: BTreeMap<String, McpServer>,
    /// Commands that run at events of tool calls and model requests.
    pub hooks: Vec<HookSettings>,
    /// Hosted agents: other agents that can work in sessions, by name.
    pub agents: AgentSettings,
    pub acp: AcpSettings,
    pub http: HttpSettings,
    pub telemetry: Telemetry,
    pub update: UpdateSettings,
    pub instructions: Instructions,
    pub context: ContextSettings,
    pub verify: VerifySettings,
    pub review: ReviewSettings,
    pub worktree: WorktreeSettings,
    pub chat: ChatSettings,
    /// Rights of the programs of trusted projects outside of them, by directory. Only in the user's
    /// settings.
    pub trust: BTreeMap<PathBuf, ProjectGrants>,
    /// Files that replace the built-in system prompt, by a pattern of `PROVIDER/NAME`; `*` is the
    /// default. User file: relative to the file; project file: relative to the project directory.
    pub prompts: BTreeMap<String, PathBuf>,
}

/// How far the settings file of an untrusted project may change a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectRight {
    /// The project's value applies.
    Set,
    /// The project's value applies only as far as it is no less strict than the user's value; see
    /// narrow.rs.
    Narrow,
    /// The project's value is ignored.
    Nothing,
}

/// The project's right for each setting. A section is listed as a whole if all its settings are
/// ignored. A setting that is not listed is ignored too.
pub const PROJECT_RIGHTS: &[(&str, ProjectRight)] = &[
    ("model", ProjectRight::Nothing),
    ("durability", ProjectRight::Nothing),
    ("store", ProjectRight::Nothing),
    ("cluster", ProjectRight::Nothing),
    ("allowed_paths", ProjectRight::Nothing),
    ("providers", ProjectRight::Nothing),
    ("models", ProjectRight::Nothing),
    ("roles", ProjectRight::Nothing),
    ("retry", ProjectRight::Nothing),
    ("budget.max_requests", ProjectRight::Narrow),
    ("budget.max_tokens", ProjectRight::Narrow),
    ("budget.max_cost", ProjectRight::Narrow),
    ("budget.max_wall_s", ProjectRight::Narrow),
    ("budget.session_max_requests", ProjectRight::Narrow),
    ("budget.session_max_tokens", ProjectRight::Narrow),
    ("budget.session_max_cost", ProjectRight::Narrow),
    ("budget.session_max_wall_s", ProjectRight::Narrow),
    ("permissions.default", ProjectRight::Narrow),
    ("permissions.timeout_s", ProjectRight::Narrow),
    ("permissions.background_timeout_s", ProjectRight::Narrow),
    ("permissions.rules", ProjectRight::Narrow),
    ("tools.max_concurrency", ProjectRight::Set),
    ("tools.client_files", ProjectRight::Nothing),
    ("tools.client_terminal", ProjectRight::Nothing),
    ("tools.fetch_allowed_hosts", ProjectRight::Nothing),
    ("tools.mcp_tokens", ProjectRight::Set),
    ("tools.mcp_wait_s", ProjectRight::Nothing),
    ("tools.mcp_wait_run_s", ProjectRight::Nothing),
    ("sandbox.git_config", ProjectRight::Nothing),
    ("sandbox.mode", ProjectRight::Narrow),
    ("sandbox.network", ProjectRight::Narrow),
    ("sandbox.writable", ProjectRight::Nothing),
    ("lsp", ProjectRight::Narrow),
    ("mcp", ProjectRight::Nothing),
    ("context.bundle_tokens", ProjectRight::Set),
    ("context.compact_at", ProjectRight::Nothing),
    ("context.prune_minimum_tokens", ProjectRight::Nothing),
    ("context.prune_protect_tokens", ProjectRight::Nothing),
    ("context.prune_protected_tools", ProjectRight::Nothing),
    ("hooks", ProjectRight::Nothing),
    ("agents", ProjectRight::Nothing),
    ("acp", ProjectRight::Nothing),
    ("http", ProjectRight::Nothing),
    ("telemetry", ProjectRight::Nothing),
    ("update", ProjectRight::Nothing),
    ("instructions.patterns", ProjectRight::Set),
    ("instructions.auto_inject", ProjectRight::Set),
    ("verify", ProjectRight::Nothing),
    ("review", ProjectRight::Nothing),
    ("worktree", ProjectRight::Nothing),
    ("chat", ProjectRight::Nothing),
    ("trust", ProjectRight::Nothing),
    ("prompts", ProjectRight::Nothing),
];

/// When a commit is flushed to the disk (fsync).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Before a side effect and at the end of a turn.
    #[default]
    Auto,
    /// Never.
    Normal,
    /// Always.
    Full,
}

/// Permission rules and what applies without one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Policy in the mode `ask` for calls that no rule matches, except reads inside the roots,
    /// which are allowed.
    pub default: Policy,
    /// Seconds that a permission request waits while no person's client is attached; then its turn
    /// ends.
    pub timeout_s: u64,
    /// Seconds that a permission request of `nuncio run --bg` waits instead.
    pub background_timeout_s: u64,
    /// Within a scope, the last matching rule decides. A deny of an outer scope cannot be
    /// overridden.
    pub rules: Vec<Rule>,
}

impl Default for Permissions {
    fn default() -> Self {
        Self { default: Policy::Ask, timeout_s: 300, background_timeout_s: 86_400, rules: Vec::new() }
    }
}

/// The decision about a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    Allow,
    Ask,
    Deny,
}

/// A permission rule: the tool calls it matches, and their policy. An absent field matches
/// everything.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Glob for the tool's name.
    pub tool: Option<String>,
    pub kind: Option<AccessKind>,
    /// Glob for the path, relative to the session's directory or absolute.
    pub path: Option<String>,
    /// Pattern for a shell command or a URL; `*` matches any text: `git status *`,
    /// `https://docs.rs/*`.
    pub pattern: Option<String>,
    /// Only in sessions in this directory or below it: absolute, or with `~/`.
    pub directory: Option<PathBuf>,
    /// True: exactly this call, in a session in exactly this directory, as answers to permission
    /// requests add it. The rule precedes those that the session remembers.
    pub exact: Option<bool>,
    pub policy: Policy,
}

impl Rule {
    pub(crate) fn is_exact(&self) -> bool {
        self.exact == Some(true)
    }
}

/// The kind of access that a tool call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    Read,
    Write,
    Exec,
    Network,
    Mcp,
}

/// Settings of tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSettings {
    /// Maximum number of tool calls of one answer that run concurrently.
    pub max_concurrency: usize,
    /// Read and write files through the client if it supports that, including its unsaved changes.
    /// False: always use the disk.
    pub client_files: bool,
    /// Run commands in the client's terminals if it supports them. Sandboxed commands, as in the
    /// mode `auto`, never run there.
    pub client_terminal: bool,
    /// Non-public hosts that `fetch` may access: `host` or `host:port`.
    pub fetch_allowed_hosts: Vec<String>,
    /// Maximum size of the specifications of all MCP tools in a request, in tokens. If they are
    /// larger, models find the tools with the tool `mcp_search`.
    pub mcp_tokens: usize,
    /// Maximum seconds that the first turn of a session waits for MCP servers that are starting.
    pub mcp_wait_s: u64,
    /// Maximum seconds of that wait in `nuncio run`, which shows it; on a terminal, Enter ends it.
    pub mcp_wait_run_s: u64,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            max_concurrency: 8,
            client_files: true,
            client_terminal: false,
            fetch_allowed_hosts: Vec::new(),
            mcp_tokens: MCP_SPECS_TOKENS,
            mcp_wait_s: MCP_START_WAIT.as_secs(),
            mcp_wait_run_s: MCP_START_WAIT_RUN.as_secs(),
        }
    }
}

/// A language server: its command and its files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageServer {
    /// The program and its arguments. The server communicates on its standard input and output. An
    /// empty list turns the server of this name off.
    pub command: Vec<String>,
    /// Globs for the paths of the files that the server handles.
    #[serde(default)]
    pub files: Vec<String>,
    /// Set if a project's settings name the program.
    #[serde(skip)]
    #[schemars(skip)]
    pub project: Option<ProjectProgram>,
}

/// Tracing: spans of requests, turns, model calls and tool calls, without their contents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// URL of an OpenTelemetry collector that accepts OTLP over HTTP: `http://127.0.0.1:4318`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
}

/// Search for newer versions of nuncio.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpdateSettings {
    /// URL of a JSON object whose `version` is the newest version. Only `nuncio update --check`
    /// requests it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The place of the sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSettings {
    /// URL of a PostgreSQL database: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Default, also
    /// as `sqlite`: a file in the data directory. The environment variable `NUNCIO_STORE` and the
    /// option `--store` precede it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl StoreSettings {
    /// Returns the URL of the PostgreSQL database, if there is one.
    pub(crate) fn postgres(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| *url != SQLITE)
    }
}

/// A node of a cluster: this process, if its store is a PostgreSQL database.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterSettings {
    /// Names this node in messages. Default: the name of the machine.
    pub name: Option<String>,
    /// URL of the HTTP server of this process for the other nodes: `https://HOST:PORT`, or without
    /// the port if it is that of the server. The server needs `http.tls_certificate`; the
    /// certificate may be self-signed. Without an address, other nodes cannot call this one.
    pub address: Option<String>,
    /// File with the secret of the cluster, at least 32 characters; relative to the settings file.
    /// Two lines while the secret is being changed: the first one is proven, both are accepted. It
    /// must be private (mode 0600), unless it is mounted read-only.
    pub secret_file: Option<PathBuf>,
}

/// Clients of the Agent Client Protocol (`nuncio acp`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AcpSettings {
    /// Seconds that turns go on after the end of a client that asked for it in `initialize`
    /// (`finishTurns`); then they are cancelled.
    pub finish_turns_s: u64,
}

impl Default for AcpSettings {
    fn default() -> Self {
        Self { finish_turns_s: 3600 }
    }
}

/// The HTTP server (`nuncio serve`, `nuncio acp --http`).
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// Seconds that running turns may take at shutdown before they are cancelled.
    pub drain_s: u64,
    /// Maximum number of open sessions.
    pub max_sessions: usize,
    /// Maximum number of turns that run concurrently.
    pub max_turns: usize,
    /// PEM file of the certificate chain. With it and `tls_key`, the server uses TLS.
    pub tls_certificate: Option<PathBuf>,
    /// PEM file of the private key.
    pub tls_key: Option<PathBuf>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { drain_s: 10, max_sessions: 1000, max_turns: 64, tls_certificate: None, tls_key: None }
    }
}

/// Instruction files of projects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Instructions {
    /// Files that are searched in the session's directory and its parents, up to the repository's
    /// root.
    pub patterns: Vec<String>,
    /// Add these files to the system prompt.
    pub auto_inject: bool,
}

impl Default for Instructions {
    fn default() -> Self {
        let patterns = ["AGENTS.md", "CLAUDE.md", ".nuncio/instructions.md"];
        Self { patterns: patterns.map(String::from).into(), auto_inject: true }
    }
}
