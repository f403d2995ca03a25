//! The events that change what a session may do, and the last one of them.

use serde::Deserialize;
use serde_json::Value;

use crate::config::Rule;
use crate::event::{Body, Event, PermissionDecision, PermissionOutcome, SessionChange, ignored};
use crate::id::Seq;

/// The last event that changed what the session may do, or that has a signature.
#[derive(Clone, Debug, Default)]
pub struct SignedEvent {
    pub(in crate::session) seq: Seq,
    pub(in crate::session) signature: Option<Box<str>>,
}

impl SignedEvent {
    /// Adds an event. Events must be added in the order of the log.
    pub(super) fn apply(&mut self, event: &Event) {
        if changes_grants(&event.body) || event.signature.is_some() {
            (self.seq, self.signature) = (event.seq, event.signature.clone());
        }
    }
}

/// Returns whether an event changes what the session may do.
pub(in crate::session) fn changes_grants(body: &Body) -> bool {
    match body {
        Body::SessionUpdated { change } => {
            let others = SessionChange { title: None, thinking: None, origin: None, ..change.clone() };
            others != SessionChange::default()
        }
        Body::SessionCreated { .. } | Body::SessionGranted { .. } | Body::ModeChanged { .. } | Body::BudgetRaised { .. } => true,
        Body::PermissionForgotten { .. } => true,
        Body::PermissionResolved(PermissionDecision { permission_id, outcome, rule, .. }) => {
            let always = matches!(outcome, PermissionOutcome::AllowAlways | PermissionOutcome::RejectAlways);
            always && permission_id.is_some() && rule.is_some()
        }
        // The limits of a turn end with it.
        ignored!(Turn | Step | Message | Replacement | Queue | Tool | Verify | Plan | Usage | Pruning)
        | ignored!(Compaction | Child | Agent | Hook | Notice)
        | Body::SessionClosed {}
        | Body::SessionDeleted {}
        | Body::PermissionRequested { .. }
        | Body::PermissionUpdated { .. }
        | Body::Unknown(_) => false,
    }
}

/// Parses rules in events. A rule that this version cannot parse is ignored.
pub(super) fn parse_rules(rules: &[Value]) -> Vec<Rule> {
    rules.iter().filter_map(|rule| Rule::deserialize(rule).ok()).collect()
}
