//! Queued messages. They wait for the next step of the running turn, for its end, or, after a
//! stopped turn, for the next turn. Each is recorded as an event, so that a restart does not lose
//! it.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::open::{Session, TurnQueue};
use super::turn::{Start, Turn, TurnHandle};
use super::turns::TurnStatus;
use crate::content::{Part, Role};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Delivery};
use crate::id::{MessageId, Seq, TurnId};
use crate::limits;

/// A message that is to become part of the conversation.
#[derive(Clone, Debug)]
pub struct Message {
    pub id: MessageId,
    pub role: Role,
    pub parts: Vec<Part>,
}

impl Message {
    pub fn user(parts: Vec<Part>) -> Message {
        Message { id: MessageId::new(), role: Role::User, parts }
    }

    /// The event that adds the message to the conversation.
    pub fn completed(self) -> Body {
        let Message { id: message_id, role, parts } = self;
        Body::MessageCompleted { message_id, role, parts, discarded: false, provider_state: None }
    }
}

/// A message with its delivery options.
#[derive(Clone, Debug)]
pub struct Queued {
    pub message: Message,
    pub delivery: Delivery,
    /// If false, the message does not start a turn.
    pub auto_run: bool,
    /// The client that sent it.
    pub by: Option<String>,
    /// The seq of its `message.queued`; 0 before that is committed.
    pub seq: Seq,
}

impl Queued {
    fn queued(self) -> Body {
        let Queued { message: Message { id: message_id, role, parts }, delivery, auto_run, by, seq: _ } = self;
        Body::MessageQueued { message_id, role, parts, delivery, auto_run, by }
    }
}

/// The destination of a message.
pub enum Placement {
    /// A turn of its own, which is claimed.
    Turn(TurnHandle),
    /// The queue, for the running turn or the one after it.
    Waits { committed: oneshot::Receiver<Result<Seq>>, turn: Option<TurnId> },
    /// The conversation, without a turn.
    Appended(oneshot::Receiver<Result<Seq>>),
    /// Undecided, because this process does not own the session.
    Unowned,
}

impl Session {
    /// Chooses where the message goes, without waiting, so that calls are served in order. The
    /// caller passes the result to [`Session::arrived`].
    pub fn place(self: &Arc<Self>, queued: &Queued) -> Result<Placement> {
        let mut turn_queue = self.turn_queue();
        if turn_queue.closing {
            return Err(self.is_closing());
        }
        // No turn starts while the lock is held, and the end of an ended turn is already in the
        // log's queue: an event appended here lies between the two.
        match turn_queue.turn.clone() {
            None if queued.auto_run && !turn_queue.promoting => {
                let by = queued.by.clone();
                let permit = self.turn_slots.enter()?;
                let start = Start { message: queued.message.clone(), by, waiting: true, retries: None };
                Ok(Placement::Turn(self.launch(&mut turn_queue, permit, start)))
            }
            _ if !self.is_owned() => Ok(Placement::Unowned),
            None if !turn_queue.promoting => Ok(Placement::Appended(self.log.try_append(queued.message.clone().completed())?)),
            running => {
                let waiting = self.log.state(|state| {
                    let here = |id: &&MessageId| state.queue.iter().any(|queued| queued.message.id == **id);
                    state.queue.len() + turn_queue.enqueuing.iter().filter(|id| !here(id)).count()
                });
                if waiting >= limits::QUEUED_MESSAGES_MAX {
                    let message = format!("session {} has {} messages waiting", self.log.id, limits::QUEUED_MESSAGES_MAX);
                    return Err(Error::new(Kind::Overloaded, message).hint("wait for the running turn to end"));
                }
                let committed = self.log.try_append(queued.clone().queued())?;
                turn_queue.enqueuing.push(queued.message.id.clone());
                let turn = running.filter(|_| queued.delivery == Delivery::Steer).map(|running| running.id);
                Ok(Placement::Waits { committed, turn })
            }
        }
    }

