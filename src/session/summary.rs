//! The summary of a session's activity. The session's row in the store contains it, so that every
//! process can list it without reading events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::state::SessionState;
use super::turns::{TurnFailure, TurnRecord, TurnStatus};
use crate::content::{Cost, StopReason, ToolKind, ToolStatus};
use crate::event::{Body, ChildEnd, Event};
use crate::id::{PermissionId, ToolCallId, TurnId};
use crate::limits;
use crate::store::{ActivityColumns, SessionRow};

/// The activity of a session after an event.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SessionSummary {
    pub last_turn: Option<LastTurn>,
    /// Tool calls without a result, oldest first.
    pub pending_tool_calls: Vec<PendingCall>,
    pub open_permissions: Vec<PermissionId>,
    /// The origin of a session that no person created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The hosted agent that works in the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The cost of the model requests of the session and of its ended subagents, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// The newest turn of a session, which may be running.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastTurn {
    pub turn_id: TurnId,
    pub status: TurnStatus,
    /// Present if the turn completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Present if the turn failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnFailure>,
}

/// A tool call without a result. `status` is `pending` or `in_progress`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingCall {
    pub tool_call_id: ToolCallId,
    pub title: String,
    pub kind: ToolKind,
    pub status: ToolStatus,
}

impl SessionSummary {
    /// Creates the summary of a state.
    pub(crate) fn of(state: &SessionState) -> SessionSummary {
        let calls = state.open_tools.iter().map(|open| PendingCall {
            tool_call_id: open.id.clone(),
            title: open.label.title.clone(),
            kind: open.kind,
            status: open.running_ms.map_or(ToolStatus::Pending, |_| ToolStatus::InProgress),
        });
        SessionSummary {
            last_turn: state.turns.last().map(LastTurn::of),
            pending_tool_calls: calls.collect(),
            open_permissions: state.open_permissions.iter().map(|open| open.id.clone()).collect(),
            origin: state.origin.clone(),
            agent: state.agent.clone(),
            cost: state.turns.total().1,
        }
    }

    /// Returns the summary in a session's row. Empty if only versions without summaries have
    /// written to the session.
    pub(crate) fn stored(row: &SessionRow) -> SessionSummary {
        let summary = row.activity.summary.as_deref().and_then(|summary| serde_json::from_str(summary).ok());
        summary.unwrap_or_default()
    }

    /// Returns the columns for the session's row after `events`, which follow `state`. `None` if
    /// the events change nothing and `always` is false.
    pub(super) fn columns_after(state: &SessionState, events: &[Event], always: bool) -> Option<ActivityColumns> {
        let mut summary = always.then(|| SessionSummary::of(state));
        for event in events {
            apply(event, || summary.get_or_insert_with(|| SessionSummary::of(state)));
        }
        summary.map(SessionSummary::into_columns)
    }

    fn into_columns(mut self) -> ActivityColumns {
        self.pending_tool_calls.truncate(limits::SUMMARY_CALLS_MAX);
        let waiting = self.open_permissions.len();
        self.open_permissions.truncate(limits::SUMMARY_CALLS_MAX);
        ActivityColumns { turn: self.turn().cloned(), waiting, summary: serde_json::to_string(&self).ok() }
    }

    /// Returns the ID of the running turn, if any.
    pub(crate) fn turn(&self) -> Option<&TurnId> {
        self.last_turn.as_ref().filter(|last| last.status == TurnStatus::Running).map(|last| &last.turn_id)
    }

    /// Marks the open turn as interrupted and removes the open calls and permission requests, as
    /// the next owner will record it.
    pub(crate) fn interrupt(&mut self) {
        self.end(TurnStatus::Interrupted, None, None);
        self.pending_tool_calls.clear();
        self.open_permissions.clear();
    }

    fn end(&mut self, status: TurnStatus, stop_reason: Option<StopReason>, error: Option<TurnFailure>) {
        if let Some(last) = self.last_turn.as_mut().filter(|last| last.status == TurnStatus::Running) {
            (last.status, last.stop_reason, last.error) = (status, stop_reason, error);
        }
    }
}

impl LastTurn {
    fn of(turn: &TurnRecord) -> LastTurn {
        LastTurn {
            turn_id: turn.id.clone(),
            status: turn.status,
            stop_reason: turn.stop_reason,
            error: turn.error.as_deref().cloned(),
        }
    }
}

