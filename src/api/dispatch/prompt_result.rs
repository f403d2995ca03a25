//! The result of a prompt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_with::skip_serializing_none;

use crate::content::{Cost, StopReason};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, CancelCause, Event, TurnFailure};
use crate::protocol::acp;

/// The end of the turn of a prompt. Over REST it has the stop reason, and in `_meta.nuncio` the
/// cause `unanswered` if a permission request got no answer in time.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptResult {
    pub stop_reason: StopReason,
    /// The tokens of the turn and of its subagents.
    #[schemars(skip)]
    pub usage: Option<acp::Usage>,
    /// The cost of the turn and of its subagents in US dollars.
    #[schemars(skip)]
    pub cost: Option<Cost>,
    /// Why a turn that no client cancelled was cancelled.
    #[schemars(skip)]
    pub cause: Option<CancelCause>,
}

impl PromptResult {
    pub(in crate::api) fn new(stop_reason: StopReason, cause: Option<CancelCause>) -> PromptResult {
        PromptResult { stop_reason, usage: None, cost: None, cause }
    }
}

/// Returns the result of the prompt of a turn if this event ends it.
pub(crate) fn turn_end(event: &Event) -> Option<Result<PromptResult>> {
    match &event.body {
        Body::TurnCompleted { stop_reason } => Some(Ok(PromptResult::new(*stop_reason, None))),
        Body::TurnCancelled { cause } => Some(Ok(PromptResult::new(StopReason::Cancelled, *cause))),
        Body::TurnInterrupted {} => {
            let interrupted = Error::new(Kind::Cancelled, "the process exited before the turn was complete");
            Some(Err(interrupted.details(json!({ "turnId": event.turn_id, "status": "interrupted" }))))
        }
        Body::TurnFailed(TurnFailure { code, message, hint, info }) => {
            let mut error = Error::new(Kind::from_code(code).unwrap_or(Kind::Internal), message.as_str());
            error.hint = hint.clone();
            error.details = info.clone();
            Some(Err(error))
        }
        _ => None,
    }
}
