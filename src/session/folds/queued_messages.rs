//! The queued messages of a session: a fold over its events.

use std::collections::VecDeque;
use std::ops::Deref;

use crate::event::{Body, Event, QueuedMessage, ignored};
use crate::id::MessageId;
use crate::limits;
use crate::session::message::{IncomingMessage, WaitingMessage};

/// The queued messages of a session, oldest first.
#[derive(Clone, Debug, Default)]
pub struct QueuedMessages {
    waiting: Vec<WaitingMessage>,
    /// The messages that left the queue last, newest first.
    ended: VecDeque<(MessageId, LeftQueue)>,
}

/// How a message left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftQueue {
    Delivered,
    Removed,
}

impl QueuedMessages {
    /// Adds an event. Events must be added in the order of the log.
    pub(crate) fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::MessageQueued(QueuedMessage { message_id, role, parts, delivery, auto_run, by }) => {
                self.waiting.push(WaitingMessage {
                    message: IncomingMessage { role: *role, ..IncomingMessage::user(message_id.clone(), parts.clone()) },
                    delivery: *delivery,
                    auto_run: *auto_run,
                    by: by.clone(),
                    seq: event.seq,
                })
            }
            Body::MessageEdited { message_id, parts, delivery, by: _ } => {
                if let Some(queued) = self.waiting.iter_mut().find(|queued| queued.has_id(message_id)) {
                    queued.edit(parts.clone(), *delivery);
                }
            }
            Body::MessageRemoved { message_id, by: _ } => self.end(message_id, LeftQueue::Removed),
            Body::MessageCompleted { message_id, .. } => self.end(message_id, LeftQueue::Delivered),
            Body::MessageDelta { .. } | Body::Unknown(_) => {}
            ignored!(Session | Turn | Step | Replacement | Tool | Permission | Verify | Plan | Usage | Pruning) => {}
            ignored!(Compaction | Child | Agent | Hook | Budget | Mode | Notice) => {}
        }
    }

    fn end(&mut self, id: &MessageId, how: LeftQueue) {
        let before = self.waiting.len();
        self.waiting.retain(|queued| !queued.has_id(id));
        if self.waiting.len() < before {
            self.ended.truncate(limits::QUEUED_MESSAGES_MAX - 1);
            self.ended.push_front((id.clone(), how));
        }
    }

    /// Returns how a message left the queue, if it is one of the last that did.
    pub(crate) fn left(&self, id: &MessageId) -> Option<LeftQueue> {
        self.ended.iter().find(|(ended, _)| ended == id).map(|(_, how)| *how)
    }
}

impl Deref for QueuedMessages {
    type Target = [WaitingMessage];

    fn deref(&self) -> &[WaitingMessage] {
        &self.waiting
    }
}
