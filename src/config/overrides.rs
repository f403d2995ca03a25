//! The values of command-line flags.

use std::path::PathBuf;

use crate::options::{Mode, Thinking};

/// Values of command-line flags; they take precedence over all files.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub model: Option<String>,
    /// The hosted agent of new sessions; several only for a comparison.
    pub agents: Vec<String>,
    /// Replaces the base URL of the model's provider.
    pub base_url: Option<String>,
    /// The text of the settings, instead of the files of the user and of the project.
    pub settings: Option<String>,
    pub mode: Option<Mode>,
    pub thinking: Option<Thinking>,
    pub system_prompt: Option<String>,
    /// Names and globs of the tools that models get in sessions without such a list.
    pub tools: Option<Vec<String>>,
    pub sandbox: Option<String>,
    /// Additional roots.
    pub roots: Vec<PathBuf>,
    /// The last message must be JSON.
    pub json_answer: bool,
    /// The model may commit although no message asks for it.
    pub allow_commit: bool,
    /// This process runs in the background: permission requests wait for a client for long.
    pub background: bool,
}

impl Overrides {
    /// Returns whether an override applies only to turns in this process. The others can be set for
    /// a session.
    pub(crate) fn apply_to_process(&self) -> bool {
        let Overrides { base_url, settings, system_prompt, tools, sandbox, roots, json_answer, allow_commit, background, .. } =
            self;
        *json_answer
            || *allow_commit
            || *background
            || base_url.is_some()
            || settings.is_some()
            || system_prompt.is_some()
            || tools.is_some()
            || sandbox.is_some()
            || !roots.is_empty()
    }
}
