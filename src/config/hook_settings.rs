//! The settings of hooks (`[[hooks]]`), which run commands at six events.

use std::time::Duration;

use globset::Glob;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::HookEvent;
use crate::limits;

/// A command that runs at an event; see docs/HOOKS.md. Hooks run in the order of the file, those of
/// the user's file first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookSettings {
    pub event: HookEvent,
    /// Glob for the name of the tool (`tool` events), else for `PROVIDER/NAME` of the model.
    /// Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#match: Option<String>,
    /// The program and its arguments, without a shell. It runs in the session's directory, without
    /// a sandbox. A word that is a file in the directory of the user's settings file means that
    /// file.
    pub command: Vec<String>,
    /// Milliseconds after which the command is killed.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// Default: `closed` for `tool.execute.before`, else `open`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<FailurePolicy>,
}

fn default_timeout_ms() -> u64 {
    limits::HOOK.as_millis() as u64
}

/// The effect of a hook that fails or times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailurePolicy {
    /// The hook blocks.
    Closed,
    /// The hook has no effect.
    Open,
}

impl HookSettings {
    /// The policy of the settings, or the default of the event.
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

/// Rejects hooks without a command, with an invalid glob or with an invalid timeout.
pub(super) fn check(hooks: &[HookSettings]) -> Result<(), String> {
    let longest = limits::HOOK_MAX;
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
