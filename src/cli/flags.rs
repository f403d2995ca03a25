//! Command-line arguments and their help texts. The types have no doc comments of their own: clap
//! prints a doc comment as help.

pub(super) mod config_flags;
pub(super) mod eval_options;
pub(super) mod login_flags;
pub(super) mod replay_options;
pub(super) mod run_options;
pub(super) mod serve_flags;
pub(super) mod server_flags;
pub(super) mod workspace_flags;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use self::config_flags::ConfigCommand;
use self::eval_options::EvalOptions;
use self::login_flags::{AcpCommand, LoginOptions};
use self::replay_options::ReplayOptions;
use self::run_options::{ChatOptions, RunOptions};
use self::serve_flags::{HttpArgs, ServeOptions};
use self::server_flags::McpCommand;
use self::workspace_flags::WorkspacesCommand;
use super::agents::command::AgentsCommand;
use super::store_copy::StoreCommand;
use crate::app::CommonArgs;
use crate::config::Overrides;
use crate::error::Result;
use crate::options::Thinking;

/// Coding agent for editors, scripts and other programs
#[derive(Debug, Parser)]
#[command(name = "nuncio", version, propagate_version = true)]
pub(super) struct Flags {
    #[command(subcommand)]
    pub command: Option<CliCommand>,
    #[command(flatten)]
    pub common: CommonFlags,
}

#[derive(Debug, Args)]
pub(super) struct CommonFlags {
    /// Use a model: PROVIDER/NAME or scripted:FILE; several: eval measures them (repeatable)
    #[arg(short, long = "model", global = true, value_name = "MODEL", help_heading = "Common options")]
    pub models: Vec<String>,
    /// Use a hosted agent in new sessions; several: run and eval compare them
    /// (repeatable)
    #[arg(long = "agent", global = true, value_name = "NAME", help_heading = "Common options")]
    agents: Vec<String>,
    /// Replace the base URL of the model's provider
    #[arg(long, global = true, value_name = "URL", help_heading = "Common options")]
    base_url: Option<String>,
    /// Work in DIR
    #[arg(long, global = true, value_name = "DIR", help_heading = "Common options")]
    cwd: Option<PathBuf>,
    /// Set the permission mode: ask, accept-edits, plan or auto
    #[arg(long, global = true, value_name = "MODE", help_heading = "Common options")]
    mode: Option<String>,
    /// Set how much the model thinks: off, minimal, low, medium, high, xhigh or max
    #[arg(long, global = true, value_enum, value_name = "LEVEL", hide_possible_values = true, help_heading = "Common options")]
    thinking: Option<Thinking>,
    /// Replace the built-in system prompt
    #[arg(long, global = true, value_name = "TEXT", help_heading = "Common options")]
    system_prompt: Option<String>,
    /// Sandbox commands: off, read-only or workspace-write
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        value_parser = ["off", "read-only", "workspace-write"],
        hide_possible_values = true,
        help_heading = "Common options"
    )]
    sandbox: Option<String>,
    /// Allow work in another directory; with `token new`, limit the token to it (repeatable)
    #[arg(long = "root", global = true, value_name = "DIR", help_heading = "Common options")]
    roots: Vec<PathBuf>,
    /// Read settings from FILE
    #[arg(long, global = true, value_name = "FILE", help_heading = "Common options")]
    config: Option<PathBuf>,
    /// Store sessions and tokens in DIR
    #[arg(long, global = true, value_name = "DIR", help_heading = "Common options")]
    data_dir: Option<PathBuf>,
    /// Store sessions in the PostgreSQL database at URL, or in DIR: sqlite
    #[arg(long, global = true, value_name = "URL", help_heading = "Common options")]
    store: Option<String>,
}

