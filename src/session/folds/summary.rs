//! The summary of a session's activity. The session's row in the store contains it, so that every
//! process can list it without reading events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::state::SessionState;
use super::turns::{LastTurn, TurnStatus};
use crate::content::{Cost, ToolKind, ToolStatus};
use crate::event::{Body, Event, ignored};
use crate::id::{PermissionId, ToolCallId, TurnId};
use crate::store::{ActivityColumns, SessionRow};

/// Maximum number of tool calls, and of permission requests, in the summary of a session's row.
const SUMMARY_CALLS_MAX: usize = 64;

/// The activity of a session after an event.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SessionSummary {
    #[serde(flatten)]
    pub work: SessionWork,
    pub open_permissions: Vec<PermissionId>,
}

/// The work of a session.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SessionWork {
    /// The newest turn. Missing if the session has none, or if an older version of nuncio wrote the
    /// session and it has not changed since.
    pub last_turn: Option<LastTurn>,
    /// Tool calls without a result, oldest first.
    pub pending_tool_calls: Vec<PendingCall>,
    /// `comparison` of agents, `delegation` by another agent or `background`, by `nuncio run --bg`;
    /// missing if a person created the session in another way.
    pub origin: Option<String>,
    /// The hosted agent that works in the session; missing for nuncio's own agent.
    pub agent: Option<String>,
    /// Number of turns; missing if the session has none, or as `lastTurn`.
    pub turns: Option<u64>,
    /// `PROVIDER/NAME` of the model of the newest request; missing before the first.
    pub model_used: Option<String>,
    /// Total cost of the session's model requests and of its subagents that have ended, in US
    /// dollars; missing if no price is known.
    pub cost: Option<Cost>,
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
    pub(crate) fn from_state(state: &SessionState) -> SessionSummary {
        let calls = state.open_tools.iter().map(|open| PendingCall {
            tool_call_id: open.call.tool_call_id.clone(),
            title: open.call.title.clone(),
            kind: open.call.kind,
            status: open.running_ms.map_or(ToolStatus::Pending, |_| ToolStatus::InProgress),
        });
        let work = SessionWork {
            last_turn: state.turns.last().map(|last| last.turn.clone()),
            pending_tool_calls: calls.collect(),
            origin: state.settings.origin.clone(),
            agent: state.settings.agent.clone(),
            turns: Some(state.turns.started()).filter(|turns| *turns > 0),
            model_used: state.turns.last().and_then(|last| last.model.as_deref().map(String::from)),
            cost: state.turns.total().1,
        };
        let open_permissions = state.open_permissions.iter().map(|open| open.request.permission_id.clone()).collect();
        SessionSummary { work, open_permissions }
    }

    /// Returns the summary in a session's row. Empty if only versions without summaries have
    /// written to the session.
    pub(crate) fn stored(row: &SessionRow) -> SessionSummary {
        let summary = row.activity.summary.as_deref().and_then(|summary| serde_json::from_str(summary).ok());
        summary.unwrap_or_default()
    }

    /// Returns the columns for the session's row after `events`, which follow `state`. `None` if
    /// the events change nothing and `always` is false.
    pub(in crate::session) fn columns_after(state: &SessionState, events: &[Event], always: bool) -> Option<ActivityColumns> {
        if !always && events.iter().all(|event| is_unrelated(&event.body)) {
            return None;
        }
        let mut state = state.activity();
        for event in events {
            state.apply_to_fields(event);
            state.turns.apply(event);
        }
        Some(SessionSummary::from_state(&state).into_columns())
    }

    fn into_columns(mut self) -> ActivityColumns {
        self.work.pending_tool_calls.truncate(SUMMARY_CALLS_MAX);
        let waiting = self.open_permissions.len();
        self.open_permissions.truncate(SUMMARY_CALLS_MAX);
        ActivityColumns { turn: self.turn().cloned(), waiting, summary: serde_json::to_string(&self).ok() }
    }

    /// Returns the ID of the running turn, if any.
    pub(crate) fn turn(&self) -> Option<&TurnId> {
        self.work.last_turn.as_ref().filter(|last| last.status == TurnStatus::Running).map(|last| &last.turn_id)
    }

    /// Marks the open turn as interrupted and removes the open calls and permission requests, as
    /// the next owner will record it.
    pub(crate) fn interrupt(&mut self) {
        if let Some(last) = self.work.last_turn.as_mut().filter(|last| last.status == TurnStatus::Running) {
            last.status = TurnStatus::Interrupted;
        }
        self.work.pending_tool_calls.clear();
        self.open_permissions.clear();
    }
}

/// Returns whether an event never changes a summary.
fn is_unrelated(body: &Body) -> bool {
    matches!(
        body,
        ignored!(Step | Message | Replacement | Queue | Verify | Plan | Pruning)
            | ignored!(Compaction | Agent | Budget | Mode | Notice)
    )
}
