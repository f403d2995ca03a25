//! The options of `nuncio run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::chat::NotifyMode;
use crate::cli::dollars::dollars;
use crate::config::Overrides;
use crate::content::{BudgetLimits, Cost};
use crate::error::{Error, Result};
use crate::options::Mode;

/// The standard output of `nuncio run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OutputFormat {
    /// The messages of the model.
    Text,
    /// One object with the result.
    Json,
    /// Events as JSON lines.
    StreamJson,
}

const EXAMPLES: &str = "\
Examples:
  nuncio run \"Why does the login test fail?\" --file login.log
  git diff | nuncio run --mode plan --output-format json \"Review this change\"";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, max_term_width = 80)]
pub(in crate::cli) struct RunOptions {
    /// Prompt; read from standard input if absent or `-`; piped input is appended
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    #[command(flatten)]
    pub session: SessionOptions,
    /// Give the prompt as an option; several prompts run in order (repeatable)
    #[arg(short, long = "prompt", value_name = "TEXT", conflicts_with = "words")]
    pub prompts: Vec<String>,
    /// Attach a file to the first prompt: text, image, audio, PDF or office document (repeatable)
    #[arg(short, long = "file", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Print the answer as text, the result as json, or the events as stream-json
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    output_format: Option<OutputFormat>,
    /// Same as --output-format stream-json; with `-`, read messages and interrupts as JSON lines
    #[arg(long, conflicts_with = "output_format")]
    json: bool,
    /// Write the last message to FILE, if the prompts complete
    #[arg(short, long, value_name = "FILE")]
    pub output_last_message: Option<PathBuf>,
    /// Require the last message to be JSON that matches the JSON Schema in FILE
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Print without colours
    #[arg(long)]
    pub plain: bool,
    /// Offer the model only these tools: names and globs, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    tools: Option<Vec<String>>,
    /// Stop after N model requests per prompt; 0 is no limit
    #[arg(long, value_name = "N")]
    pub max_requests: Option<u64>,
    /// Stop after N input and output tokens per prompt
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Stop when a prompt has cost this many US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub max_cost: Option<f64>,
    /// Cancel background work after the last prompt, instead of waiting for it
    #[arg(long)]
    pub no_wait: bool,
    /// Delete the session with its events and files when the command ends
    #[arg(long, conflicts_with_all = ["last", "resume"])]
    pub ephemeral: bool,
    /// Run in a process of its own and print the id of its session; see nuncio ps
    #[arg(long, conflicts_with_all = ["ephemeral", "json", "url"])]
    pub bg: bool,
    /// This is the process of --bg
    #[arg(long, hide = true)]
    pub detached: bool,
    /// Same as --mode auto: commands and edits in the project run without asking
    #[arg(long)]
    pub auto: bool,
    /// Let the model commit although no prompt asks for it
    #[arg(long)]
    allow_commit: bool,
    /// With several --agent: include uncommitted changes in their workspaces
    #[arg(long)]
    pub with_changes: bool,
}

#[derive(Debug, Default, Args)]
pub(in crate::cli) struct ChatOptions {
    /// First prompt
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    #[command(flatten)]
    pub session: SessionOptions,
    /// Print only finished lines and read whole lines, for screen readers: nothing is redrawn
    #[arg(long)]
    pub plain: bool,
    /// Notify while the terminal has no focus: auto, bell or off
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "WAY")]
    pub notify: NotifyMode,
}

#[derive(Debug, Default, Args)]
pub(in crate::cli) struct SessionOptions {
    /// Continue the most recent session that you began in this directory
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub last: bool,
    /// Continue session ID (or its start), or answer what it waits for; `last` is that of -c
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,
    /// Set the title of the new session
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["last", "resume"], value_parser = title)]
    pub title: Option<String>,
    /// Work in a new workspace (a git worktree): --worktree or --worktree=NAME
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "",
          conflicts_with_all = ["last", "resume", "url"])]
    pub worktree: Option<String>,
    /// Use the sessions of the nuncio server at URL, with the token in NUNCIO_TOKEN
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

impl SessionOptions {
    /// Returns whether an existing session is continued.
    pub(in crate::cli) fn continues(&self) -> bool {
        self.last || self.resume.as_ref().is_some_and(|id| !id.is_empty())
    }

    /// Returns whether the user chooses the session from a list.
    pub(in crate::cli) fn chooses(&self) -> bool {
        self.resume.as_ref().is_some_and(String::is_empty)
    }
}

/// Parses a title, which is one line.
fn title(text: &str) -> std::result::Result<String, String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { Err("must not be empty".to_owned()) } else { Ok(line) }
}

impl RunOptions {
    /// Adds the settings of these options to those that all commands accept.
    pub(in crate::cli) fn add_to(&self, overrides: &mut Overrides) -> Result<()> {
        if self.auto && overrides.mode.replace(Mode::Auto).is_some() {
            return Err(Error::invalid_params("--auto cannot be used with --mode").hint("--auto is short for --mode auto"));
        }
        if self.session.chooses() {
            return Err(
                Error::invalid_params("--resume: which session?").hint("--resume ID, or --continue; nuncio chat -r lists them")
            );
        }
        overrides.json_answer = self.output_schema.is_some();
        overrides.tools.clone_from(&self.tools);
        overrides.allow_commit = self.allow_commit;
        overrides.background = self.detached;
        Ok(())
    }

    /// Returns what is printed to standard output.
    pub(in crate::cli) fn format(&self) -> OutputFormat {
        if self.json { OutputFormat::StreamJson } else { self.output_format.unwrap_or(OutputFormat::Text) }
    }

    /// Returns the name of a given option that a comparison of agents does not support.
    pub(in crate::cli) fn not_compared(&self) -> Option<&'static str> {
        let given = [
            ("--file", !self.files.is_empty()),
            ("--output-format json", self.format() == OutputFormat::Json),
            ("--output-last-message", self.output_last_message.is_some()),
            ("--output-schema", self.output_schema.is_some()),
            ("--plain", self.plain),
            ("--max-requests", self.max_requests.is_some()),
            ("--max-tokens", self.max_tokens.is_some()),
            ("--max-cost", self.max_cost.is_some()),
            ("--no-wait", self.no_wait),
            ("--continue", self.session.last),
            ("--resume", self.session.resume.is_some()),
            ("--title", self.session.title.is_some()),
            ("--ephemeral", self.ephemeral),
            ("--bg", self.bg || self.detached),
            ("--worktree", self.session.worktree.is_some()),
            ("--url", self.session.url.is_some()),
        ];
        given.into_iter().find_map(|(name, given)| given.then_some(name))
    }

    /// Returns the limits that apply to the turn of each prompt.
    pub(in crate::cli) fn budget(&self) -> BudgetLimits {
        let RunOptions { max_requests, max_tokens, max_cost, .. } = self;
        BudgetLimits {
            max_requests: *max_requests,
            max_tokens: *max_tokens,
            max_cost: max_cost.map(Cost::from),
            ..BudgetLimits::default()
        }
    }
}
