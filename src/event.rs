//! The one vocabulary of what happens: disk format, SSE payload, JSONL line. Additive only; `schema/event.json` guards it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{
    Location, Part, PermissionOption, PlanEntry, ProviderState, Role, StopReason, ToolContent, ToolKind, ToolStatus, Usage,
};
use crate::id::{MessageId, PermissionId, Seq, SessionId, ToolCallId, TurnId};

/// Something that happened in a session. Facts stay; a `message.delta` may vanish once its `message.completed` is old.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub session_id: SessionId,
    /// Gap-free per session when it is committed; starts at 1.
    pub seq: Seq,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
    pub body: Body,
}

/// Settings that a session keeps; a field that is absent did not change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `PROVIDER/NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `off`, `minimal`, `low`, `medium` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_directories: Option<Vec<PathBuf>>,
    /// Instead of nuncio's own prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Added to the system prompt, whichever that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt_append: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    Warning,
    Error,
}

/// How a message reaches a session that is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// After the running turn, in one of its own.
    #[default]
    Queue,
    /// Into the running turn, before its next request to the model.
    Steer,
}

/// How a permission question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionOutcome {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// Nobody answered in time, or nobody could.
    Denied,
    /// The turn was cancelled while it was open.
    Cancelled,
}

impl PermissionOutcome {
    pub fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }
}

/// The body of an event; `type` names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Body {
    #[serde(rename = "session.created")]
    SessionCreated {
        cwd: PathBuf,
        mode: String,
        #[serde(flatten)]
        change: SessionChange,
    },
    #[serde(rename = "session.updated")]
    SessionUpdated {
        #[serde(flatten)]
        change: SessionChange,
    },
    #[serde(rename = "session.closed")]
    SessionClosed {},
    #[serde(rename = "session.deleted")]
    SessionDeleted {},

    /// `by` is the client that prompted. `retries` is the earlier turn whose prompt this one runs
    /// again: the model sees what it saw when that turn started.
    #[serde(rename = "turn.started")]
    TurnStarted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retries: Option<TurnId>,
    },
    #[serde(rename = "turn.completed")]
    TurnCompleted { stop_reason: StopReason },
    /// `code` is a word of the table of errors.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        code: String,
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    #[serde(rename = "turn.cancelled")]
    TurnCancelled {},
    /// The process that ran it is gone; never resumed unasked.
    #[serde(rename = "turn.interrupted")]
    TurnInterrupted {},

    /// `text` belongs at byte `offset` of the message.
    #[serde(rename = "message.delta")]
    MessageDelta { message_id: MessageId, role: Role, offset: u64, text: String },
    /// The whole message. `discarded`: it is the beginning of an answer that broke off and was asked for again; models do not see it.
    #[serde(rename = "message.completed")]
    MessageCompleted {
        message_id: MessageId,
        role: Role,
        parts: Vec<Part>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        discarded: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_state: Option<ProviderState>,
    },
    /// A message waits for the running turn; its `message.completed` comes when it has a place. `by` is the client that sent it.
    #[serde(rename = "message.queued")]
    MessageQueued {
        message_id: MessageId,
        role: Role,
        parts: Vec<Part>,
        delivery: Delivery,
        auto_run: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },

    /// The model asked for it; nothing has happened yet (pending). `input` is what the model wrote.
    #[serde(rename = "tool.started")]
    ToolStarted {
        tool_call_id: ToolCallId,
        name: String,
        title: String,
        kind: ToolKind,
        input: Value,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<Location>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_state: Option<ProviderState>,
    },
    /// What changed; `content` replaces the content shown so far.
    #[serde(rename = "tool.updated")]
    ToolUpdated {
        tool_call_id: ToolCallId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<ToolStatus>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Vec<ToolContent>>,
    },
    /// `output` is what the model is told, `content` what people are shown, `details` the tool's typed result.
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        tool_call_id: ToolCallId,
        status: ToolStatus,
        output: Vec<Part>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<ToolContent>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<Location>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// `unknown`: its process is gone, and nobody can say how far it came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effect: Option<String>,
    },

    #[serde(rename = "permission.requested")]
    PermissionRequested {
        permission_id: PermissionId,
        tool_call_id: ToolCallId,
        /// What will be done, shown with the question: a diff, a command.
        content: Vec<ToolContent>,
        options: Vec<PermissionOption>,
        /// Milliseconds since the Unix epoch; then it is denied.
        deadline_ms: u64,
    },
    /// A decision on a tool call: by somebody who was asked (`permission_id`), or by a rule or the mode (none).
    #[serde(rename = "permission.resolved")]
    PermissionResolved {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permission_id: Option<PermissionId>,
        tool_call_id: ToolCallId,
        outcome: PermissionOutcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Who decided: a principal, `rule`, `mode`, `deadline`, `disconnect`.
        by: String,
        /// The rule that decided, or the one that `always` made for this session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<Value>,
    },

    #[serde(rename = "plan.updated")]
    PlanUpdated { entries: Vec<PlanEntry> },
    /// After each model request. `context_tokens` is what the conversation takes of the model's `context_window` now.
    #[serde(rename = "usage.updated")]
    UsageUpdated {
        model: String,
        #[serde(flatten)]
        usage: Usage,
        context_tokens: u64,
        context_window: u64,
    },
    #[serde(rename = "mode.changed")]
    ModeChanged { mode: String },
    #[serde(rename = "notice")]
    Notice {
        severity: Severity,
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// What a newer nuncio wrote: kept, and not understood here.
    #[serde(other)]
    Unknown,
}

