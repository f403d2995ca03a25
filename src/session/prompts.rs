//! Prompts that wait for the running turn to end. They are kept in memory only, because a prompt
//! ends with the request that sent it.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::open::{Session, TurnQueue};
use super::queue::Message;
use super::turn::{Start, TurnHandle};
use crate::content::Part;
use crate::error::{Error, Kind, Result};
use crate::id::{MessageId, Seq};
use crate::limits;

/// The request that sent a prompt.
#[derive(Clone, Debug)]
pub struct PromptRequest {
    /// The client that sent it.
    pub by: String,
    /// Cancelled when the client no longer wants the prompt to run.
    pub cancel: CancellationToken,
    /// Cancelled once the answer is written: the next prompt's turn starts after it.
    pub answered: CancellationToken,
}

/// A prompt that was accepted.
pub enum Prompted {
    /// Its turn has started.
    Started(TurnHandle),
    Waits(WaitingPrompt),
}

/// The caller's handle to a waiting prompt.
pub struct WaitingPrompt {
    id: MessageId,
    session: Arc<Session>,
    started: oneshot::Receiver<Result<TurnHandle>>,
}

/// The session's entry for a waiting prompt. Dropping it answers `cancelled`.
pub(super) struct Waiter {
    message: Message,
    request: PromptRequest,
    /// The seq of the last event when the prompt was queued. Messages queued later run after it.
    after: Seq,
    started: oneshot::Sender<Result<TurnHandle>>,
}

/// The waiting prompts of one session, oldest first, and the answer that must be written before the
/// next one starts.
#[derive(Default)]
pub(super) struct Prompts {
    waiting: VecDeque<Waiter>,
    answered: Option<CancellationToken>,
}

impl Prompts {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Answers all of them `cancelled`.
    pub(super) fn cancel(&mut self) {
        self.waiting.clear();
    }

    /// Answers all of them with an error.
    pub(super) fn refuse(&mut self, error: &Error) {
        for waiter in self.waiting.drain(..) {
            let _ = waiter.started.send(Err(error.clone()));
        }
    }

    /// Returns whether the message queued at `seq` precedes all waiting prompts.
    pub(super) fn all_after(&self, seq: Seq) -> bool {
        self.waiting.front().is_none_or(|waiter| seq <= waiter.after)
    }

    fn is_answer_pending(&self) -> bool {
        self.answered.as_ref().is_some_and(|answered| !answered.is_cancelled())
    }
}

impl WaitingPrompt {
    /// Waits for the turn to start. Returns `None` if the prompt was cancelled before that.
    pub async fn started(mut self, cancel: &CancellationToken) -> Result<Option<TurnHandle>> {
        tokio::select! {
            biased;
            started = &mut self.started => return started.ok().transpose(),
            () = cancel.cancelled() => self.session.turn_queue().prompts.waiting.retain(|waiter| waiter.message.id != self.id),
        }
        // The turn may have started before the prompt was removed.
        self.started.await.ok().transpose()
    }
}

impl Session {
    /// Starts a turn with the user's message, or queues it until the running turn ends. The turn or
    /// the queue position is claimed when this returns, as in [`Session::start_turn`]. Returns
    /// `session_busy` if too many prompts wait.
    pub fn prompt(self: &Arc<Self>, prompt: Vec<Part>, request: PromptRequest) -> Result<Prompted> {
        let mut turn_queue = self.turn_queue();
        if turn_queue.closing {
            return Err(self.is_closing());
        }
        let message = Message::user(prompt);
        if turn_queue.turn.is_none() && !turn_queue.promoting {
            let permit = self.turn_slots.enter()?;
            let start = Start { message, by: Some(request.by.clone()), waiting: true, retries: None };
            let turn = self.launch(&mut turn_queue, permit, start);
            self.keep_order(&mut turn_queue, request.answered);
            return Ok(Prompted::Started(turn));
        }
        if turn_queue.prompts.waiting.len() >= limits::PROMPTS_WAITING_MAX {
            let message = format!("session {} has {} prompts waiting", self.log.id, limits::PROMPTS_WAITING_MAX);
            return Err(Error::new(Kind::SessionBusy, message).hint("wait for the running turn to end, or cancel it"));
        }
        let (started, receiver) = oneshot::channel();
        let id = message.id.clone();
        turn_queue.prompts.waiting.push_back(Waiter { message, request, after: self.log.head(), started });
        Ok(Prompted::Waits(WaitingPrompt { id, session: self.clone(), started: receiver }))
    }

    /// Starts the turn of the prompt that has waited longest. With `waiting`, the queued messages
    /// before it become part of the turn.
    pub(super) fn start_waiting_prompt(self: &Arc<Self>, turn_queue: &mut TurnQueue, waiting: bool) {
        turn_queue.prompts.waiting.retain(|waiter| !waiter.request.cancel.is_cancelled());
        if turn_queue.prompts.is_empty() {
            return;
        }
        if turn_queue.prompts.is_answer_pending() {
            // The task of `keep_order` calls `promote` again.
            turn_queue.promoting = true;
            return;
        }
        let Some(permit) = self.turn_slots.enter_unlimited() else {
            let error = Error::new(Kind::Overloaded, "nuncio is shutting down");
            return turn_queue.prompts.refuse(&error.hint("retry once it is back"));
        };
        let Some(Waiter { message, request, started, .. }) = turn_queue.prompts.waiting.pop_front() else { return };
        let start = Start { message, by: Some(request.by), waiting, retries: None };
        let turn = self.launch(turn_queue, permit, start);
        self.keep_order(turn_queue, request.answered);
        if let Err(Ok(turn)) = started.send(Ok(turn)) {
            // The request was dropped.
            turn.cancel();
        }
    }

    /// Starts the next prompt once the answer to this one is written.
    fn keep_order(self: &Arc<Self>, turn_queue: &mut TurnQueue, answered: CancellationToken) {
        turn_queue.prompts.answered = Some(answered.clone());
        let session = self.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = answered.cancelled() => {}
                () = session.shutdown.cancelled() => {}
            }
            session.promote();
        });
    }
}
