//! The result of a run as JSON: of one agent, or of one of several agents that are compared.

use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::api::SessionResult;
use crate::cli::errors::{INTERRUPTED, exit_code};
use crate::content::StopReason;
use crate::error::{Error, Result};

/// The result of one agent.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
pub(in crate::cli) struct RunResult {
    /// Name of the workspace of a compared agent; missing if it was deleted, because nothing was
    /// changed in it.
    pub workspace: Option<String>,
    /// `end_turn` or another stop reason; missing if a turn failed.
    #[serde(rename = "stopReason")]
    pub stop_reason: Option<StopReason>,
    pub error: Option<String>,
    /// The last message as JSON, if it matches the schema of `--output-schema`.
    pub output: Option<Value>,
    #[serde(flatten)]
    pub result: SessionResult,
    /// The exit code of `nuncio run` with this agent alone.
    #[serde(skip)]
    pub code: u8,
}

impl RunResult {
    /// Creates the result of a run with one agent that ended with `code`.
    pub(super) fn new(result: SessionResult, code: &Result<u8>) -> RunResult {
        let stop_reason = match code {
            Ok(INTERRUPTED) => Some(StopReason::Cancelled),
            Ok(_) => result.activity.stop_reason(),
            Err(_) => None,
        };
        let error = code.as_ref().err().map(Error::to_string);
        let code = code.as_ref().map_or_else(exit_code, |code| *code);
        RunResult { workspace: None, stop_reason, error, output: None, result, code }
    }
}