impl CommonFlags {
    /// Parses the values. An unknown mode is an error with a hint, which clap cannot report.
    pub(crate) fn args(self) -> Result<CommonArgs> {
        Ok(CommonArgs {
            overrides: Overrides {
                allow_commit: false,
                model: self.models.into_iter().next(),
                agents: self.agents,
                base_url: self.base_url,
                settings: None,
                mode: self.mode.as_deref().map(str::parse).transpose()?,
                thinking: self.thinking,
                system_prompt: self.system_prompt,
                tools: None,
                sandbox: self.sandbox,
                roots: self.roots,
                json_answer: false,
                background: false,
            },
            config: self.config,
            data: self.data_dir,
            store: self.store,
            cwd: self.cwd,
        })
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Serve the Agent Client Protocol on standard input and output, for editors
    Acp(AcpOptions),
    /// Serve HTTP for browsers, scripts and other agents: REST, events, JSON-RPC
    Serve(ServeOptions),
    /// Manage access tokens for the HTTP server
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Converse on the terminal; the default on a terminal
    Chat(ChatOptions),
    /// Run one or more prompts in order and exit
    Run(RunOptions),
    /// Show the sessions that work, wait for you, or ended in the background
    Ps {
        /// Print a JSON line for each session
        #[arg(long)]
        json: bool,
    },
    /// Fix a failing test in a sample repository, offline
    Demo {
        /// Allow every tool call
        #[arg(long)]
        yes: bool,
        /// Create the repository in DIR, which must not exist
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
    },
    /// Measure which tasks models and agents solve
    Eval(EvalOptions),
    /// Repeat a recorded session, and compare what it sends and does
    Replay(ReplayOptions),
    /// Run a single tool, with the same permission checks as in a session
    Tool(ToolOptions),
    /// List, show, cancel, answer, export, import and delete sessions
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// Create, list, apply and delete workspaces: git worktrees for sessions
    Workspaces {
        #[command(subcommand)]
        command: WorkspacesCommand,
    },
    /// Copy all sessions between SQLite and PostgreSQL
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Print a generated schema, or list the schemas
    Schema {
        /// Schema to print; without a name, the schemas are listed
        name: Option<String>,
    },
    /// Show, check and change the settings
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
    /// List the models that the configured providers offer
    Models(ModelsOptions),
    /// Store the API key of a provider, in the keyring or in a private file
    Login(LoginOptions),
    /// Remove the stored API key of a provider
    Logout {
        /// Provider; not needed if one key is stored
        provider: Option<String>,
    },
    /// List and check the agents that nuncio can host
    Agents {
        #[command(subcommand)]
        command: AgentsCommand,
    },
    /// List, check, add and remove MCP servers; serve nuncio as an MCP server
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
    /// Show what a directory's settings start and allow, and trust it
    #[command(args_conflicts_with_subcommands = true)]
    Trust {
        /// Directory to trust; one that is called list or remove: ./list, ./remove
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Do not ask at a terminal
        #[arg(long, short)]
        yes: bool,
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
        /// Show what changed since the directory was trusted, and change nothing
        #[arg(long, conflicts_with_all = ["yes", "json"])]
        diff: bool,
        #[command(subcommand)]
        command: Option<TrustCommand>,
    },
    /// Check the settings, the store, the shell and, with one short request, the model
    Doctor,
    /// Report whether a newer version exists, according to the address in update.url
    Update {
        /// Request the address; nuncio never updates itself
        #[arg(long, required = true)]
        check: bool,
    },
    /// Print the completion script of a shell
    #[command(hide = true)]
    Completions {
        /// Shell that reads the script
        shell: Shell,
    },
    /// Write the man pages, one for each command
    #[command(hide = true)]
    Man {
        /// Directory of the pages; it is created if it does not exist
        dir: PathBuf,
    },
}

#[derive(Debug, Default, Args)]
pub(super) struct AcpOptions {
    /// Also serve HTTP on ADDR, with the same sessions
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    #[command(flatten)]
    pub server: HttpArgs,
    #[command(subcommand)]
    pub command: Option<AcpCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// List named tokens with their roles and roots
    List,
    /// Create a token and print it; it cannot be shown again
    New {
        /// Name of the token
        name: String,
        /// Set the role: observer reads; controller also prompts and answers questions
        #[arg(long, default_value = "controller")]
        role: String,
    },
    /// Revoke a token immediately
    Revoke {
        /// Name of the token
        name: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct ToolOptions {
    /// Name of the tool; without it, the tools and their parameters are listed
    pub name: Option<String>,
    /// Input of the tool as JSON; `-` reads it from standard input
    #[arg(default_value = "{}")]
    pub input: String,
}

#[derive(Debug, Args)]
pub(super) struct ModelsOptions {
    /// Names of providers; without them, all configured providers
    #[arg(value_name = "PROVIDER")]
    pub providers: Vec<String>,
    /// Request the lists from the providers, even if the cached lists are up to date
    #[arg(long)]
    pub refresh: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// List sessions, most recently updated first
    List {
        /// Show only sessions of this directory
        #[arg(long)]
        here: bool,
        /// Show only sessions with each of these words in a message, or in title and directory
        #[arg(long, value_name = "WORDS")]
        text: Option<String>,
        /// Show all sessions, not only the newest 20
        #[arg(short, long)]
        all: bool,
        /// Print JSON lines, of all sessions
        #[arg(long)]
        json: bool,
    },
    /// Show the messages and tool calls of a session
    Show {
        /// Session id, or a unique start of it
        id: String,
        /// Print events as JSON lines
        #[arg(long)]
        json: bool,
        /// Continue with live events until the session is deleted
        #[arg(long)]
        follow: bool,
    },
    /// Show a model request of a session as it was sent: URL, headers with masked keys, body
    Requests {
        /// Session id, or a unique start of it
        id: String,
        /// Turn id, or a unique start of it; without it, the last turn with a model request
        #[arg(long)]
        turn: Option<String>,
        /// Number of the request in the turn, from 1; without it, the last one
        #[arg(long, value_name = "N")]
        step: Option<u32>,
    },
    /// Cancel the running turn of a session, in whichever process it runs
    Cancel {
        /// Session id, or a unique start of it
        id: String,
    },
    /// Answer a permission request of a session, in whichever process it waits
    Answer {
        /// Id of a session or of a permission request, or a unique start of it
        id: String,
        /// Option to choose: its id, or allow_once, allow_always, reject_once or reject_always;
        /// without it, the open requests are listed
        option: Option<String>,
    },
    /// Export a session as JSON lines: first the metadata, then the messages
    Export {
        /// Session id, or a unique start of it
        id: String,
        /// Write the session to DIR: session.json, events.ndjson, attachments/, artifacts/
        #[arg(long, value_name = "DIR")]
        layout: Option<PathBuf>,
        /// Write a recording to DIR, which nuncio replay repeats
        #[arg(long, value_name = "DIR", conflicts_with = "layout")]
        scripted: Option<PathBuf>,
    },
    /// Create a session from an export
    Import {
        /// Exported file; `-` reads standard input
        file: PathBuf,
    },
    /// Delete sessions with their attachments and artifacts
    Rm {
        /// Session ids
        #[arg(required = true)]
        ids: Vec<String>,
        /// Delete without asking; without a terminal, nothing is asked
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum TrustCommand {
    /// List the trusted directories, and which of them changed since
    List,
    /// Revoke the trust of a directory
    Remove {
        /// Directory that is trusted
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
}