    /// Waits until the message is in the log. Returns its turn, if it already has one.
    pub async fn arrived(self: &Arc<Self>, placement: Placement, queued: &Queued) -> Result<Option<TurnId>> {
        let placement = match placement {
            Placement::Unowned => {
                self.own().await?;
                self.place(queued)?
            }
            placement => placement,
        };
        let lost = || Error::internal("the log writer has ended");
        match placement {
            Placement::Turn(mut turn) => turn.opened().await.map(|()| Some(turn.id)),
            Placement::Waits { committed, turn } => {
                let (session, id) = (self.clone(), queued.message.id.clone());
                // A separate task, because the sender may disconnect, and the turn may already have
                // ended.
                let arrived = self.tasks.spawn(async move {
                    let committed = committed.await;
                    session.turn_queue().enqueuing.retain(|arriving| *arriving != id);
                    session.promote();
                    committed
                });
                arrived.await.map_err(|_| lost())?.map_err(|_| lost())?.map(|_| turn)
            }
            Placement::Appended(committed) => committed.await.map_err(|_| lost())?.map(|_| None),
            Placement::Unowned => Err(self.is_closing()),
        }
    }

    /// When no turn runs: appends the messages that do not start a turn, then starts a turn for the
    /// message or the prompt that has waited longest. After a stopped or failed turn, only a prompt
    /// starts one.
    pub(super) fn promote(self: &Arc<Self>) {
        let mut turn_queue = self.turn_queue();
        if turn_queue.turn.is_some() {
            turn_queue.promoting = false;
            return;
        }
        if turn_queue.closing || self.shutdown.is_cancelled() {
            turn_queue.promoting = false;
            return turn_queue.prompts.cancel();
        }
        let owned = self.is_owned();
        if owned && self.log.state(|state| state.turn.is_some()) {
            // The end of the turn is not committed yet; this is called again after it.
            return;
        }
        turn_queue.promoting = false;
        let continues =
            owned && self.log.state(|state| state.turns.last().is_some_and(|last| last.status == TurnStatus::Completed));
        if owned {
            self.append_silent(&mut turn_queue);
        }
        let next = self.log.state(|state| state.runs_next().filter(|_| continues).cloned());
        match next.filter(|next| turn_queue.prompts.all_after(next.seq)) {
            // The new turn replaces the ended one, so the limit does not apply.
            Some(next) => match self.turn_slots.enter_unlimited() {
                Some(permit) => {
                    let start = Start { message: next.message, by: next.by, waiting: false, retries: None };
                    self.launch(&mut turn_queue, permit, start);
                }
                None => self.start_waiting_prompt(&mut turn_queue, false),
            },
            None => self.start_waiting_prompt(&mut turn_queue, !continues),
        }
    }

    /// Appends the messages that do not start a turn.
    fn append_silent(&self, turn_queue: &mut TurnQueue) {
        let silent: Vec<Message> = self.log.state(|state| state.silent().cloned().collect());
        turn_queue.dequeuing.retain(|id| silent.iter().any(|message| message.id == *id));
        for message in silent {
            let id = message.id.clone();
            // If the log's queue is full, the message is appended after the next turn.
            if !turn_queue.dequeuing.contains(&id) && self.log.try_append(message.completed()).is_ok() {
                turn_queue.dequeuing.push(id);
            }
        }
    }
}

impl Turn {
    /// Adds the queued steering messages to the turn, between two model requests. Returns whether
    /// there were any.
    pub async fn take_steered(&self) -> Result<bool> {
        let steers = |queued: &&Queued| queued.delivery == Delivery::Steer;
        let steered: Vec<Queued> = self.session.log.state(|state| state.queue.iter().filter(steers).cloned().collect());
        let any = !steered.is_empty();
        for queued in steered {
            self.commit(queued.message.completed()).await?;
        }
        Ok(any)
    }
}
