//! A turn: the work from a prompt to its stop reason, for the agent and for callers.

pub(crate) mod agent;
pub(super) mod ancestor;
pub(crate) mod asking_turn;
pub(crate) mod budget_owner;
pub(super) mod capacity;
#[doc(hidden)]
pub mod core;
#[doc(hidden)]
pub mod new_turn;
pub(super) mod request;
pub(super) mod running_children;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::ancestor::Ancestor;
use self::asking_turn::AskingTurn;
use self::running_children::RunningChildren;
use super::message::{IncomingMessage, WaitingMessage};
use crate::content::{Cost, Part, StopReason, Usage};
use crate::error::{Error, Result};
use crate::event::{Body, CancelCause, Severity, TurnFailure};
use crate::id::{MessageId, PermissionId, Seq, TurnId};
use crate::session::attached_clients::AttachedClients;
use crate::session::events::log::SessionLog;
use crate::session::permissions::broker::Broker;
use crate::toolkit::Subagents;

/// Delivers steering messages to a turn; see [`Turn::steer`].
type SteeringCallback = Box<dyn for<'a> Fn(&'a Turn) -> BoxFuture<'a, Result<bool>> + Send + Sync>;

/// A running turn, for its agent.
pub struct Turn {
    pub id: TurnId,
    /// The log of the session.
    pub log: Arc<SessionLog>,
    /// Clients that provide files and terminals.
    pub clients: Arc<AttachedClients>,
    /// Cancelled when the turn must stop.
    pub cancel: CancellationToken,
    /// The messages that start the turn: queued messages, then the prompt.
    pub prompt: Vec<Part>,
    /// The title that the session got from the prompt.
    pub derived_title: Option<String>,
    pub(in crate::session) broker: Arc<Broker>,
    /// Permission requests wait until this time for clients of other processes.
    pub(in crate::session) responders_wait_until: Option<Instant>,
    /// True if another client of the agent started the turn, and the agent follows it.
    pub external: bool,
    /// Delivers the queued steering messages to the turn.
    pub(in crate::session) steering: SteeringCallback,
    /// Takes the queued steering messages, to deliver them.
    pub(in crate::session) steered: Box<dyn Fn() -> Vec<WaitingMessage> + Send + Sync>,
    /// Returns a steering message that was taken to the queue.
    pub(in crate::session) not_delivered: Box<dyn Fn(&MessageId) + Send + Sync>,
    /// Starts subagents; set once the prompt is recorded.
    pub(crate) subagents: Option<Subagents>,
    /// The subagents of the session.
    pub(crate) children: Arc<RunningChildren>,
    /// The parent sessions of a subagent, nearest first.
    pub(in crate::session) ancestors: Arc<[Ancestor]>,
    pub(in crate::session) asking: Arc<AskingTurn>,
    /// The ids of an open permission request in the parent sessions, by the id in this session.
    pub(in crate::session) asked_above: Mutex<HashMap<PermissionId, Vec<PermissionId>>>,
}

impl Turn {
    /// Appends an event without waiting for its commit.
    pub(crate) async fn emit(&self, body: Body) {
        if let Body::PermissionResolved(decision) = &body {
            self.resolve_above(decision).await;
        }
        self.log.emit(Some(self.id.clone()), body).await;
    }

    /// Appends an event like [`Turn::emit`], which is synced with the next durable event.
    pub(crate) async fn emit_before_commit(&self, body: Body) {
        if let Body::PermissionResolved(decision) = &body {
            self.resolve_above(decision).await;
        }
        self.log.emit_before_commit(Some(self.id.clone()), body).await;
    }

    /// Appends an event and waits until it, and all events emitted before it, are committed.
    pub(crate) async fn commit(&self, body: Body) -> Result<Seq> {
        self.log.commit(Some(self.id.clone()), body).await
    }

    /// Commits an event durably, before an external effect.
    pub(crate) async fn commit_durably(&self, body: Body) -> Result<Seq> {
        self.log.commit_durably(Some(self.id.clone()), body).await
    }

    /// Adds the queued steering messages to the turn, in the order of the queue. Returns whether
    /// there were any.
    pub(crate) async fn steer(&self) -> Result<bool> {
        (self.steering)(self).await
    }

