//! Log lines about the work of sessions, at the level `debug`: turns, model requests, decisions and
//! calls. They have names, numbers and outcomes, and no content.

use tracing::{Level, debug, enabled};

use crate::event::{Actor, Body, Event, PermissionDecision, StepEnd, StepStart, ToolEnd, TurnFailure};
use crate::session::folds::state::SessionState;

/// Logs an event that this process wrote. `state` is the session state before the event.
pub(super) fn log(event: &Event, state: &SessionState) {
    if !enabled!(Level::DEBUG) {
        return;
    }
    let session = event.session_id.as_str();
    let turn = event.turn_id.as_ref().map(|turn| turn.as_str()).unwrap_or_default();
    let name = event.body.name();
    match &event.body {
        Body::TurnStarted { by, .. } => debug!(session, turn, by = by.as_ref().map(Actor::as_str), "{name}"),
        Body::TurnCompleted { stop_reason } => debug!(session, turn, ?stop_reason, "{name}"),
        Body::TurnFailed(TurnFailure { code, .. }) => debug!(session, turn, code, "{name}"),
        Body::TurnCancelled { cause } => debug!(session, turn, ?cause, "{name}"),
        Body::TurnInterrupted {} => debug!(session, turn, "{name}"),
        Body::StepStarted(StepStart { step, model, .. }) => debug!(session, turn, step, model, "{name}"),
        Body::StepCompleted(StepEnd { step, model, outcome, usage, retry_at_ms, .. }) => {
            let (input, output) = usage.map(|usage| (usage.input_tokens, usage.output_tokens)).unzip();
            debug!(session, turn, step, model, ?outcome, input, output, retry_at_ms, "{name}");
        }
        Body::RequestRepaired { parts } => debug!(session, turn, parts = parts.len(), "{name}"),
        Body::PermissionResolved(PermissionDecision { tool_call_id, outcome, by, .. }) => {
            debug!(session, turn, call = tool_call_id.as_str(), ?outcome, by = by.as_str(), "{name}");
        }
        Body::ToolCompleted(ToolEnd { tool_call_id, status, .. }) => {
            let open = state.open_tools.iter().find(|open| open.has_id(tool_call_id));
            let (tool, since_ms) = open.map(|open| (open.call.name.as_str(), open.running_ms)).unzip();
            let ms = since_ms.flatten().map(|since_ms| event.at_ms.saturating_sub(since_ms));
            debug!(session, turn, call = tool_call_id.as_str(), tool, ?status, ms, "{name}");
        }
        _ => {}
    }
}
