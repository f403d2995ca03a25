//! Every setting, as it stands in a file; `schema/config.json` is made from these types.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of nuncio (`config.toml`, and `.nuncio/config.toml` of a project).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `PROVIDER/NAME`, or `scripted:FILE`. Without it: what the keys in the environment and the local servers offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What survives a power cut; a crash of nuncio loses nothing that was shown, whatever stands here.
    pub durability: Durability,
    /// Directories that count as roots in every session, beside its own.
    pub allowed_paths: Vec<PathBuf>,
    /// Models' hosts beyond the known ones, or other settings for those.
    pub providers: BTreeMap<String, Provider>,
    pub permissions: Permissions,
    pub tools: ToolSettings,
    pub sandbox: SandboxSettings,
    /// Language servers, by names of their own. Where nothing stands under `rust`, `python`, `typescript`, `go` or `c`, the usual one is looked
    /// for on PATH, and started in trusted directories.
    pub lsp: BTreeMap<String, LanguageServer>,
    pub http: HttpSettings,
    pub telemetry: Telemetry,
    pub instructions: Instructions,
    /// Files with a system prompt instead of nuncio's own, by a pattern of `PROVIDER/NAME`; `*` is the default. Relative to the settings' file.
    pub prompts: BTreeMap<String, PathBuf>,
}

/// When a commit waits for the disk, and not only for the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// For facts that precede an effect or end a turn.
    #[default]
    Auto,
    /// Never.
    Normal,
    /// Always.
    Full,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Provider {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Up to and with the version: `http://127.0.0.1:8080/v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Name of the environment variable that holds the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// A command whose standard output is the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_command: Option<Vec<String>>,
    /// Names of its models that clients can choose from; replaces the known ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Tokens that a conversation may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Tokens that one answer may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
}

/// The wire format that a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// OpenAI Chat Completions, and everything that is compatible with it.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini `generateContent`.
    Gemini,
}

impl Protocol {
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::OpenaiChat => "openai-chat",
            Protocol::OpenaiResponses => "openai-responses",
            Protocol::Anthropic => "anthropic",
            Protocol::Gemini => "gemini",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Stands for `ask` in the mode `ask`.
    pub default: Policy,
    /// Seconds that a question stays open; then the answer is no.
    pub timeout_s: u64,
    /// The last one that matches a call decides, within its scope; a deny of an outer scope stands.
    pub rules: Vec<Rule>,
}

impl Default for Permissions {
    fn default() -> Self {
        Self { default: Policy::Ask, timeout_s: 300, rules: Vec::new() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    Allow,
    Ask,
    Deny,
}

/// Which calls, and what about them. What is absent matches everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Glob over the tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<AccessKind>,
    /// Glob over the path, relative to the session's directory, or absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A shell command, or the address of a page, in which `*` stands for anything: `git status *`, `https://docs.rs/*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    pub policy: Policy,
}

/// What a tool call does, as rules and modes speak of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    Read,
    Write,
    Exec,
    Network,
    Mcp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSettings {
    /// Calls of one answer that run at once.
    pub max_concurrency: usize,
    /// Files are read and written through the client, with its unsaved changes, where it offers
    /// that. False: always on the disk.
    pub client_files: bool,
    /// Commands run in terminals of the client, where it has them and the user sees them; but not those that a sandbox has to confine, as
    /// in the mode `auto`.
    pub client_terminal: bool,
    /// Hosts that `fetch` may ask although they are not on the public web: `host` or `host:port`.
    pub fetch_allowed_hosts: Vec<String>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self { max_concurrency: 8, client_files: true, client_terminal: false, fetch_allowed_hosts: Vec::new() }
    }
}

/// What the commands that nuncio runs may touch (Linux, by Landlock and seccomp).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSettings {
    /// Without it: `workspace-write` in the session mode `auto`, where nobody is asked, and else `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SandboxMode>,
    /// Whether commands may use TCP and UDP. Unix sockets stay shut in any case.
    pub network: bool,
    /// Directories that `workspace-write` lets commands write to, beside the roots.
    pub writable: Vec<PathBuf>,
}

/// From wide to narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Commands may do what their user may.
    Off,
    /// They write below the roots and in a temporary directory of their own.
    WorkspaceWrite,
    /// They write in that temporary directory alone.
    ReadOnly,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageServer {
    /// The program, with its arguments, that speaks the protocol on its standard input and output. Empty: there is none by this name.
    pub command: Vec<String>,
    /// Globs over the paths of the files that it knows.
    #[serde(default)]
    pub files: Vec<String>,
}

/// Traces of what nuncio does: spans of requests, turns, models and tools, without their contents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// An OpenTelemetry collector that takes OTLP over HTTP: `http://127.0.0.1:4318`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
}

/// The bridge (`nuncio serve`, `nuncio acp --http`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// Seconds that running turns get when the server ends; then they are cancelled.
    pub drain_s: u64,
    /// Sessions that may be open at once.
    pub max_sessions: usize,
    /// Turns that may run at once.
    pub max_turns: usize,
    /// A certificate chain and its key as PEM files: the bridge then speaks TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_certificate: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { drain_s: 10, max_sessions: 1000, max_turns: 64, tls_certificate: None, tls_key: None }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Instructions {
    /// Files looked for in the session's directory and above it, up to the repository's root.
    pub patterns: Vec<String>,
    /// Whether they go into the system prompt.
    pub auto_inject: bool,
}

impl Default for Instructions {
    fn default() -> Self {
        let patterns = ["AGENTS.md", "CLAUDE.md", ".nuncio/instructions.md"];
        Self { patterns: patterns.map(String::from).into(), auto_inject: true }
    }
}
