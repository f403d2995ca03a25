//! The event table: the name, durability and class of each event type.

use super::Body;

/// How an event is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// Synced to disk before anything that depends on the event happens, because the event precedes
    /// an external effect or ends a turn.
    Synced,
    /// Committed with the next batch.
    Batched,
}

/// How long an event is kept, and whether it ends its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Kept permanently.
    Fact,
    /// A fact that ends its turn.
    TurnEnd,
    /// A fragment whose content a later event repeats in full. May be removed after the later
    /// event.
    Delta,
}

/// The type of [`Body::MessageCompleted`].
pub(crate) const MESSAGE_COMPLETED: &str = "message.completed";
/// The type of [`Body::MessageQueued`].
pub(crate) const MESSAGE_QUEUED: &str = "message.queued";
/// The type of [`Body::MessagesReplaced`].
pub(crate) const MESSAGES_REPLACED: &str = "messages.replaced";

/// The types of events that this version knows.
pub const TYPES: &[&str] = &[
    "session.created",
    "session.updated",
    "session.closed",
    "session.deleted",
    "turn.started",
    "turn.completed",
    "turn.failed",
    "turn.cancelled",
    "turn.interrupted",
    "step.started",
    "step.completed",
    "message.delta",
    MESSAGE_COMPLETED,
    MESSAGES_REPLACED,
    MESSAGE_QUEUED,
    "message.edited",
    "message.removed",
    "tool.started",
    "tool.updated",
    "tool.completed",
    "permission.requested",
    "permission.resolved",
    "verify.started",
    "verify.completed",
    "plan.updated",
    "usage.updated",
    "context.pruned",
    "compaction.started",
    "compaction.completed",
    "child.started",
    "child.completed",
    "hook.completed",
    "budget.raised",
    "mode.changed",
    "notice",
];

impl Body {
    /// Returns the event's row in the event table: its name, durability and class.
    fn row(&self) -> (&str, Durability, Class) {
        use Class::{Delta, Fact, TurnEnd};
        use Durability::{Batched, Synced};
        match self {
            Body::SessionCreated { .. } => ("session.created", Synced, Fact),
            Body::SessionUpdated { .. } => ("session.updated", Batched, Fact),
            Body::SessionClosed {} => ("session.closed", Batched, Fact),
            Body::SessionDeleted {} => ("session.deleted", Synced, Fact),
            Body::TurnStarted { .. } => ("turn.started", Synced, Fact),
            Body::TurnCompleted { .. } => ("turn.completed", Synced, TurnEnd),
            Body::TurnFailed { .. } => ("turn.failed", Synced, TurnEnd),
            Body::TurnCancelled {} => ("turn.cancelled", Synced, TurnEnd),
            Body::TurnInterrupted {} => ("turn.interrupted", Synced, TurnEnd),
            Body::StepStarted { .. } => ("step.started", Batched, Fact),
            Body::StepCompleted { .. } => ("step.completed", Batched, Fact),
            Body::MessageDelta { .. } => ("message.delta", Batched, Delta),
            Body::MessageCompleted { .. } => (MESSAGE_COMPLETED, Batched, Fact),
            Body::MessageQueued { .. } => (MESSAGE_QUEUED, Synced, Fact),
            Body::MessageEdited { .. } => ("message.edited", Synced, Fact),
            Body::MessageRemoved { .. } => ("message.removed", Synced, Fact),
            Body::ToolStarted { .. } => ("tool.started", Batched, Fact),
            Body::ToolUpdated { status: None, change, .. } if change.is_empty() => ("tool.updated", Batched, Delta),
            Body::ToolUpdated { .. } => ("tool.updated", Batched, Fact),
            Body::ToolCompleted { .. } => ("tool.completed", Batched, Fact),
            Body::PermissionRequested { .. } => ("permission.requested", Batched, Fact),
            Body::PermissionResolved { permission_id: Some(_), .. } => ("permission.resolved", Synced, Fact),
            Body::PermissionResolved { permission_id: None, .. } => ("permission.resolved", Batched, Fact),
            Body::VerifyStarted { .. } => ("verify.started", Batched, Fact),
            Body::VerifyCompleted { .. } => ("verify.completed", Batched, Fact),
            Body::PlanUpdated { .. } => ("plan.updated", Batched, Fact),
            Body::UsageUpdated { .. } => ("usage.updated", Batched, Fact),
            Body::ContextPruned { .. } => ("context.pruned", Batched, Fact),
            Body::CompactionStarted { .. } => ("compaction.started", Batched, Fact),
            Body::CompactionCompleted { .. } => ("compaction.completed", Synced, Fact),
            Body::ChildStarted { .. } => ("child.started", Batched, Fact),
            Body::ChildCompleted { .. } => ("child.completed", Batched, Fact),
            Body::HookCompleted { .. } => ("hook.completed", Batched, Fact),
            Body::BudgetRaised { .. } => ("budget.raised", Synced, Fact),
            Body::ModeChanged { .. } => ("mode.changed", Batched, Fact),
            Body::MessagesReplaced { .. } => (MESSAGES_REPLACED, Batched, Fact),
            Body::Notice { .. } => ("notice", Batched, Fact),
            Body::Unknown(event) => (&event.name, Batched, Fact),
        }
    }

    /// Returns the `type` of the event.
    pub(crate) fn name(&self) -> &str {
        self.row().0
    }

    /// Returns whether a later event repeats the content of this event in full, so that this event
    /// may be removed.
    pub fn is_delta(&self) -> bool {
        self.row().2 == Class::Delta
    }

    /// Returns whether the event must be on disk before anything that depends on it happens.
    pub(crate) fn is_durable(&self) -> bool {
        self.row().1 == Durability::Synced
    }

    /// Returns whether the event ends its turn.
    pub(crate) fn ends_turn(&self) -> bool {
        self.row().2 == Class::TurnEnd
    }
}
