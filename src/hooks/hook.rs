//! The `Hook` trait, and the effects that hooks can have.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::request::HookRequest;
use crate::config::FailurePolicy;
use crate::content::Part;
use crate::event::HookEvent;
use crate::model::Message;

/// Code that runs at an event. [`super::CommandHook`] runs a command; embedders may implement this
/// trait and pass the hook to [`crate::AgentBuilder::hook`].
pub trait Hook: Send + Sync {
    /// Returns the event at which the hook runs.
    fn event(&self) -> HookEvent;

    /// Returns the name in events and messages, on one line.
    fn name(&self) -> &str;

    /// Returns whether the hook runs for `subject`: the name of a tool, or `PROVIDER/NAME` of a
    /// model.
    fn matches(&self, subject: &str) -> bool;

    /// Returns how long a run may take.
    fn timeout(&self) -> Duration;

    /// Returns the effect of a run that fails or times out.
    fn on_failure(&self) -> FailurePolicy;

    /// Returns a sentence for the message about a run that timed out.
    fn timeout_hint(&self) -> Option<&str> {
        None
    }

    /// Runs the hook. Returns soon after `cancel`, with no process left running: it is cancelled at
    /// the timeout and with the turn.
    fn run<'a>(&'a self, request: &'a HookRequest, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<HookEffect, HookError>>;
}

/// The effect of a run. An effect that the hook's event does not have counts as a failure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HookEffect {
    /// All events. Nothing changes.
    Unchanged,
    /// All events. The call does not run, its result is withheld, its validation adds the reason as
    /// a message, the request is not sent and the turn fails, or the conversation is not
    /// summarized.
    Block(String),
    /// `tool.execute.before`: the new input.
    Input(Value),
    /// `tool.execute.after`: the new output for the model.
    Output(Vec<Part>),
    /// `tool.result.validate`: messages to the model.
    Messages(Vec<String>),
    /// `prompt.system.transform`: the system prompt to send.
    System(String),
    /// `prompt.messages.transform`: the messages to send.
    Conversation(Vec<Message>),
    /// `session.compacting`: a new prompt for the summary, and instructions to append.
    Compaction {
        /// Replaces the prompt for the summary.
        prompt: Option<String>,
        /// Text to append to the prompt.
        instructions: Option<String>,
    },
}

impl HookEffect {
    /// Returns whether hooks of `event` can have this effect.
    pub(super) fn belongs_to(&self, event: HookEvent) -> bool {
        match self {
            HookEffect::Unchanged | HookEffect::Block(_) => true,
            HookEffect::Input(_) => event == HookEvent::ToolExecuteBefore,
            HookEffect::Output(_) => event == HookEvent::ToolExecuteAfter,
            HookEffect::Messages(_) => event == HookEvent::ToolResultValidate,
            HookEffect::System(_) => event == HookEvent::PromptSystemTransform,
            HookEffect::Conversation(_) => event == HookEvent::PromptMessagesTransform,
            HookEffect::Compaction { .. } => event == HookEvent::SessionCompacting,
        }
    }
}

/// The reason why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookError(pub String);

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HookError {}

impl From<crate::error::Error> for HookError {
    fn from(error: crate::error::Error) -> HookError {
        HookError(error.to_string())
    }
}
