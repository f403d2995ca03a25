//! The lines of an export: the metadata of a session, then the events of its messages and tool
//! calls.

use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::BudgetLimits;
use crate::event::{Body, SessionChange};
use crate::id::{SessionId, TurnId};
use crate::options::{Mode, OptionValue};
use crate::session::SessionState;

/// The first line of an export: the metadata of the session.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename = "session", rename_all = "camelCase")]
pub(crate) struct SessionLine {
    id: SessionId,
    pub cwd: PathBuf,
    mode: OptionValue<Mode>,
    #[serde(flatten)]
    pub change: SessionChange,
    created_at_ms: u64,
}

/// The fields of an event that an import uses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventLine {
    pub turn_id: Option<TurnId>,
    pub body: Body,
}

/// A parsed line.
pub(crate) enum ExportLine {
    Session(Box<SessionLine>),
    Event(Box<EventLine>),
}

impl SessionLine {
    pub(crate) fn new(id: &SessionId, state: &SessionState, created_at_ms: u64) -> SessionLine {
        let directories = state.additional_directories();
        let change = SessionChange {
            additional_directories: (!directories.is_empty()).then(|| directories.to_vec()),
            budget: Some(state.budget.of_session()).filter(|budget| *budget != BudgetLimits::default()),
            agent_session: None,
            origin: None,
            ..state.settings.clone()
        };
        SessionLine { id: id.clone(), cwd: state.cwd.clone(), mode: state.mode.clone(), change, created_at_ms }
    }
}

impl ExportLine {
    /// Parses a line, also of an export of an older version, which has no events.
    pub(crate) fn parse(line: Value) -> serde_json::Result<ExportLine> {
        if line["type"] == "session" {
            return Ok(ExportLine::Session(serde_json::from_value(line)?));
        }
        let event = if line["body"].is_object() { line } else { older(line)? };
        Ok(ExportLine::Event(serde_json::from_value(event)?))
    }
}

pub(crate) fn is_exported(body: &Body) -> bool {
    matches!(body, Body::MessageCompleted { discarded: false, .. } | Body::ToolStarted { .. } | Body::ToolCompleted { .. })
}

/// Converts a line of an older version: the fields of an event under other names.
fn older(mut line: Value) -> serde_json::Result<Value> {
    let (name, id) = match line["type"].as_str() {
        Some("message") => ("message.completed", "messageId"),
        Some("tool_call") => ("tool.started", "toolCallId"),
        Some("tool_result") => ("tool.completed", "toolCallId"),
        _ => return Err(serde_json::Error::custom(format!("unknown type {}", line["type"]))),
    };
    if name == "tool.completed" {
        line["status"] = if line["ok"] == true { "completed".into() } else { "failed".into() };
        line["output"] = line["parts"].take();
    }
    line["type"] = name.into();
    line[id] = line["id"].take();
    Ok(serde_json::json!({ "turnId": line["turnId"].take(), "body": line }))
}
