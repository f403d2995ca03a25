//! What can be said on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::app::Setup;
use crate::config::Overrides;
use crate::model::Thinking;

/// The coding agent that every editor, script and other agent can spawn.
#[derive(Debug, Parser)]
#[command(name = "nuncio", version, propagate_version = true, subcommand_help_heading = "Commands")]
#[command(
    after_help = "Without a command: acp when standard input is no terminal. A key is never a flag: environment, file or command."
)]
pub struct Flags {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub struct Common {
    /// PROVIDER/NAME, or scripted:FILE
    #[arg(long, global = true, value_name = "MODEL", help_heading = "Common options")]
    model: Option<String>,
    /// Instead of the base URL of the model's provider
    #[arg(long, global = true, value_name = "URL", help_heading = "Common options")]
    base_url: Option<String>,
    /// Work in DIR
    #[arg(long, global = true, value_name = "DIR", help_heading = "Common options")]
    cwd: Option<PathBuf>,
    /// ask, accept-edits, plan or auto
    #[arg(long, global = true, value_name = "MODE", help_heading = "Common options")]
    mode: Option<String>,
    /// How much the model may think
    #[arg(long, global = true, value_enum, value_name = "LEVEL", help_heading = "Common options")]
    thinking: Option<Thinking>,
    /// Instead of nuncio's own system prompt
    #[arg(long, global = true, value_name = "TEXT", help_heading = "Common options")]
    system_prompt: Option<String>,
    /// What commands may touch: off, read-only or workspace-write
    #[arg(
        long,
        global = true,
        value_name = "WHAT",
        value_parser = ["off", "read-only", "workspace-write"],
        hide_possible_values = true,
        help_heading = "Common options"
    )]
    sandbox: Option<String>,
    /// Another directory to work in (repeatable)
    #[arg(long = "root", global = true, value_name = "DIR", help_heading = "Common options")]
    roots: Vec<PathBuf>,
    /// Settings from FILE
    #[arg(long, global = true, value_name = "FILE", help_heading = "Common options")]
    config: Option<PathBuf>,
    /// Sessions in DIR
    #[arg(long, global = true, value_name = "DIR", help_heading = "Common options")]
    data_dir: Option<PathBuf>,
}

impl Flags {
    pub fn setup(&self) -> Setup {
        let common = &self.common;
        Setup {
            overrides: Overrides {
                model: common.model.clone(),
                base_url: common.base_url.clone(),
                mode: common.mode.clone(),
                thinking: common.thinking.map(|level| level.as_str().into()),
                system_prompt: common.system_prompt.clone(),
                sandbox: common.sandbox.clone(),
                roots: common.roots.clone(),
            },
            config: common.config.clone(),
            data: common.data_dir.clone(),
            cwd: common.cwd.clone(),
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Agent Client Protocol on standard input and output: what editors spawn
    Acp {
        /// Open the bridge on ADDR, too, over the same sessions
        #[arg(long, value_name = "ADDR")]
        http: Option<String>,
        #[command(flatten)]
        bridge: BridgeOptions,
    },
    /// The bridge: REST and server-sent events, for browsers, scripts and other agents
    Serve {
        /// Listen on ADDR
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8686")]
        http: String,
        #[command(flatten)]
        bridge: BridgeOptions,
    },
    /// Named tokens for the bridge: list, new, revoke
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Work on prompts, one after the other, and exit
    Run(RunOptions),
    /// A small repository, a failing test, and an agent that mends it: offline
    Demo {
        /// Answer every question with yes
        #[arg(long)]
        yes: bool,
        /// Make the repository in DIR, which must not exist
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
    },
    /// Run one tool by hand, through the same gate
    Tool(ToolOptions),
    /// The store: list, show, export, import, rm
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// Print a generated schema, or their names
    Schema { name: Option<String> },
    /// Settings: show them with their origins, check a file, or where it is
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
    /// Let a project's settings widen what is allowed
    Trust {
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
    /// Check what works here: settings, the store, the model (with one short request), the shell
    Doctor,
}

#[derive(Debug, Default, Args)]
pub struct BridgeOptions {
    /// Listen on other interfaces than the loopback, too; needs TLS, or --behind-proxy
    #[arg(long)]
    pub allow_public: bool,
    /// Somebody in front of the bridge does TLS
    #[arg(long)]
    pub behind_proxy: bool,
    /// A name by which the bridge may be asked for (repeatable)
    #[arg(long = "allow-host", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// An origin whose pages may ask, like https://name:port (repeatable)
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub origins: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Who may in, and for what
    List,
    /// Make a token, and print it this once
    New {
        name: String,
        /// observer reads; controller prompts and answers, too
        #[arg(long, default_value = "controller")]
        role: String,
    },
    /// Make a token worthless, at once
    Revoke { name: String },
}

#[derive(Debug, Args)]
pub struct RunOptions {
    /// The prompt; none, or `-`: standard input. Piped input is appended to the prompt
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// A prompt, instead of words; repeated, one after the other
    #[arg(short, long = "prompt", value_name = "TEXT", conflicts_with = "words")]
    pub prompts: Vec<String>,
    /// Events as JSON lines; with `-`, messages and interrupts are read as JSON lines
    #[arg(long)]
    pub json: bool,
    /// No colours
    #[arg(long)]
    pub plain: bool,
    /// Go on with the last session of this directory
    #[arg(long = "continue", conflicts_with = "resume")]
    pub last: bool,
    /// Go on with session ID
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,
}

#[derive(Debug, Args)]
pub struct ToolOptions {
    /// Without a name: list the tools and what they take
    pub name: Option<String>,
    /// The input as JSON; `-`: from standard input
    #[arg(default_value = "{}")]
    pub input: String,
}

#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// Most recently updated first
    List {
        /// Only those of this directory
        #[arg(long)]
        here: bool,
        #[arg(long)]
        json: bool,
    },
    /// All that was said and done
    Show {
        id: String,
        /// Events as JSON lines
        #[arg(long)]
        json: bool,
    },
    /// As JSON lines: first the metadata, then the messages
    Export {
        id: String,
        /// As a directory: session.json, events.ndjson, attachments/, artifacts/
        #[arg(long, value_name = "DIR")]
        layout: Option<PathBuf>,
    },
    /// Make a session of an export
    Import {
        /// `-`: standard input
        file: PathBuf,
    },
    /// Remove sessions with all that belongs to them
    Rm {
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Every value that is no default, and where it comes from
    Show,
    /// Read the settings and say what is wrong
    Check,
    /// Where the user's file is
    Path,
}
