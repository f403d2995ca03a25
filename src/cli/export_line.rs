//! The lines of an export: the metadata of a session, then its messages and tool calls.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{Location, Part, ProviderState, Role, ToolCategory, ToolContent, ToolKind, ToolLabel, ToolStatus};
use crate::event::{Body, Event, MessageExtra, SessionChange};
use crate::id::{MessageId, SessionId, ToolCallId, TurnId};
use crate::options::{Mode, OptionValue};
use crate::session::SessionState;

/// A line of an export, in JSON.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum ExportLine {
    Session {
        id: SessionId,
        cwd: PathBuf,
        mode: OptionValue<Mode>,
        #[serde(flatten)]
        change: SessionChange,
        created_at_ms: u64,
    },
    Message {
        id: MessageId,
        turn_id: Option<TurnId>,
        role: Role,
        parts: Vec<Part>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_state: Option<ProviderState>,
        #[serde(flatten)]
        extra: MessageExtra,
        created_at_ms: u64,
    },
    ToolCall {
        id: ToolCallId,
        turn_id: Option<TurnId>,
        name: String,
        title: String,
        kind: ToolKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<ToolCategory>,
        input: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_text: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<Location>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_state: Option<ProviderState>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        automatic: bool,
        created_at_ms: u64,
    },
    ToolResult {
        id: ToolCallId,
        turn_id: Option<TurnId>,
        #[serde(flatten)]
        tool: Option<ToolLabel>,
        ok: bool,
        parts: Vec<Part>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<ToolContent>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        created_at_ms: u64,
    },
}

impl ExportLine {
    /// Creates the line with the metadata of a session.
    pub(crate) fn session(id: &SessionId, state: &SessionState, created_at_ms: u64) -> ExportLine {
        let change = SessionChange {
            title: state.title.clone(),
            model: state.model.clone(),
            thinking: state.thinking.clone(),
            system_prompt: state.system_prompt.clone(),
            system_prompt_append: state.system_prompt_append.clone(),
            additional_directories: Some(state.additional_directories.clone()).filter(|list| !list.is_empty()),
            tools: state.tools.clone(),
            ..SessionChange::default()
        };
        ExportLine::Session { id: id.clone(), cwd: state.cwd.clone(), mode: state.mode.clone(), change, created_at_ms }
    }

    /// Converts an event to a line. Returns `None` for events that exports do not contain.
    pub(crate) fn of(event: &Event) -> Option<ExportLine> {
        let (turn_id, created_at_ms) = (event.turn_id.clone(), event.at_ms);
        match event.body.clone() {
            Body::MessageCompleted { message_id: id, role, parts, discarded: false, provider_state, extra } => {
                Some(ExportLine::Message { id, turn_id, role, parts, provider_state, extra, created_at_ms })
            }
            Body::ToolStarted {
                tool_call_id: id,
                name,
                title,
                kind,
                category,
                input,
                input_text,
                locations,
                provider_state,
                automatic,
            } => Some(ExportLine::ToolCall {
                id,
                turn_id,
                name,
                title,
                kind,
                category,
                input,
                input_text,
                locations,
                provider_state,
                automatic,
                created_at_ms,
            }),
            Body::ToolCompleted { tool_call_id: id, tool, status, output: parts, content, details, .. } => {
                let ok = status == ToolStatus::Completed;
                Some(ExportLine::ToolResult { id, turn_id, tool, ok, parts, content, details, created_at_ms })
            }
            _ => None,
        }
    }

    /// Converts a line to an event body with its turn. Returns `None` for the metadata.
    pub(crate) fn into_event(self) -> Option<(Option<TurnId>, Body)> {
        match self {
            ExportLine::Session { .. } => None,
            ExportLine::Message { id, turn_id, role, parts, provider_state, extra, .. } => {
                Some((turn_id, Body::MessageCompleted { message_id: id, role, parts, discarded: false, provider_state, extra }))
            }
            ExportLine::ToolCall {
                id,
                turn_id,
                name,
                title,
                kind,
                category,
                input,
                input_text,
                locations,
                provider_state,
                automatic,
                ..
            } => Some((
                turn_id,
                Body::ToolStarted {
                    tool_call_id: id,
                    name,
                    title,
                    kind,
                    category,
                    input,
                    input_text,
                    locations,
                    provider_state,
                    automatic,
                },
            )),
            ExportLine::ToolResult { id, turn_id, tool, ok, parts, content, details, .. } => {
                let status = if ok { ToolStatus::Completed } else { ToolStatus::Failed };
                let body = Body::ToolCompleted {
                    tool_call_id: id,
                    tool,
                    status,
                    output: parts,
                    content,
                    locations: Vec::new(),
                    details,
                    effect: None,
                };
                Some((turn_id, body))
            }
        }
    }
}
