//! The running turn of a session and the work that waits for its end.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::message::{IncomingMessage, QueueChange, QueuedMessage};
use super::turn::TurnHandle;
use crate::content::BudgetLimits;
use crate::error::{Error, Kind, Result};
use crate::id::{MessageId, Seq, SessionId, TurnId};
use crate::limits;

/// The running turn of a session and the work that waits for its end.
///
/// Invariants, under the mutex that guards the value:
///
/// - At most one turn is claimed. [`TurnQueue::claim`] precedes the start of its task;
///   [`TurnQueue::end`] releases the claim at the moment when the turn's last event enters the
///   log's queue. So the events of the next turn follow that event, and a client that sees the
///   event can start the next turn.
/// - While `promoting` is true, no turn is claimed, and only `Session::promote` claims one: for the
///   message or the prompt that has waited longest. New messages and prompts wait.
/// - Once `closing` is true, no turn is claimed any more.
/// - At most [`limits::PROMPTS_WAITING_MAX`] prompts and [`limits::QUEUED_MESSAGES_MAX`] messages
///   wait. Dropping a waiting prompt answers it with `cancelled`.
/// - The waiting messages are the queue in the session's state, plus `enqueuing`, with `changes`,
///   minus `dequeuing`, because the state lags behind the log's queue.
/// - A message that is delivered is in `dequeuing` before its `message.completed` event is in the
///   log's queue. So each change of a queued message precedes its delivery, and is part of it.
#[derive(Default)]
pub(super) struct TurnQueue {
    turn: Option<TurnHandle>,
    /// The session is being closed or deleted.
    closing: bool,
    /// A turn has ended and a queued message or prompt is next: a call of `promote` is due.
    promoting: bool,
    /// Prompts that wait for the running turn to end, oldest first. They are kept in memory only,
    /// because a prompt is dropped when the request that sent it ends.
    prompts: VecDeque<QueuedPrompt>,
    /// The work was cancelled while a promotion was due: no queued message starts a turn.
    held: bool,
    /// Notified when the queue gets a turn or becomes idle.
    settled: Arc<Notify>,
    /// Cancelled once the answer to the last started prompt is written. The next turn opens after
    /// that.
    answered: Option<CancellationToken>,
    /// Messages whose `message.queued` event is in the log's queue and may not be in the state yet.
    enqueuing: Vec<MessageId>,
    /// Messages that are being delivered, while the state still lists them as queued.
    dequeuing: Vec<MessageId>,
    /// Changes of queued messages whose events are in the log's queue and may not be in the state
    /// yet, oldest first.
    changes: Vec<(MessageId, QueueChange)>,
}

/// The request that sent a prompt.
#[derive(Clone, Debug)]
pub(crate) struct PromptRequest {
    /// The client that sent the request.
    pub by: String,
    /// Another process forwarded the request.
    pub forwarded: bool,
    /// Limits of the turn.
    pub budget: Option<BudgetLimits>,
    /// Cancelled when the client no longer wants the prompt to run.
    pub cancel: CancellationToken,
    /// Cancelled once the answer to the request is written. The next turn starts after that.
    pub answered: CancellationToken,
}

/// A waiting prompt. Dropping it answers the request with `cancelled`.
pub(super) struct QueuedPrompt {
    pub message: IncomingMessage,
    pub request: PromptRequest,
    /// The seq of the last event when the prompt was queued. Messages queued later run after it.
    pub after: Seq,
    /// Messages queued before the prompt whose `message.queued` event was not committed yet.
    pub after_messages: Vec<MessageId>,
    pub started: oneshot::Sender<Result<TurnHandle>>,
}

impl TurnQueue {
    /// Returns the claimed turn, if any.
    pub(crate) fn turn(&self) -> Option<&TurnHandle> {
        self.turn.as_ref()
    }

    /// Returns whether a turn may be claimed: none runs and none is about to start.
    pub(crate) fn is_idle(&self) -> bool {
        self.turn.is_none() && !self.promoting
    }

    /// Returns whether the session is being closed or deleted.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Claims the session for a turn.
    pub(crate) fn claim(&mut self, turn: TurnHandle) {
        self.turn = Some(turn);
        self.held = false;
        self.settled.notify_waiters();
    }

