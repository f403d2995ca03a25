//! The status that any program reports with `POST /hook`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::terminal_sessions::{HOOK_SESSION_BYTES_MAX, TerminalHook};
use crate::content::AgentStatus;
use crate::error::{Error, Result};

/// Maximum length of a reported title, in bytes.
const TITLE_BYTES_MAX: usize = 400;

/// The body of `POST /hook`: the status of a program, or a hook of Claude Code.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum TerminalReport {
    Status(StatusReport),
    Hook(TerminalHook),
}

/// The status that a program reports about itself. A header names its directory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusReport {
    #[serde(rename = "type")]
    _type: ReportType,
    pub status: ReportedStatus,
    /// The work of the program, for people.
    pub title: Option<String>,
    /// Tells several programs in one directory apart.
    pub session_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ReportType {
    Status,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReportedStatus {
    Busy,
    Idle,
    /// The program waits for its user.
    Waiting,
    Ended,
}

impl ReportedStatus {
    pub(crate) fn status(self) -> AgentStatus {
        match self {
            ReportedStatus::Busy => AgentStatus::Busy,
            ReportedStatus::Idle => AgentStatus::Idle,
            ReportedStatus::Waiting => AgentStatus::Waiting,
            ReportedStatus::Ended => AgentStatus::None,
        }
    }
}

impl TerminalReport {
    /// Reads a report: a status if the body has the field `type`, else a hook.
    pub(crate) fn read(body: Value) -> Result<TerminalReport> {
        let wrong = |what: &str, error: serde_json::Error| Error::invalid_params(format!("the body is not a {what}: {error}"));
        let report = if body.get("type").is_some() {
            TerminalReport::Status(serde_json::from_value(body).map_err(|error| wrong("status", error))?)
        } else {
            TerminalReport::Hook(serde_json::from_value(body).map_err(|error| wrong("hook", error))?)
        };
        let (id, title) = match &report {
            TerminalReport::Status(report) => (&report.session_id, &report.title),
            TerminalReport::Hook(hook) => (&hook.session_id, &None),
        };
        for (name, text, bytes) in [("session_id", id, HOOK_SESSION_BYTES_MAX), ("title", title, TITLE_BYTES_MAX)] {
            if text.as_ref().is_some_and(|text| text.len() > bytes) {
                return Err(Error::invalid_params(format!("{name} is longer than {bytes} bytes")));
            }
        }
        Ok(report)
    }
}
