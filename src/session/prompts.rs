//! Prompts to a session: each starts a turn, or waits for the running turn to end.

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::capacity::shutting_down;
use super::lock;
use super::message::IncomingMessage;
use super::open::Session;
use super::run::TurnInput;
use super::turn::TurnHandle;
use super::turn_queue::{QueuedPrompt, TurnQueue};
use crate::error::Result;
use crate::id::MessageId;
use crate::limits;

pub(crate) use super::turn_queue::PromptRequest;

/// A prompt that was accepted.
pub(crate) enum Prompted {
    /// The prompt's turn has started.
    Started(TurnHandle),
    /// The prompt waits for the running turn to end.
    Waits(WaitingPrompt),
}

/// The caller's handle to a waiting prompt.
pub(crate) struct WaitingPrompt {
    id: MessageId,
    session: Session,
    started: oneshot::Receiver<Result<TurnHandle>>,
}

impl WaitingPrompt {
    /// Waits for the turn to start. Returns `None` if the prompt was cancelled before that.
    pub(crate) async fn started(mut self, cancel: &CancellationToken) -> Result<Option<TurnHandle>> {
        tokio::select! {
            biased;
            started = &mut self.started => return started.ok().transpose(),
            () = cancel.cancelled() => self.session.turn_queue().remove_prompt(&self.id),
        }
        // The turn may have started before the prompt was removed.
        self.started.await.ok().transpose()
    }
}

impl Session {
    /// Removes the waiting prompts of a client, which has disconnected.
    pub(crate) fn remove_prompts_of(&self, client: &str) {
        self.turn_queue().remove_prompts_of(client);
    }

    /// Starts a turn with the user's message, or queues it until the running turn ends. The turn or
    /// the queue position is claimed when this returns, as in [`Session::start_turn`]. Returns
    /// `session_busy` if too many prompts wait.
    pub(crate) fn prompt(&self, message: IncomingMessage, request: PromptRequest) -> Result<Prompted> {
        let mut turn_queue = self.turn_queue();
        if turn_queue.is_closing() {
            return Err(self.closing());
        }
        self.check_owned()?;
        if request.forwarded && turn_queue.is_idle() && self.hands_over() {
            return Err(lock::busy(&self.log.id, None));
        }
        if turn_queue.is_idle() && turn_queue.may_start() {
            let permit = self.turn_slots.enter()?;
            let input = TurnInput {
                message,
                by: Some(request.by.clone()),
                waiting: true,
                retries: None,
                budget: request.budget,
                adopted: false,
            };
            let turn = self.launch(&mut turn_queue, permit, input);
            self.answer_before_next(&mut turn_queue, turn.clone(), request.answered);
            return Ok(Prompted::Started(turn));
        }
        let (started, receiver) = oneshot::channel();
        let id = message.id.clone();
        let (after, after_messages) = (self.log.head(), turn_queue.being_enqueued());
        turn_queue.push_prompt(&self.log.id, QueuedPrompt { message, request, after, after_messages, started })?;
        Ok(Prompted::Waits(WaitingPrompt { id, session: self.clone(), started: receiver }))
    }

    /// Starts the turn of the prompt that has waited longest. If `waiting` is true, the queued
    /// messages become part of the turn, before the prompt.
    pub(super) fn start_waiting_prompt(&self, turn_queue: &mut TurnQueue, waiting: bool) {
        if self.hands_over() {
            turn_queue.refuse_forwarded_prompts(&lock::busy(&self.log.id, None));
        }
        if !turn_queue.has_prompt() || !turn_queue.may_start() {
            return;
        }
        let Some(permit) = self.turn_slots.enter_unlimited() else { return turn_queue.refuse_prompts(&shutting_down()) };
        let Some(QueuedPrompt { message, request, started, .. }) = turn_queue.pop_prompt() else { return };
        let input = TurnInput { message, by: Some(request.by), waiting, retries: None, budget: request.budget, adopted: false };
        let turn = self.launch(turn_queue, permit, input);
        self.answer_before_next(turn_queue, turn.clone(), request.answered);
        if let Err(Ok(turn)) = started.send(Ok(turn)) {
            // The request that sent the prompt was dropped: the turn is no longer wanted.
            turn.cancel();
        }
    }

    /// Promotes waiting work once `answered` is cancelled, which means that the answer to this
    /// prompt is written.
    fn answer_before_next(&self, turn_queue: &mut TurnQueue, mut turn: TurnHandle, answered: CancellationToken) {
        turn_queue.answer_first(answered.clone());
        let session = self.clone();
        self.tasks.spawn(async move {
            let overdue = async {
                turn.end().await;
                tokio::time::sleep(limits::ANSWER_WRITTEN).await;
            };
            tokio::select! {
                () = answered.cancelled() => {}
                () = session.shutdown.cancelled() => {}
                // The client does not read, or the process that forwarded the prompt hangs.
                () = overdue => {}
            }
            answered.cancel();
            session.promote();
        });
    }
}