    /// Returns the notifier that reports when a turn is claimed, a promotion ends or the session
    /// closes.
    pub(crate) fn settled(&self) -> Arc<Notify> {
        self.settled.clone()
    }

    /// Releases the claim of a turn. No effect if the turn has no claim.
    pub(crate) fn release(&mut self, id: &TurnId) {
        self.turn.take_if(|running| running.id == *id);
    }

    /// Releases the claim of a turn that ends. A queued message can run next only after a completed
    /// turn, a waiting prompt after any turn. `runs_next` tells whether the session's state lists a
    /// message that can run next.
    pub(crate) fn end(&mut self, id: &TurnId, completed: bool, runs_next: bool) {
        self.release(id);
        self.promoting = completed && (runs_next || !self.enqueuing.is_empty()) || !self.prompts.is_empty();
    }

    /// Releases the claim of a turn whose end is not in the log, and answers the waiting prompts
    /// with the error.
    pub(crate) fn fail(&mut self, id: &TurnId, error: &Error) {
        self.release(id);
        self.promoted();
        // The messages of the turn were not delivered.
        self.dequeuing.clear();
        self.refuse_prompts(error);
    }

    /// Ends the promotion: `promote` has chosen what runs next, or nothing runs next.
    pub(crate) fn promoted(&mut self) {
        self.promoting = false;
        self.settled.notify_waiters();
    }

    /// Cancels the running turn and the waiting prompts. If the next turn is about to start, the
    /// queued messages stay in the queue, as after a cancelled turn.
    pub(crate) fn cancel(&mut self) {
        self.cancel_prompts();
        match &self.turn {
            Some(turn) => turn.cancel(),
            None => self.held |= self.promoting,
        }
    }

    /// Returns whether the work was cancelled after the end of the last turn.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// Refuses new turns, cancels the waiting prompts and returns the running turn.
    pub(crate) fn close(&mut self) -> Option<TurnHandle> {
        self.closing = true;
        self.settled.notify_waiters();
        self.cancel_prompts();
        self.turn.clone()
    }

    /// Adds a prompt, or fails with `session_busy` if too many wait.
    pub(crate) fn push_prompt(&mut self, session: &SessionId, prompt: QueuedPrompt) -> Result<()> {
        if self.prompts.len() >= limits::PROMPTS_WAITING_MAX {
            let message = format!("session {session} has {} prompts waiting", limits::PROMPTS_WAITING_MAX);
            return Err(Error::new(Kind::SessionBusy, message).hint("wait for the running turn to end, or cancel it"));
        }
        self.prompts.push_back(prompt);
        Ok(())
    }

    /// Removes a prompt: it is answered `cancelled`.
    pub(crate) fn remove_prompt(&mut self, id: &MessageId) {
        self.prompts.retain(|prompt| prompt.message.id != *id);
    }

    /// Removes the waiting prompts of a client.
    pub(crate) fn remove_prompts_of(&mut self, client: &str) {
        self.prompts.retain(|prompt| prompt.request.by != client);
    }

    /// Returns whether a prompt waits that its client has not cancelled.
    pub(crate) fn has_prompt(&mut self) -> bool {
        self.prompts.retain(|prompt| !prompt.request.cancel.is_cancelled());
        !self.prompts.is_empty()
    }

    /// Returns whether a turn can start now. If it must wait for the answer to the previous prompt,
    /// the promotion stays due.
    pub(crate) fn may_start(&mut self) -> bool {
        let answered = self.answered.as_ref().is_none_or(CancellationToken::is_cancelled);
        self.promoting |= !answered;
        answered
    }

    /// Removes the prompt that has waited longest.
    pub(crate) fn pop_prompt(&mut self) -> Option<QueuedPrompt> {
        self.prompts.pop_front()
    }

    /// Sets the token that is cancelled once the answer to the current prompt is written.
    pub(crate) fn answer_first(&mut self, answered: CancellationToken) {
        self.answered = Some(answered);
    }

    /// Returns the token that is cancelled once the answer to the last started prompt is written.
    pub(crate) fn answered(&self) -> Option<CancellationToken> {
        self.answered.clone()
    }

    /// Answers all waiting prompts `cancelled`.
    pub(crate) fn cancel_prompts(&mut self) {
        self.prompts.clear();
    }

