//! The event table: the subject, name, durability and class of each event type.

use super::Body;
use crate::event::{PermissionDecision, ToolUpdate};

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

/// Defines the types, the rows and the subjects of the events.
macro_rules! events {
    ($($subject:ident { $($variant:ident($name:expr, $durability:ident, $class:ident),)* })*) => {
        /// The types of events that this version knows.
        pub const TYPES: &[&str] = &[$($($name,)*)*];

        impl Body {
            /// Returns the event's row in the event table: its name, durability and class.
            fn row(&self) -> (&str, Durability, Class) {
                use Class::{Delta, Fact, TurnEnd};
                use Durability::{Batched, Synced};
                match self {
                    Body::ToolUpdated(ToolUpdate { status: None, change, .. }) if change.is_empty() => ("tool.updated", Batched, Delta),
                    Body::PermissionResolved(PermissionDecision { permission_id: Some(_), .. }) => ("permission.resolved", Synced, Fact),
                    $($(Body::$variant { .. } => ($name, $durability, $class),)*)*
                    Body::Unknown(event) => (&event.name, Batched, Fact),
                }
            }
        }

        /// The pattern of all events of one subject.
        macro_rules! subject {
            $(($subject) => { $(Body::$variant { .. })|* };)*
        }
    };
}

/// The pattern of the events that a fold ignores: all events of these subjects. The fold matches
/// without `_`, so that a new event of another subject does not compile until the fold handles it.
macro_rules! ignored {
    ($($subject:ident)|*) => { $($crate::event::subject!($subject))|* };
}

events! {
    Session {
        SessionCreated("session.created", Synced, Fact),
        SessionUpdated("session.updated", Batched, Fact),
        SessionGranted("session.granted", Synced, Fact),
        SessionClosed("session.closed", Batched, Fact),
        SessionDeleted("session.deleted", Synced, Fact),
    }
    Turn {
        TurnStarted("turn.started", Synced, Fact),
        TurnCompleted("turn.completed", Synced, TurnEnd),
        TurnFailed("turn.failed", Synced, TurnEnd),
        TurnCancelled("turn.cancelled", Synced, TurnEnd),
        TurnInterrupted("turn.interrupted", Synced, TurnEnd),
    }
    Step {
        StepStarted("step.started", Batched, Fact),
        StepCompleted("step.completed", Batched, Fact),
    }
    Message {
        MessageDelta("message.delta", Batched, Delta),
        MessageCompleted(MESSAGE_COMPLETED, Batched, Fact),
    }
    Replacement { MessagesReplaced(MESSAGES_REPLACED, Batched, Fact), }
    Queue {
        MessageQueued(MESSAGE_QUEUED, Synced, Fact),
        MessageEdited("message.edited", Synced, Fact),
        MessageRemoved("message.removed", Synced, Fact),
    }
    Tool {
        ToolStarted("tool.started", Batched, Fact),
        ToolInput("tool.input", Batched, Delta),
        ToolUpdated("tool.updated", Batched, Fact),
        ToolCompleted("tool.completed", Batched, Fact),
    }
    Permission {
        PermissionRequested("permission.requested", Batched, Fact),
        PermissionUpdated("permission.updated", Batched, Fact),
        PermissionResolved("permission.resolved", Batched, Fact),
        PermissionForgotten("permission.forgotten", Synced, Fact),
    }
    Verify {
        VerifyStarted("verify.started", Batched, Fact),
        VerifyCompleted("verify.completed", Batched, Fact),
    }
    Plan { PlanUpdated("plan.updated", Batched, Fact), }
    Usage { UsageUpdated("usage.updated", Batched, Fact), }
    Pruning {
        ContextPruned("context.pruned", Batched, Fact),
        RequestRepaired("request.repaired", Batched, Fact),
    }
    Compaction {
        CompactionStarted("compaction.started", Batched, Fact),
        CompactionCompleted("compaction.completed", Synced, Fact),
    }
    Child {
        ChildStarted("child.started", Batched, Fact),
        ChildCompleted("child.completed", Batched, Fact),
    }
    Agent {
        AgentStarted("agent.started", Batched, Fact),
        AgentEnded("agent.ended", Batched, Fact),
    }
    Hook { HookCompleted("hook.completed", Batched, Fact), }
    Budget { BudgetRaised("budget.raised", Synced, Fact), }
    Mode { ModeChanged("mode.changed", Batched, Fact), }
    Notice { Notice("notice", Batched, Fact), }
}

pub(crate) use {ignored, subject};

impl Body {
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

    /// Returns whether the session counts as updated at the time of the event. The process of an
    /// idle agent can end long after the last work in the session.
    pub(crate) fn updates_session(&self) -> bool {
        !matches!(self, Body::AgentEnded { .. })
    }

    /// Returns whether the event ends its turn.
    pub(crate) fn ends_turn(&self) -> bool {
        self.row().2 == Class::TurnEnd
    }
}
