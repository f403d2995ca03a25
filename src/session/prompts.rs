//! Prompts that wait for their turn behind a running one. They are kept in memory: a prompt ends
//! with the request that sent it.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::open::{Session, Slot};
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

/// The caller's end of a prompt that waits.
pub struct WaitingPrompt {
    id: MessageId,
    session: Arc<Session>,
    started: oneshot::Receiver<Result<TurnHandle>>,
}

/// The session's end of a prompt that waits. Dropping it answers `cancelled`.
pub(super) struct Waiter {
    message: Message,
    request: PromptRequest,
    /// Seq of the last event when it began to wait: messages queued later come after it.
    after: Seq,
    started: oneshot::Sender<Result<TurnHandle>>,
}

/// The prompts of one session that wait, oldest first, and the answer that the next of them must
/// not overtake.
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

    /// Whether the message that was queued at `seq` came before all of them.
    pub(super) fn all_after(&self, seq: Seq) -> bool {
        self.waiting.front().is_none_or(|waiter| seq <= waiter.after)
    }

    fn is_answer_pending(&self) -> bool {
        self.answered.as_ref().is_some_and(|answered| !answered.is_cancelled())
    }
}

impl WaitingPrompt {
    /// Waits for the turn to start. None: the prompt was cancelled before.
    pub async fn started(mut self, cancel: &CancellationToken) -> Result<Option<TurnHandle>> {
        tokio::select! {
            biased;
            started = &mut self.started => return started.ok().transpose(),
            () = cancel.cancelled() => self.session.slot().prompts.waiting.retain(|waiter| waiter.message.id != self.id),
        }
        // Its turn may have started just before.
        self.started.await.ok().transpose()
    }
}

impl Session {
    /// Starts a turn with the user's message, or lets it wait for the end of the running one. Its
    /// place is claimed before this returns, as with [`Session::start_turn`]. `session_busy` when
    /// too many prompts wait.
    pub fn prompt(self: &Arc<Self>, prompt: Vec<Part>, request: PromptRequest) -> Result<Prompted> {
        let mut slot = self.slot();
        if slot.closing {
            return Err(self.is_closing());
        }
        let message = Message::user(prompt);
        if slot.turn.is_none() && !slot.settling {
            let place = self.running.enter()?;
            let start = Start { message, by: Some(request.by.clone()), waiting: true, retries: None };
            let turn = self.launch(&mut slot, place, start);
            self.keep_order(&mut slot, request.answered);
            return Ok(Prompted::Started(turn));
        }
        if slot.prompts.waiting.len() >= limits::PROMPTS_WAITING_MAX {
            let message = format!("session {} has {} prompts waiting", self.log.id, limits::PROMPTS_WAITING_MAX);
            return Err(Error::new(Kind::SessionBusy, message).hint("wait for its turn to end, or cancel it"));
        }
        let (started, receiver) = oneshot::channel();
        let id = message.id.clone();
        slot.prompts.waiting.push_back(Waiter { message, request, after: self.log.head(), started });
        Ok(Prompted::Waits(WaitingPrompt { id, session: self.clone(), started: receiver }))
    }

    /// Starts the turn of the prompt that has waited longest. `waiting`: with the queued messages
    /// before it.
    pub(super) fn start_waiting_prompt(self: &Arc<Self>, slot: &mut Slot, waiting: bool) {
        slot.prompts.waiting.retain(|waiter| !waiter.request.cancel.is_cancelled());
        if slot.prompts.is_empty() {
            return;
        }
        if slot.prompts.is_answer_pending() {
            // The task of `keep_order` calls `settle` again.
            slot.settling = true;
            return;
        }
        let Some(place) = self.running.enter_behind() else {
            let error = Error::new(Kind::Overloaded, "nuncio is shutting down");
            return slot.prompts.refuse(&error.hint("retry once it is back"));
        };
        let Some(Waiter { message, request, started, .. }) = slot.prompts.waiting.pop_front() else { return };
        let start = Start { message, by: Some(request.by), waiting, retries: None };
        let turn = self.launch(slot, place, start);
        self.keep_order(slot, request.answered);
        if let Err(Ok(turn)) = started.send(Ok(turn)) {
            // The request is gone.
            turn.cancel();
        }
    }

    /// Lets the next prompt start once the answer to this one is written.
    fn keep_order(self: &Arc<Self>, slot: &mut Slot, answered: CancellationToken) {
        slot.prompts.answered = Some(answered.clone());
        let session = self.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = answered.cancelled() => {}
                () = session.shutdown.cancelled() => {}
            }
            session.settle();
        });
    }
}