    /// Answers the waiting prompts that other processes forwarded with an error.
    pub(crate) fn refuse_forwarded_prompts(&mut self, error: &Error) {
        let (forwarded, others) = self.prompts.drain(..).partition(|prompt| prompt.request.forwarded);
        self.prompts = others;
        let forwarded: VecDeque<QueuedPrompt> = forwarded;
        for prompt in forwarded {
            let _ = prompt.started.send(Err(error.clone()));
        }
    }

    /// Answers all waiting prompts with an error.
    pub(crate) fn refuse_prompts(&mut self, error: &Error) {
        for prompt in self.prompts.drain(..) {
            let _ = prompt.started.send(Err(error.clone()));
        }
    }

    /// Returns the IDs of the messages that are being enqueued.
    pub(crate) fn being_enqueued(&self) -> Vec<MessageId> {
        self.enqueuing.clone()
    }

    /// Returns whether the queued message precedes all waiting prompts.
    pub(crate) fn precedes_prompts(&self, queued: &QueuedMessage) -> bool {
        let follows = |prompt: &QueuedPrompt| queued.seq <= prompt.after || prompt.after_messages.contains(&queued.message.id);
        self.prompts.front().is_none_or(follows)
    }

    /// Returns whether the first prompt must wait for a message that is still being enqueued. If
    /// so, the promotion stays due: `promote` is called again after [`TurnQueue::enqueued`].
    pub(crate) fn awaits_message(&mut self) -> bool {
        let Some(first) = self.prompts.front() else { return false };
        let awaits = first.after_messages.iter().any(|earlier| self.enqueuing.contains(earlier));
        self.promoting |= awaits;
        awaits
    }

    /// Returns the number of waiting messages, including messages that are still being enqueued;
    /// `queue` is the queue of the session's state.
    pub(crate) fn messages_waiting(&self, queue: &[QueuedMessage]) -> usize {
        let in_state = |id: &&MessageId| queue.iter().any(|queued| queued.message.id == **id);
        queue.len() + self.enqueuing.iter().filter(|id| !in_state(id)).count()
    }

    /// Records that a message's `message.queued` event is in the log's queue.
    pub(crate) fn enqueuing(&mut self, id: MessageId) {
        self.enqueuing.push(id);
    }

    /// Records that a message's `message.queued` event is committed or lost.
    pub(crate) fn enqueued(&mut self, id: &MessageId) {
        self.enqueuing.retain(|enqueuing| enqueuing != id);
    }

    /// Returns the messages that wait for their delivery; `queue` is the queue of the session's
    /// state. Messages that are still being enqueued are not included.
    pub(crate) fn waiting(&mut self, queue: &[QueuedMessage]) -> Vec<QueuedMessage> {
        self.dequeuing.retain(|id| queue.iter().any(|queued| queued.message.id == *id));
        let mut waiting = queue.to_vec();
        for (id, change) in &self.changes {
            change.clone().apply(id, &mut waiting);
        }
        waiting.retain(|queued| !self.dequeuing.contains(&queued.message.id));
        waiting
    }

    /// Takes the waiting messages for which `takes` is true, to deliver them.
    pub(crate) fn take(&mut self, queue: &[QueuedMessage], takes: impl Fn(&QueuedMessage) -> bool) -> Vec<QueuedMessage> {
        let mut taken = self.waiting(queue);
        taken.retain(takes);
        self.dequeuing.extend(taken.iter().map(|queued| queued.message.id.clone()));
        taken
    }

    /// Records that a waiting message is being delivered.
    pub(crate) fn dequeuing(&mut self, id: MessageId) {
        self.dequeuing.push(id);
    }

    /// Returns a message that was taken to the waiting messages.
    pub(crate) fn not_delivered(&mut self, id: &MessageId) {
        self.dequeuing.retain(|dequeuing| dequeuing != id);
    }

    /// Records that the event of a change is in the log's queue.
    pub(crate) fn changing(&mut self, id: MessageId, change: QueueChange) {
        self.changes.push((id, change));
    }

    /// Records that the event of the oldest change of a message is committed or lost.
    pub(crate) fn changed(&mut self, id: &MessageId) {
        if let Some(oldest) = self.changes.iter().position(|(changed, _)| changed == id) {
            self.changes.remove(oldest);
        }
    }
}
