//! Queued messages. A message waits for the next model request of the running turn, for the end of
//! the running turn or, after a stopped turn, for the next turn. Each queued message is recorded as
//! an event, so that a restart does not lose it.

use tokio::sync::oneshot;

use super::lock;
use super::message::{QueueChange, QueuedMessage};
use super::open::Session;
use super::queued_messages::LeftQueue;
use super::run::TurnInput;
use super::turn::TurnHandle;
use super::turn_queue::TurnQueue;
use super::turns::TurnStatus;
use crate::content::Role;
use crate::error::{Error, Kind, Result};
use crate::event::Delivery;
use crate::id::{MessageId, Seq, TurnId};
use crate::limits;

/// The destination of a message.
pub(crate) enum Placement {
    /// A turn of its own, which is already claimed.
    Turn(TurnHandle),
    /// The queue, for the running turn or the turn after it.
    Waits { committed: oneshot::Receiver<Result<Seq>>, turn: Option<TurnId> },
    /// The conversation, without a turn.
    Appended(oneshot::Receiver<Result<Seq>>),
}

impl Session {
    /// Chooses where the message goes, without waiting, so that calls are served in order. The
    /// caller passes the result to [`Session::arrived`].
    pub(crate) fn place(&self, queued: &QueuedMessage) -> Result<Placement> {
        let mut turn_queue = self.turn_queue();
        if turn_queue.is_closing() {
            return Err(self.closing());
        }
        self.check_owned()?;
        if queued.message.role == Role::Custom {
            return Ok(Placement::Appended(self.log.try_append(queued.message.clone().completed())?));
        }
        // No turn starts while the turn queue is locked, and the last event of the previous turn is
        // already in the log's queue. So an event appended here lies between the two turns.
        if turn_queue.is_idle() && queued.auto_run {
            let (message, by) = (queued.message.clone(), queued.by.clone());
            let permit = self.turn_slots.enter()?;
            let input = TurnInput { message, by, waiting: true, retries: None, budget: None, adopted: false };
            return Ok(Placement::Turn(self.launch(&mut turn_queue, permit, input)));
        }
        if turn_queue.is_idle() {
            return Ok(Placement::Appended(self.log.try_append(queued.message.clone().completed())?));
        }
        if self.log.state(|state| turn_queue.messages_waiting(&state.queue)) >= limits::QUEUED_MESSAGES_MAX {
            let message = format!("session {} has {} messages waiting", self.log.id, limits::QUEUED_MESSAGES_MAX);
            return Err(Error::new(Kind::Overloaded, message).hint("wait for the running turn to end"));
        }
        let committed = self.log.try_append(queued.clone().queued())?;
        turn_queue.enqueuing(queued.message.id.clone());
        let steered = turn_queue.turn().filter(|_| queued.delivery == Delivery::Steer);
        Ok(Placement::Waits { committed, turn: steered.map(|running| running.id.clone()) })
    }

    /// Waits until the message is in the log. Returns its turn, if it already has one.
    pub(crate) async fn arrived(&self, placement: Placement, queued: &QueuedMessage) -> Result<Option<TurnId>> {
        let lost = || Error::internal("the log writer has ended");
        match placement {
            Placement::Turn(mut turn) => turn.opened().await.map(|()| Some(turn.id)),
            Placement::Waits { committed, turn } => {
                let (session, id) = (self.clone(), queued.message.id.clone());
                // A separate task, because the sender may disconnect, and the turn may already have
                // ended.
                let arrived = self.tasks.spawn(async move {
                    let committed = committed.await;
                    session.turn_queue().enqueued(&id);
                    session.promote();
                    committed
                });
                arrived.await.map_err(|_| lost())?.map_err(|_| lost())?.map(|_| turn)
            }
            Placement::Appended(committed) => committed.await.map_err(|_| lost())?.map(|_| None),
        }
    }