    /// Waits for queued steering messages and takes them; the caller records them. Cancel-safe.
    pub(crate) async fn wait_for_steered(&self) -> Vec<WaitingMessage> {
        let mut head = self.log.head.subscribe();
        loop {
            let steered = (self.steered)();
            if !steered.is_empty() {
                return steered;
            }
            // Cannot fail: the log holds the sender.
            let _ = head.changed().await;
        }
    }

    /// Returns a steering message that could not be delivered to the queue.
    pub(crate) fn put_back(&self, id: &MessageId) {
        (self.not_delivered)(id);
    }

    /// Returns whether the turn ends because a permission request got no answer.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.asking.is_unanswered()
    }

    /// Records a message that does not become part of the conversation.
    pub(crate) async fn reject(&self, message: IncomingMessage, error: Error) {
        self.emit(rejection(error)).await;
        self.emit(message.rejected()).await;
    }
}

/// The end of a turn. `seq` is the seq of the turn's last event; the answer to the prompt is sent
/// after that event.
#[derive(Clone, Debug)]
pub(crate) struct TurnEnd {
    pub result: Result<StopReason>,
    pub seq: Seq,
    /// Total usage of the model requests of the turn and its subagents; `None` if there were none.
    pub usage: Option<Usage>,
    /// Total cost of the requests whose price is known; `None` if there were none.
    pub cost: Option<Cost>,
    /// Why a cancelled turn ended, unless a client cancelled it.
    pub cause: Option<CancelCause>,
}

impl TurnEnd {
    /// Creates the end of a turn that could not be recorded in the log.
    pub(in crate::session) fn lost(error: Error) -> TurnEnd {
        TurnEnd { result: Err(error), seq: 0, usage: None, cost: None, cause: None }
    }
}

/// A handle to a running turn, to cancel it or to wait for it.
#[derive(Clone)]
pub struct TurnHandle {
    pub id: TurnId,
    cancel: CancellationToken,
    pub(in crate::session) asking: Option<Arc<AskingTurn>>,
    opened: watch::Receiver<bool>,
    end: watch::Receiver<Option<TurnEnd>>,
}

/// Reports the progress of a turn to its handles.
pub struct TurnProgress {
    opened: watch::Sender<bool>,
    end: watch::Sender<Option<TurnEnd>>,
}

impl TurnProgress {
    /// Creates the progress reporter and the handle of a turn that has not started.
    pub fn new(id: TurnId, cancel: CancellationToken) -> (TurnProgress, TurnHandle) {
        let ((opened, is_open), (done, end)) = (watch::channel(false), watch::channel(None));
        (TurnProgress { opened, end: done }, TurnHandle { id, cancel, asking: None, opened: is_open, end })
    }

    /// Reports that the prompt is in the log.
    pub(crate) fn opened(&self) {
        self.opened.send_replace(true);
    }

    /// Reports that the turn has ended.
    pub(crate) fn ended(self, end: TurnEnd) {
        self.end.send_replace(Some(end));
    }
}

impl TurnHandle {
    /// Stops the turn, which then ends as `cancelled`.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Waits until the prompt is in the log. If the turn fails before that, returns the turn's
    /// error.
    pub(crate) async fn opened(&mut self) -> Result<()> {
        match self.opened.wait_for(|opened| *opened).await.map(drop) {
            Ok(()) => Ok(()),
            // The turn's task ended before the prompt was in the log.
            Err(_) => self.end().await.result.map(drop),
        }
    }

    /// Waits until the turn has ended.
    pub(crate) async fn end(&mut self) -> TurnEnd {
        match self.end.wait_for(Option::is_some).await.map(|end| end.clone()) {
            Ok(Some(end)) => end,
            _ => TurnEnd::lost(Error::internal("the turn's task ended without a result")),
        }
    }
}

/// Creates the notice about a message that does not become part of the conversation.
pub(in crate::session) fn rejection(error: Error) -> Body {
    Body::notice(Severity::Error, "A message was rejected", error.message)
}

/// Creates the final event of a failed turn.
pub(in crate::session) fn failed(error: &Error) -> Body {
    let (message, hint, info) = (error.message.clone(), error.hint.clone(), error.details.clone());
    Body::TurnFailed(TurnFailure { code: error.kind.row().code.into(), message, hint, info })
}

/// Returns the message of a panic; "no message" if it is not text.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