/// Adds an event to the summary. `summary` is called only for an event that changes the summary,
/// because the events of a streamed message do not, and creating the summary has a cost.
fn apply<'a>(event: &Event, summary: impl FnOnce() -> &'a mut SessionSummary) {
    match &event.body {
        Body::TurnStarted { .. } => {
            let started = |turn_id| LastTurn { turn_id, status: TurnStatus::Running, stop_reason: None, error: None };
            summary().last_turn = event.turn_id.clone().map(started);
        }
        Body::TurnCompleted { stop_reason } => summary().end(TurnStatus::Completed, Some(*stop_reason), None),
        Body::TurnFailed { code, message, hint, info } => {
            let (code, message) = (code.clone(), message.clone());
            let error = TurnFailure { code, message, hint: hint.clone(), info: info.clone() };
            summary().end(TurnStatus::Failed, None, Some(error));
        }
        Body::TurnCancelled {} => summary().end(TurnStatus::Cancelled, None, None),
        Body::TurnInterrupted {} => summary().end(TurnStatus::Interrupted, None, None),
        Body::ToolStarted { tool_call_id, title, kind, .. } => summary().pending_tool_calls.push(PendingCall {
            tool_call_id: tool_call_id.clone(),
            title: title.clone(),
            kind: *kind,
            status: ToolStatus::Pending,
        }),
        Body::ToolUpdated { tool_call_id, status, change, .. } => {
            let calls = &mut summary().pending_tool_calls;
            for call in calls.iter_mut().filter(|call| call.tool_call_id == *tool_call_id) {
                call.status = status.unwrap_or(call.status);
                call.title = change.title.clone().unwrap_or_else(|| std::mem::take(&mut call.title));
                call.kind = change.kind.unwrap_or(call.kind);
            }
        }
        Body::HookCompleted { tool_call_id: Some(id), changed: Some(changed), .. } => {
            let calls = &mut summary().pending_tool_calls;
            calls.iter_mut().filter(|call| call.tool_call_id == *id).for_each(|call| call.title.clone_from(&changed.title));
        }
        Body::ToolCompleted { tool_call_id, .. } => {
            summary().pending_tool_calls.retain(|call| call.tool_call_id != *tool_call_id);
        }
        Body::PermissionRequested { permission_id, .. } => summary().open_permissions.push(permission_id.clone()),
        Body::PermissionResolved { permission_id: Some(id), .. } => summary().open_permissions.retain(|open| open != id),
        Body::UsageUpdated { cost: cost @ Some(_), .. }
        | Body::ChildCompleted { end: ChildEnd { cost: cost @ Some(_), .. }, .. } => {
            let total = &mut summary().cost;
            *total = Cost::sum(*total, *cost);
        }
        Body::SessionCreated { change, .. } | Body::SessionUpdated { change }
            if change.agent.is_some() || change.origin.is_some() =>
        {
            let summary = summary();
            summary.origin = change.origin.clone().or(summary.origin.take());
            summary.agent = change.agent.clone().or(summary.agent.take());
        }
        Body::SessionCreated { .. }
        | Body::SessionUpdated { .. }
        | Body::SessionClosed {}
        | Body::SessionDeleted {}
        | Body::BudgetRaised { .. }
        | Body::StepStarted { .. }
        | Body::StepCompleted { .. }
        | Body::MessageDelta { .. }
        | Body::MessageCompleted { .. }
        | Body::MessageEdited { .. }
        | Body::MessageRemoved { .. }
        | Body::MessageQueued { .. }
        | Body::PermissionResolved { permission_id: None, .. }
        | Body::VerifyStarted { .. }
        | Body::VerifyCompleted { .. }
        | Body::PlanUpdated { .. }
        | Body::ContextPruned { .. }
        | Body::CompactionStarted { .. }
        | Body::CompactionCompleted { .. }
        | Body::ChildStarted { .. }
        | Body::ChildCompleted { .. }
        | Body::UsageUpdated { cost: None, .. }
        | Body::HookCompleted { .. }
        | Body::ModeChanged { .. }
        | Body::MessagesReplaced { .. }
        | Body::Notice { .. }
        | Body::Unknown(_) => {}
    }
}
