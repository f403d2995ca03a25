//! Summaries of the turns of a session. Each is small, because a session may have thousands of
//! turns.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::content::{Cost, StepOutcome, StopReason, Usage};
use crate::event::{
    Actor, Body, CancelCause, ChildEnd, Event, PermissionDecision, PermissionRequest, StepEnd, StepStart, TurnFailure, UsageUpdate,
    ignored,
};
use crate::id::{PermissionId, Seq, SessionId, TurnId};

/// Progress of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TurnStatus {
    Running,
    Completed,
    Failed,
    Cancelled,
    /// The process that ran the turn died.
    Interrupted,
}

/// The newest turn of a session, which may be running.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastTurn {
    pub turn_id: TurnId,
    pub status: TurnStatus,
    /// Present if the turn completed.
    pub stop_reason: Option<StopReason>,
    /// Present if the turn failed.
    pub error: Option<Box<TurnFailure>>,
    /// Why the turn was cancelled, unless a client cancelled it.
    pub cause: Option<CancelCause>,
}

/// The summary of a turn. Times are milliseconds since the Unix epoch.
#[derive(Clone, Debug)]
pub(crate) struct TurnRecord {
    /// The turn, as of its newest event.
    pub turn: LastTurn,
    /// The client that sent the prompt.
    pub by: Option<Actor>,
    /// `PROVIDER/NAME` of the model of the newest request; `None` before the first.
    pub model: Option<Arc<str>>,
    /// Total usage of the turn's model requests; `None` before the first.
    pub usage: Option<Usage>,
    /// Total cost of the turn's model requests; `None` if no price is known.
    pub cost: Option<Cost>,
    /// Number of the turn's model requests, without those that were sent again.
    pub requests: u64,
    /// The log has the steps of the turn. Hosted agents report only the usage of their requests.
    has_steps: bool,
    /// Amounts of the ended subagents that the turn started.
    pub children: ChildAmounts,
    pub started_ms: u64,
    pub ended_ms: u64,
    /// How long the turn waited for answers to permission requests.
    waited_ms: u64,
    pub first_seq: Seq,
    /// 0 while the turn runs, like `ended_ms`.
    pub last_seq: Seq,
}

/// Amounts that subagents have used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChildAmounts {
    pub usage: Option<Usage>,
    pub cost: Option<Cost>,
    pub requests: u64,
}

impl TurnRecord {
    /// Returns usage and cost of the turn and of its subagents that have ended; `None` without
    /// requests, or if no price is known.
    pub(crate) fn total(&self) -> (Option<Usage>, Option<Cost>) {
        (sum(self.usage, self.children.usage), Cost::sum(self.cost, self.children.cost))
    }
}

fn sum(one: Option<Usage>, other: Option<Usage>) -> Option<Usage> {
    let mut total = one.or(other)?;
    if let (Some(_), Some(other)) = (one, other) {
        total += other;
    }
    Some(total)
}

/// All turns, oldest first, and their totals.
#[derive(Clone, Debug, Default)]
pub struct TurnRecords {
    turns: Vec<TurnRecord>,
    /// The turns of the subagents that have not ended.
    open_children: Vec<(SessionId, TurnId)>,
    /// The open permission requests of the newest turn, and when the first of them was made.
    asks: (Vec<PermissionId>, u64),
    usage: Option<Usage>,
    cost: Option<Cost>,
    /// Number of turns that have started.
    started: u64,
}

