//! The event types. Their JSON encoding is used in the database, in SSE payloads and in JSON Lines
//! output. Changes must be additive: a test compares the types with `schema/event.json`.

mod actor;
mod agent;
mod body;
mod change;
mod child;
mod compaction;
mod hook;
mod json;
mod message;
mod notice;
mod permission;
mod step;
mod table;
mod timestamp;
mod tool;
mod turn;
mod unknown;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::Role;
use crate::id::{Seq, SessionId, TurnId};

pub use actor::Actor;
pub use agent::AgentEndReason;
pub use body::Body;
pub use change::SessionChange;
pub(crate) use change::{BACKGROUND, DELEGATION};
pub use child::{ChildEnd, ChildLabel, ChildStatus, ParentCall, SessionParent};
pub use compaction::{CompactionOutcome, CompactionReason, PrunedOutput};
pub use hook::{ChangedCall, HookEvent, HookOutcome};
pub use message::{Delivery, MessageExtra, QueuedMessage, ReplacedMessage};
pub(crate) use notice::{HOOK_FAILED, REPOSITORY};
pub use notice::{Notice, Severity};
pub use permission::{CancelCause, PermissionDecision, PermissionOutcome, PermissionRequest};
pub use step::{StepEnd, StepStart, UsageUpdate};
pub use table::TYPES;
pub(crate) use table::{MESSAGE_COMPLETED, MESSAGE_QUEUED, MESSAGES_REPLACED, ignored, subject};
pub(crate) use timestamp::{date, timestamp};
pub use tool::{ToolChange, ToolEnd, ToolStart, ToolUpdate};
pub use turn::TurnFailure;
pub use unknown::UnknownEvent;

/// An event of a session. Facts are kept; a `message.delta` may be removed after its
/// `message.completed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Event {
    /// The session.
    pub session_id: SessionId,
    /// Position in the session: starts at 1, without gaps when it is committed.
    pub seq: Seq,
    /// The turn; missing outside of turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The content of the event.
    pub body: Body,
    /// Proves what the session may do after the event, if the event changes that. Clients do not
    /// receive it.
    #[serde(skip)]
    pub signature: Option<Box<str>>,
}

impl Event {
    /// Returns the next piece of the agent's text, if the event has one.
    pub fn text(&self) -> Option<&str> {
        match &self.body {
            Body::MessageDelta { role: Role::Assistant, text, .. } => Some(text),
            _ => None,
        }
    }
}

impl Body {
    /// Returns the settings of the session that the event changes.
    pub(crate) fn session_change(&self) -> Option<&SessionChange> {
        match self {
            Body::SessionCreated { change, .. } | Body::SessionUpdated { change } | Body::SessionGranted { change, .. } => {
                Some(change)
            }
            _ => None,
        }
    }

    /// Returns whether the event only has context for the model, which clients do not show.
    pub(crate) fn is_context(&self) -> bool {
        matches!(self, Body::Notice(Notice { code: Some(code), .. }) if code == REPOSITORY)
    }

    /// Returns the note of a notice with the text that it quotes, for models that receive neither
    /// from the log.
    pub(crate) fn note_text(&self) -> Option<String> {
        let Body::Notice(Notice { note: Some(note), quoted, .. }) = self else { return None };
        Some(quoted.as_ref().map_or_else(|| format!("[{note}]"), |quoted| format!("[{note}]\n{quoted}")))
    }

    /// Creates a notice with a description.
    pub(crate) fn notice(severity: Severity, title: impl Into<String>, description: impl Into<String>) -> Body {
        Body::Notice(Notice { description: Some(description.into()), ..Notice::new(severity, title) })
    }

    /// Creates a notice about a subject: see [`Notice::code`].
    pub(crate) fn notice_about(code: &str, severity: Severity, title: impl Into<String>, description: String) -> Body {
        let (code, description) = (Some(code.to_owned()), Some(description));
        Body::Notice(Notice { description, code, ..Notice::new(severity, title) })
    }
}