impl Body {
    /// Its `type`.
    pub fn name(&self) -> &'static str {
        match self {
            Body::SessionCreated { .. } => "session.created",
            Body::SessionUpdated { .. } => "session.updated",
            Body::SessionClosed {} => "session.closed",
            Body::SessionDeleted {} => "session.deleted",
            Body::TurnStarted { .. } => "turn.started",
            Body::TurnCompleted { .. } => "turn.completed",
            Body::TurnFailed { .. } => "turn.failed",
            Body::TurnCancelled {} => "turn.cancelled",
            Body::TurnInterrupted {} => "turn.interrupted",
            Body::MessageDelta { .. } => "message.delta",
            Body::MessageCompleted { .. } => "message.completed",
            Body::MessageQueued { .. } => "message.queued",
            Body::ToolStarted { .. } => "tool.started",
            Body::ToolUpdated { .. } => "tool.updated",
            Body::ToolCompleted { .. } => "tool.completed",
            Body::PermissionRequested { .. } => "permission.requested",
            Body::PermissionResolved { .. } => "permission.resolved",
            Body::PlanUpdated { .. } => "plan.updated",
            Body::UsageUpdated { .. } => "usage.updated",
            Body::ModeChanged { .. } => "mode.changed",
            Body::Notice { .. } => "notice",
            Body::Unknown => "unknown",
        }
    }

    /// A piece of what a later event holds whole: text of a message, output of a running call. It may vanish once that is old.
    pub fn is_delta(&self) -> bool {
        matches!(self, Body::MessageDelta { .. } | Body::ToolUpdated { status: None, .. })
    }

    /// Facts that precede an effect or end a turn: they are on the disk before anything follows from them.
    pub fn is_durable(&self) -> bool {
        match self {
            Body::SessionCreated { .. }
            | Body::SessionDeleted {}
            | Body::MessageQueued { .. }
            | Body::TurnStarted { .. }
            | Body::TurnCompleted { .. }
            | Body::TurnFailed { .. }
            | Body::TurnCancelled {}
            | Body::TurnInterrupted {}
            | Body::PermissionResolved { permission_id: Some(_), .. } => true,
            Body::SessionUpdated { .. }
            | Body::SessionClosed {}
            | Body::MessageDelta { .. }
            | Body::MessageCompleted { .. }
            | Body::ToolStarted { .. }
            | Body::ToolUpdated { .. }
            | Body::ToolCompleted { .. }
            | Body::PermissionRequested { .. }
            | Body::PermissionResolved { permission_id: None, .. }
            | Body::PlanUpdated { .. }
            | Body::UsageUpdated { .. }
            | Body::ModeChanged { .. }
            | Body::Notice { .. }
            | Body::Unknown => false,
        }
    }

    pub fn ends_turn(&self) -> bool {
        matches!(self, Body::TurnCompleted { .. } | Body::TurnFailed { .. } | Body::TurnCancelled {} | Body::TurnInterrupted {})
    }

    pub fn notice(severity: Severity, title: impl Into<String>, description: impl Into<String>) -> Body {
        Body::Notice { severity, title: title.into(), description: Some(description.into()) }
    }
}
