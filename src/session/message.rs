//! Messages that are about to enter the conversation, and the events that record them.

use crate::content::{Part, Role};
use crate::event::{Actor, Body, Delivery, MessageExtra, QueuedMessage};
use crate::id::{MessageId, Seq};

/// A message that is to become part of the conversation.
#[derive(Clone, Debug)]
pub struct IncomingMessage {
    pub id: MessageId,
    pub role: Role,
    pub parts: Vec<Part>,
    pub extra: MessageExtra,
    /// True if a model wrote the message, which then uses no MCP server.
    pub by_model: bool,
    /// True if it came from another process, whose client may answer permission requests.
    pub is_forwarded: bool,
}

impl IncomingMessage {
    /// Creates a user message.
    pub(crate) fn user(id: MessageId, parts: Vec<Part>) -> IncomingMessage {
        IncomingMessage { id, role: Role::User, parts, extra: MessageExtra::default(), by_model: false, is_forwarded: false }
    }

    /// Creates the event that adds the message to the conversation.
    pub(crate) fn completed(self) -> Body {
        let IncomingMessage { id: message_id, role, parts, extra, by_model: _, is_forwarded: _ } = self;
        Body::MessageCompleted { message_id, role, parts, discarded: false, provider_state: None, extra }
    }

    /// Creates the event that records the message without adding it to the conversation.
    pub(crate) fn rejected(self) -> Body {
        let IncomingMessage { id: message_id, role, parts, extra, by_model: _, is_forwarded: _ } = self;
        Body::MessageCompleted { message_id, role, parts, discarded: true, provider_state: None, extra }
    }
}

/// A message with its delivery options.
#[derive(Clone, Debug)]
pub struct WaitingMessage {
    pub message: IncomingMessage,
    pub delivery: Delivery,
    /// False if the message does not start a turn.
    pub auto_run: bool,
    /// The client that sent the message.
    pub by: Option<Actor>,
    /// The seq of the message's `message.queued` event; 0 before the event is committed.
    pub seq: Seq,
}

impl WaitingMessage {
    /// Returns whether this is the message `id`.
    pub(in crate::session) fn has_id(&self, id: &MessageId) -> bool {
        self.message.id == *id
    }

    /// Changes the message. An absent value does not change.
    pub(in crate::session) fn edit(&mut self, parts: Option<Vec<Part>>, delivery: Option<Delivery>) {
        self.delivery = delivery.unwrap_or(self.delivery);
        if let Some(parts) = parts {
            self.message.parts = parts;
        }
    }

    /// Returns the message as events and the API have it.
    pub(crate) fn queued(&self) -> QueuedMessage {
        let IncomingMessage { id, role, parts, .. } = &self.message;
        QueuedMessage {
            message_id: id.clone(),
            role: *role,
            parts: parts.clone(),
            delivery: self.delivery,
            auto_run: self.auto_run,
            by: self.by.clone(),
        }
    }
}

/// A change of a queued message. An absent value does not change.
#[derive(Clone, Debug)]
pub enum QueueChange {
    Edit { parts: Option<Vec<Part>>, delivery: Option<Delivery> },
    Remove,
}

impl QueueChange {
    /// Creates the event that records the change.
    pub(in crate::session) fn event(self, message_id: MessageId, by: &Actor) -> Body {
        let by = Some(by.clone());
        match self {
            QueueChange::Edit { parts, delivery } => Body::MessageEdited { message_id, parts, delivery, by },
            QueueChange::Remove => Body::MessageRemoved { message_id, by },
        }
    }
}