impl TurnRecords {
    /// Adds an event. Events must be added in the order of the log.
    pub(crate) fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted { by, .. } => self.start(by.clone(), event),
            Body::TurnCompleted { stop_reason } => {
                self.end(TurnStatus::Completed, event);
                if let Some(last) = self.turns.last_mut() {
                    last.turn.stop_reason = Some(*stop_reason);
                }
            }
            Body::TurnFailed(failure) => {
                self.end(TurnStatus::Failed, event);
                if let Some(last) = self.turns.last_mut() {
                    last.turn.error = Some(Box::new(failure.clone()));
                }
            }
            Body::StepStarted(StepStart { model, .. }) => {
                self.set_model(model, event);
                if let Some(turn) = self.running(event) {
                    turn.requests += 1;
                    turn.has_steps = true;
                }
            }
            Body::StepCompleted(StepEnd { outcome: StepOutcome::Retried, .. }) => {
                if let Some(turn) = self.running(event) {
                    turn.requests = turn.requests.saturating_sub(1);
                }
            }
            Body::UsageUpdated(UsageUpdate { model, usage, cost, aside, .. }) => {
                if !aside {
                    self.set_model(model, event);
                }
                self.usage = sum(self.usage, Some(*usage));
                self.cost = Cost::sum(self.cost, *cost);
                if let Some(turn) = self.running(event) {
                    turn.usage = sum(turn.usage, Some(*usage));
                    turn.cost = Cost::sum(turn.cost, *cost);
                    turn.requests += u64::from(!aside && !turn.has_steps && *usage != Usage::default());
                }
            }
            Body::PermissionRequested(PermissionRequest { permission_id, .. }) if self.running(event).is_some() => {
                let (asks, since_ms) = &mut self.asks;
                *since_ms = if asks.is_empty() { event.at_ms } else { *since_ms };
                asks.push(permission_id.clone());
            }
            Body::PermissionResolved(PermissionDecision { permission_id: Some(id), .. }) => {
                self.asks.0.retain(|open| open != id);
                self.end_wait(event);
            }
            Body::ChildStarted { child, .. } => {
                self.open_children.extend(event.turn_id.clone().map(|turn| (child.child_session_id.clone(), turn)));
            }
            Body::ChildCompleted { child, end } => self.child_ended(&child.child_session_id, end),
            Body::TurnCancelled { cause } => {
                self.end(TurnStatus::Cancelled, event);
                if let Some(last) = self.turns.last_mut() {
                    last.turn.cause = *cause;
                }
            }
            Body::TurnInterrupted {} => self.end(TurnStatus::Interrupted, event),
            Body::StepCompleted { .. }
            | Body::Unknown(_)
            | ignored!(Session | Message | Replacement | Queue | Tool | Permission | Verify | Plan | Pruning)
            | ignored!(Compaction | Agent | Hook | Budget | Mode | Notice) => {}
        }
    }

    fn start(&mut self, by: Option<Actor>, event: &Event) {
        let Some(id) = &event.turn_id else { return };
        self.started += 1;
        self.turns.push(TurnRecord {
            turn: LastTurn { turn_id: id.clone(), status: TurnStatus::Running, stop_reason: None, error: None, cause: None },
            by,
            model: None,
            usage: None,
            cost: None,
            requests: 0,
            has_steps: false,
            children: ChildAmounts::default(),
            started_ms: event.at_ms,
            ended_ms: 0,
            waited_ms: 0,
            first_seq: event.seq,
            last_seq: 0,
        });
    }

    /// Adds the amounts of a subagent to the turn that started it.
    fn child_ended(&mut self, child: &SessionId, end: &ChildEnd) {
        self.usage = sum(self.usage, end.usage);
        self.cost = Cost::sum(self.cost, end.cost);
        let open = self.open_children.iter().position(|(open, _)| open == child);
        let started_by = open.map(|index| self.open_children.swap_remove(index).1);
        let turn = self.turns.iter_mut().rev().find(|turn| started_by.as_ref().is_none_or(|id| turn.turn.turn_id == *id));
        if let Some(ChildAmounts { usage, cost, requests }) = turn.map(|turn| &mut turn.children) {
            *usage = sum(*usage, end.usage);
            *cost = Cost::sum(*cost, end.cost);
            *requests += end.requests;
        }
    }

    /// Returns the turn that `event` belongs to, if it is the newest turn.
    fn running(&mut self, event: &Event) -> Option<&mut TurnRecord> {
        self.turns.last_mut().filter(|turn| event.turn_id.as_ref() == Some(&turn.turn.turn_id))
    }

    fn set_model(&mut self, model: &str, event: &Event) {
        let known = self.running(event).and_then(|turn| turn.model.as_deref());
        if known == Some(model) {
            return;
        }
        let model = self.shared(model, |turn| turn.model.as_ref());
        if let Some(turn) = self.running(event) {
            turn.model = Some(model);
        }
    }

    /// Returns a copy of `name` that shares its memory with the previous turn if the names are
    /// equal: most turns have the client and the model of the previous turn.
    fn shared(&self, name: &str, field: fn(&TurnRecord) -> Option<&Arc<str>>) -> Arc<str> {
        let known = self.turns.iter().rev().take(2).find_map(field).filter(|known| ***known == *name);
        known.cloned().unwrap_or_else(|| name.into())
    }

    /// Adds the time of the permission requests, unless one of them is open.
    fn end_wait(&mut self, event: &Event) {
        let (asks, since_ms) = &mut self.asks;
        if let (true, Some(last)) = (asks.is_empty() && *since_ms > 0, self.turns.last_mut()) {
            last.waited_ms += event.at_ms.saturating_sub(*since_ms);
            *since_ms = 0;
        }
    }

    /// Returns how long a turn worked, without the time in which it waited for answers.
    pub(in crate::session) fn worked_ms(&self, turn: &TurnRecord, now_ms: u64) -> u64 {
        let ended_ms = match (turn.last_seq, &self.asks) {
            (0, (_, since_ms)) if *since_ms > 0 => *since_ms,
            (0, _) => now_ms,
            _ => turn.ended_ms,
        };
        ended_ms.saturating_sub(turn.started_ms + turn.waited_ms)
    }

    fn end(&mut self, status: TurnStatus, event: &Event) {
        self.asks.0.clear();
        self.end_wait(event);
        if let Some(last) = self.turns.last_mut() {
            (last.turn.status, last.ended_ms, last.last_seq) = (status, event.at_ms, event.seq);
        }
    }

    /// Returns usage and cost of all turns and of their subagents that have ended; `None` without
    /// requests, or if no price is known.
    pub(crate) fn total(&self) -> (Option<Usage>, Option<Cost>) {
        (self.usage, self.cost)
    }

    /// Copies the newest turn and the totals.
    pub(in crate::session) fn newest(&self) -> TurnRecords {
        let turns = self.turns.last().cloned().into_iter().collect();
        let TurnRecords { asks, usage, cost, started, .. } = self;
        TurnRecords { turns, open_children: Vec::new(), asks: asks.clone(), usage: *usage, cost: *cost, started: *started }
    }

    /// Returns the number of turns that have started.
    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// Returns the newest turn.
    pub(crate) fn last(&self) -> Option<&TurnRecord> {
        self.turns.last()
    }

    /// Returns the turn with this id.
    pub(crate) fn get(&self, id: &TurnId) -> Option<&TurnRecord> {
        self.turns.iter().rev().find(|turn| turn.turn.turn_id == *id)
    }

    /// Returns the turns that started after `seq`.
    pub(crate) fn after(&self, seq: Seq) -> &[TurnRecord] {
        &self.turns[self.turns.partition_point(|turn| turn.first_seq <= seq)..]
    }
}
