//! Messages that wait: for the running turn's next step, for its end, or, after a turn that was stopped, for the next one.
//! Each is an event as long as it waits, so that a restart loses none.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::open::{Session, Slot};
use super::turn::{Start, Turn, TurnHandle};
use super::turns::TurnStatus;
use crate::content::{Part, Role};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Delivery};
use crate::id::{MessageId, Seq, TurnId};
use crate::limits;

/// A message on its way into the conversation.
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

    pub fn completed(self) -> Body {
        let Message { id: message_id, role, parts } = self;
        Body::MessageCompleted { message_id, role, parts, discarded: false, provider_state: None }
    }
}

/// A message with what is to become of it.
#[derive(Clone, Debug)]
pub struct Queued {
    pub message: Message,
    pub delivery: Delivery,
    /// Without it, no turn is started for it.
    pub auto_run: bool,
    /// The client that sent it.
    pub by: Option<String>,
    /// Of its `message.queued`; 0 before it waits.
    pub seq: Seq,
}

impl Queued {
    fn waits(self) -> Body {
        let Queued { message: Message { id: message_id, role, parts }, delivery, auto_run, by, seq: _ } = self;
        Body::MessageQueued { message_id, role, parts, delivery, auto_run, by }
    }
}

/// Where a message went.
pub enum Placed {
    /// Into a turn of its own, which has just been claimed.
    Turn(TurnHandle),
    /// Behind the running turn, or into it.
    Waits { committed: oneshot::Receiver<Result<Seq>>, turn: Option<TurnId> },
    /// Into the conversation, without a turn.
    Appended(oneshot::Receiver<Result<Seq>>),
    /// Nowhere yet: this process may not write.
    Unowned,
}

impl Session {
    /// Finds the message its place, before the first `.await` of whoever calls. [`Session::arrived`] waits until it is there.
    pub fn place(self: &Arc<Self>, queued: &Queued) -> Result<Placed> {
        let mut slot = self.slot();
        if slot.closing {
            return Err(self.is_closing());
        }
        // While the slot is held no turn begins, and one that ended has its end in the log's queue: what is appended comes between.
        match slot.turn.clone() {
            None if queued.auto_run && !slot.settling => {
                let by = queued.by.clone();
                let place = self.running.enter()?;
                let start = Start { message: queued.message.clone(), by, waiting: true, retries: None };
                Ok(Placed::Turn(self.launch(&mut slot, place, start)))
            }
            _ if !self.is_owned() => Ok(Placed::Unowned),
            None if !slot.settling => Ok(Placed::Appended(self.log.try_append(queued.message.clone().completed())?)),
            running => {
                let waiting = self.log.state(|state| {
                    let here = |id: &&MessageId| state.queue.iter().any(|queued| queued.message.id == **id);
                    state.queue.len() + slot.arriving.iter().filter(|id| !here(id)).count()
                });
                if waiting >= limits::QUEUED_MESSAGES_MAX {
                    let message = format!("session {} has {} messages waiting", self.log.id, limits::QUEUED_MESSAGES_MAX);
                    return Err(Error::new(Kind::Overloaded, message).hint("wait until its turn has ended"));
                }
                let committed = self.log.try_append(queued.clone().waits())?;
                slot.arriving.push(queued.message.id.clone());
                let turn = running.filter(|_| queued.delivery == Delivery::Steer).map(|running| running.id);
                Ok(Placed::Waits { committed, turn })
            }
        }
    }

    /// Waits until the message is in the log; its turn, if it has one already.
    pub async fn arrived(self: &Arc<Self>, placed: Placed, queued: &Queued) -> Result<Option<TurnId>> {
        let placed = match placed {
            Placed::Unowned => {
                self.own().await?;
                self.place(queued)?
            }
            placed => placed,
        };
        let lost = || Error::internal("the log's writer is gone");
        match placed {
            Placed::Turn(mut turn) => turn.opened().await.map(|()| Some(turn.id)),
            Placed::Waits { committed, turn } => {
                let (session, id) = (self.clone(), queued.message.id.clone());
                // On a task of its own: whoever sent it may hang up, and the turn may have ended meanwhile.
                let arrived = self.tasks.spawn(async move {
                    let committed = committed.await;
                    session.slot().arriving.retain(|arriving| *arriving != id);
                    session.settle();
                    committed
                });
                arrived.await.map_err(|_| lost())?.map_err(|_| lost())?.map(|_| turn)
            }
            Placed::Appended(committed) => committed.await.map_err(|_| lost())?.map(|_| None),
            Placed::Unowned => Err(self.is_closing()),
        }
    }

    /// Once nothing runs: appends the messages that waited only for that, and starts a turn for the
    /// message or the prompt that has waited longest. After a turn that was stopped or failed, only
    /// a prompt starts one.
    pub(super) fn settle(self: &Arc<Self>) {
        let mut slot = self.slot();
        if slot.turn.is_some() {
            slot.settling = false;
            return;
        }
        if slot.closing || self.shutdown.is_cancelled() {
            slot.settling = false;
            return slot.prompts.cancel();
        }
        let owned = self.is_owned();
        if owned && self.log.state(|state| state.turn.is_some()) {
            // Its end is on the way, and this is called again behind it.
            return;
        }
        slot.settling = false;
        let goes_on = owned && self.log.state(|state| state.turns.last().is_some_and(|last| last.status == TurnStatus::Completed));
        if owned {
            self.append_silent(&mut slot);
        }
        let next = self.log.state(|state| state.runs_next().filter(|_| goes_on).cloned());
        match next.filter(|next| slot.prompts.all_after(next.seq)) {
            // Behind the turn that ended, and in its place.
            Some(next) => match self.running.enter_behind() {
                Some(place) => {
                    let start = Start { message: next.message, by: next.by, waiting: false, retries: None };
                    self.launch(&mut slot, place, start);
                }
                None => self.start_waiting_prompt(&mut slot, false),
            },
            None => self.start_waiting_prompt(&mut slot, !goes_on),
        }
    }

    /// Appends the messages that waited only for the end of the turn.
    fn append_silent(&self, slot: &mut Slot) {
        let silent: Vec<Message> = self.log.state(|state| state.silent().cloned().collect());
        slot.leaving.retain(|id| silent.iter().any(|message| message.id == *id));
        for message in silent {
            let id = message.id.clone();
            // One that finds no room has its next chance after the next turn.
            if !slot.leaving.contains(&id) && self.log.try_append(message.completed()).is_ok() {
                slot.leaving.push(id);
            }
        }
    }
}

impl Turn {
    /// Puts the messages that are to steer it into the turn; whether there were any. For between two requests to a model.
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