    /// Promotes waiting work if no turn runs: appends the messages that do not start a turn, then
    /// starts a turn for the message or the prompt that has waited longest. After a stopped or
    /// failed turn, only a prompt starts a turn.
    pub(super) fn promote(&self) {
        let mut turn_queue = self.turn_queue();
        if turn_queue.turn().is_some() {
            return turn_queue.promoted();
        }
        if turn_queue.is_closing() || self.shutdown.is_cancelled() {
            turn_queue.promoted();
            // The processes that forwarded prompts run them after this process has ended.
            turn_queue.refuse_forwarded_prompts(&lock::busy(&self.log.id, None));
            return turn_queue.cancel_prompts();
        }
        let owned = self.is_owned();
        if owned && self.log.state(|state| state.turn.is_some()) {
            // The end of the turn is not committed yet; this function is called again after the
            // commit.
            return;
        }
        if turn_queue.awaits_message() {
            return;
        }
        turn_queue.promoted();
        let completed = || self.log.state(|state| state.turns.last().is_some_and(|last| last.status == TurnStatus::Completed));
        let continues = owned && !turn_queue.is_held() && completed();
        if owned {
            self.append_silent(&mut turn_queue);
        }
        let next = self.log.state(|state| turn_queue.waiting(&state.queue)).into_iter().find(|queued| queued.auto_run && continues);
        match next.filter(|next| turn_queue.precedes_prompts(next)) {
            // The task that `answer_before_next` started calls this function again.
            Some(_) if !turn_queue.may_start() => {}
            // The new turn replaces the ended one, so the limit on running turns does not apply.
            Some(next) => match self.turn_slots.enter_unlimited() {
                Some(permit) => {
                    turn_queue.dequeuing(next.message.id.clone());
                    let input = TurnInput {
                        message: next.message,
                        by: next.by,
                        waiting: false,
                        retries: None,
                        budget: None,
                        adopted: false,
                    };
                    self.launch(&mut turn_queue, permit, input);
                }
                None => self.start_waiting_prompt(&mut turn_queue, false),
            },
            None => self.start_waiting_prompt(&mut turn_queue, !continues),
        }
    }

    /// Appends the messages that do not start a turn.
    fn append_silent(&self, turn_queue: &mut TurnQueue) {
        let waiting = self.log.state(|state| turn_queue.waiting(&state.queue));
        for queued in waiting.into_iter().filter(|queued| !queued.auto_run) {
            let id = queued.message.id.clone();
            // If the log's queue is full, the message is appended after the next turn.
            if self.log.try_append(queued.message.completed()).is_ok() {
                turn_queue.dequeuing(id);
            }
        }
    }

    /// Takes the waiting messages for which `takes` is true, to deliver them.
    pub(super) fn take_queued(&self, takes: impl Fn(&QueuedMessage) -> bool) -> Vec<QueuedMessage> {
        let mut turn_queue = self.turn_queue();
        self.log.state(|state| turn_queue.take(&state.queue, takes))
    }

    /// Edits or removes a queued message. Fails if the message is not queued, or is being
    /// delivered. Returns the seq of the event that records the change.
    pub(crate) async fn change_queued(&self, id: MessageId, change: QueueChange, by: &str) -> Result<Seq> {
        let lost = || Error::internal("the log writer has ended");
        let committed = {
            let mut turn_queue = self.turn_queue();
            if turn_queue.is_closing() {
                return Err(self.closing());
            }
            self.check_owned()?;
            let waiting = self.log.state(|state| turn_queue.waiting(&state.queue));
            if !waiting.iter().any(|queued| queued.message.id == id) {
                return Err(self.not_queued(&id));
            }
            let committed = self.log.try_append(change.clone().event(id.clone(), by))?;
            turn_queue.changing(id.clone(), change);
            committed
        };
        let session = self.clone();
        // A separate task, because the client may disconnect.
        let changed = self.tasks.spawn(async move {
            let committed = committed.await;
            session.turn_queue().changed(&id);
            committed
        });
        changed.await.map_err(|_| lost())?.map_err(|_| lost())?
    }

    fn not_queued(&self, id: &MessageId) -> Error {
        let (queued, left) =
            self.log.state(|state| (state.queue.iter().any(|queued| queued.message.id == *id), state.queue.left(id)));
        Error::not_found(match left {
            Some(LeftQueue::Delivered) => format!("message {id} was already delivered"),
            Some(LeftQueue::Removed) => format!("message {id} was already removed"),
            None if queued => format!("message {id} is being delivered or removed"),
            None => format!("no queued message {id}"),
        })
    }
}
