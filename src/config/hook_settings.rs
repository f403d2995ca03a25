//! The settings of hooks (`[[hooks]]`), which run commands at six events.

use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::Glob;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::project_program::ProjectProgram;
use crate::event::HookEvent;
use crate::limits;

/// Maximum timeout of a hook.
const HOOK_MAX: Duration = Duration::from_secs(600);

/// A command that runs at an event; see docs/HOOKS.md. Hooks run in the order of the file, those of
/// the user's file first.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookSettings {
    pub event: HookEvent,
    /// Glob for the name of the tool (`tool` events), else for `PROVIDER/NAME` of the model.
    /// Default: all.
    pub r#match: Option<String>,
    /// The program and its arguments, without a shell. A relative script, and a word that is a file
    /// there, is relative to the directory of the user's settings file; in the settings of a
    /// project, to the directory that contains `.nuncio`.
    pub command: Vec<String>,
    /// Directory in which a hook of the user's settings runs. Default: that of the settings file.
    /// `$WORKSPACE`: the session's directory, if that is trusted; the hook is confined there. The
    /// hooks of a project always run confined in the project.
    pub cwd: Option<PathBuf>,
    /// Milliseconds after which the command is killed.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// Default: `closed` for `tool.execute.before`, else `open`.
    pub on_failure: Option<FailurePolicy>,
    /// Set if a project's settings name the program.
    #[serde(skip)]
    #[schemars(skip)]
    pub project: Option<ProjectProgram>,
}

fn default_timeout_ms() -> u64 {
    limits::HOOK.as_millis() as u64
}

/// The effect of a hook that fails or times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[deny(missing_docs)]
pub enum FailurePolicy {
    /// The hook blocks.
    Closed,
    /// The hook has no effect.
    Open,
}

impl HookSettings {
    /// Returns a message if the program or the script does not exist. The command runs in `cwd`;
    /// `search` is the value of PATH.
    pub(crate) fn missing_file(&self, cwd: &Path, search: &str) -> Option<String> {
        let program = self.command.first()?;
        let is_missing = match program.contains('/') {
            true => !cwd.join(program).is_file(),
            false => !search.split(':').any(|directory| cwd.join(directory).join(program).is_file()),
        };
        if is_missing {
            return Some(format!("{program} was not found"));
        }
        let script = &self.command[script_word(&self.command)?];
        (!cwd.join(script).exists()).then(|| format!("{script} does not exist"))
    }

    /// Returns the policy of the settings, or the default of the event.
    pub(crate) fn failure_policy(&self) -> FailurePolicy {
        self.on_failure.unwrap_or(match self.event {
            HookEvent::ToolExecuteBefore => FailurePolicy::Closed,
            HookEvent::ToolExecuteAfter
            | HookEvent::ToolResultValidate
            | HookEvent::PromptSystemTransform
            | HookEvent::PromptMessagesTransform
            | HookEvent::SessionCompacting => FailurePolicy::Open,
        })
    }
}

/// Interpreters that take a script as their first operand, and the letters of their options without
/// a value.
const INTERPRETERS: &[(&str, &str)] = &[
    ("bash", "abefhkmnptuvxBCEHP"),
    ("dash", "aefmnuvx"),
    ("perl", "TUWXcnpstuwl"),
    ("php", "nq"),
    ("python", "BEIOPRSbdiqsuvx"),
    ("ruby", "SWcdlnpsvw"),
    ("sh", "abefhkmnptuvx"),
    ("zsh", "abefhkmnptuvx"),
];

/// Returns the index of the word that an interpreter runs as a script, if the command is known to
/// have one.
pub(crate) fn script_word(command: &[String]) -> Option<usize> {
    let name = |word: &String| {
        word.rsplit('/').next().unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned()
    };
    let mut words = command.iter().enumerate().peekable();
    let mut program = name(words.next()?.1);
    if program == "env" {
        while words.next_if(|(_, word)| word.contains('=') && !word.starts_with('-')).is_some() {}
        program = name(words.next()?.1);
    }
    let (_, flags) = INTERPRETERS.iter().find(|(interpreter, _)| *interpreter == program)?;
    let is_flag = |word: &str| {
        word.strip_prefix('-').is_some_and(|letters| !letters.is_empty() && letters.chars().all(|c| flags.contains(c)))
    };
    while words.next_if(|(_, word)| is_flag(word)).is_some() {}
    words.next().filter(|(_, word)| !word.starts_with(['-', '+']) && !word.is_empty()).map(|(index, _)| index)
}

/// Rejects hooks without a command, with an invalid glob or with an invalid timeout.
pub(super) fn check(hooks: &[HookSettings]) -> Result<(), String> {
    let longest = HOOK_MAX;
    for (index, hook) in hooks.iter().enumerate() {
        if hook.command.first().is_none_or(String::is_empty) {
            return Err(format!("hooks[{index}].command: name a program"));
        }
        if let Some(glob) = &hook.r#match {
            Glob::new(glob).map_err(|error| format!("hooks[{index}].match: {error}"))?;
        }
        if hook.timeout_ms == 0 || Duration::from_millis(hook.timeout_ms) > longest {
            return Err(format!("hooks[{index}].timeout_ms: give 1 to {}", longest.as_millis()));
        }
    }
    Ok(())
}
