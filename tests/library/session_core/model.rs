//! What must hold for the work of a session: a simple model that follows each step.

use std::collections::{HashMap, HashSet};

use nuncio::event::Delivery;
use nuncio::id::{MessageId, TurnId};
use nuncio::internal::session::message::WaitingMessage;

/// A kind of waiting work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Prompt {
        client: String,
    },
    Runs,
    Silent,
    /// The message of the turn that starts.
    Claimed,
}

/// Waiting work, in the order of its arrival, and the turns so far.
#[derive(Default, Debug)]
pub struct Model {
    pub waiting: Vec<(MessageId, Kind)>,
    /// The numbers of the work in the order of its arrival.
    arrivals: HashMap<MessageId, usize>,
    /// Messages that start no turn.
    pub held: HashSet<MessageId>,
    /// Messages with the delivery `steer`.
    pub steering: HashSet<MessageId>,
    /// Messages that a turn has taken and not delivered.
    pub taken: HashMap<MessageId, TurnId>,
    delivered: HashSet<MessageId>,
    open: Option<TurnId>,
    ended: HashSet<TurnId>,
}

/// An event in the log.
#[derive(Clone, Debug)]
pub enum Entry {
    Queued(Box<WaitingMessage>),
    Edited(MessageId, Delivery),
    Removed(MessageId),
    Completed(MessageId),
    Started(TurnId),
    Ended(TurnId),
}

impl Model {
    /// Returns the work that must start next.
    pub fn next(&self) -> Option<&MessageId> {
        let runs = |(id, kind): &&(MessageId, Kind)| match kind {
            Kind::Prompt { .. } => true,
            Kind::Runs => !self.held.contains(id) && !self.taken.contains_key(id),
            Kind::Silent | Kind::Claimed => false,
        };
        self.waiting.iter().find(runs).map(|(id, _)| id)
    }

    /// Returns the messages that precede the work `id` in its turn.
    pub fn before(&self, id: &MessageId) -> Vec<MessageId> {
        let earlier = self.waiting.iter().take_while(|(other, _)| other != id);
        earlier.filter(|(id, kind)| *kind == Kind::Runs && !self.taken.contains_key(id)).map(|(id, _)| id.clone()).collect()
    }

    /// Returns the message that a running turn delivers next.
    pub fn next_steering(&self) -> Option<&MessageId> {
        let steers =
            |(id, kind): &&(MessageId, Kind)| *kind != Kind::Claimed && self.steering.contains(id) && !self.taken.contains_key(id);
        self.waiting.iter().find(steers).map(|(id, _)| id)
    }

    /// Sets the delivery of a message.
    pub fn set_delivery(&mut self, id: &MessageId, delivery: Delivery) {
        if delivery == Delivery::Steer {
            self.steering.insert(id.clone());
        } else {
            self.steering.remove(id);
        }
    }

    pub fn arrive(&mut self, id: MessageId, kind: Kind) {
        self.arrivals.insert(id.clone(), self.arrivals.len());
        self.waiting.push((id, kind));
    }

    /// Returns the messages of the queue to their places, if they do not wait.
    pub fn wait_again(&mut self, queue: &[WaitingMessage]) {
        for queued in queue {
            let id = &queued.message.id;
            if self.waiting.iter().all(|(waiting, _)| waiting != id) {
                let place = self.waiting.partition_point(|(waiting, _)| self.arrivals[waiting] < self.arrivals[id]);
                let kind = if queued.auto_run { Kind::Runs } else { Kind::Silent };
                self.waiting.insert(place, (id.clone(), kind));
            }
        }
    }

    /// The message of a turn that starts.
    pub fn claim(&mut self, id: &MessageId) {
        for (_, kind) in self.waiting.iter_mut().filter(|(waiting, _)| waiting == id) {
            *kind = Kind::Claimed;
        }
    }

    pub fn remove(&mut self, id: &MessageId) {
        self.waiting.retain(|(other, _)| other != id);
    }

    /// Removes the waiting prompts of a client, or of all clients.
    pub fn remove_prompts(&mut self, of: Option<&str>) {
        self.waiting.retain(|(_, kind)| !matches!(kind, Kind::Prompt { client } if of.is_none_or(|of| of == client)));
    }

    pub fn hold_all(&mut self) {
        self.held.extend(self.waiting.iter().filter(|(_, kind)| *kind == Kind::Runs).map(|(id, _)| id.clone()));
    }

    /// Checks an event that is committed against those before it; `queue` is the queue before it.
    pub fn committed(&mut self, entry: &Entry, queue: &[WaitingMessage]) {
        let queued = |id: &MessageId| queue.iter().any(|queued| queued.message.id == *id);
        match entry {
            Entry::Queued(message) => assert!(!queued(&message.message.id), "queued twice"),
            Entry::Edited(id, _) | Entry::Removed(id) => assert!(queued(id), "{entry:?}: not in the queue"),
            Entry::Completed(id) => assert!(self.delivered.insert(id.clone()), "{id} was delivered twice"),
            Entry::Started(turn) => {
                assert!(!self.ended.contains(turn));
                let open = self.open.replace(turn.clone());
                assert_eq!(open, None, "two turns run");
            }
            Entry::Ended(turn) => {
                assert_eq!(self.open.take().as_ref(), Some(turn), "the end of another turn");
                self.ended.insert(turn.clone());
            }
        }
    }

    /// Returns the turn that is open in the log.
    pub fn open(&self) -> Option<TurnId> {
        self.open.clone()
    }

    pub fn was_delivered(&self, id: &MessageId) -> bool {
        self.delivered.contains(id)
    }
}
