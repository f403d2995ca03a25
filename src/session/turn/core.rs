//! Decides what a session runs and what waits for it. Pure: no decision waits, reads a clock or
//! writes to the log.

use tokio_util::sync::CancellationToken;

use super::TurnHandle;
use super::new_turn::{MessageDestination, NewTurn, Next, PromptRequest, QueuedPrompt};
use crate::content::Role;
use crate::error::{Error, Kind, Result};
use crate::event::{Actor, Delivery};
use crate::id::{MessageId, SessionId, TurnId};
use crate::limits;
use crate::session::message::{IncomingMessage, QueueChange, WaitingMessage};

/// The work of a session: the running turn, and the messages and prompts that wait for it.
///
/// The owner of the session changes the value and sends the events of the change to the log's queue
/// while it holds the value's mutex. Therefore:
///
/// - The order of the decisions is the order of their events in the log.
/// - The value is ahead of the committed state by the events in the log's queue. Readers of the
///   session see committed state only.
/// - After a lost append, the value differs from the log. It is rebuilt from the committed state
///   ([`SessionCore::rebuild`]) before the next event is accepted, while no turn runs.
///
/// At most one turn runs. The next turn starts after the end of the previous turn is committed and
/// the answer to its prompt is written.
pub struct SessionCore {
    session: SessionId,
    phase: Phase,
    /// Messages and prompts, in the order of their arrival. A waiting prompt that is dropped is
    /// answered with `cancelled`.
    waiting: Vec<Arrival<QueueEntry>>,
    /// Messages that a turn delivers; `None`: the turn that starts next.
    taken: Vec<(Option<TurnId>, Arrival<WaitingMessage>)>,
    /// The number of the last arrival. Messages of earlier owners have the number 1.
    arrivals: u64,
    /// Messages that arrived up to this number start no turn, because the last turn did not
    /// complete, the client cancelled the work after it, or the session was taken. They are
    /// delivered in the next turn.
    held: u64,
    closing: bool,
    /// The answer to the prompt of the last turn.
    answer: Option<Answer>,
}

/// The state of the session's work.
enum Phase {
    Idle,
    Running(TurnHandle),
    /// The turn's last event is in the log's queue and not committed. A client that sees the event
    /// can start a turn at once.
    Ending(TurnId),
}

/// Something that arrived, with its number.
struct Arrival<T> {
    number: u64,
    what: T,
}

enum QueueEntry {
    Message(WaitingMessage),
    Prompt(QueuedPrompt),
}

impl QueueEntry {
    fn is_message(&self, id: &MessageId) -> bool {
        matches!(self, QueueEntry::Message(queued) if queued.has_id(id))
    }
}

/// The answer to a prompt. It is written once the token is cancelled.
struct Answer {
    written: CancellationToken,
    /// True if a task waits for the token, and then calls `start_next`.
    awaited: bool,
}

impl SessionCore {
    /// Creates the core of a session without work.
    pub fn new(session: SessionId) -> SessionCore {
        let (phase, waiting, taken) = (Phase::Idle, Vec::new(), Vec::new());
        SessionCore { session, phase, waiting, taken, arrivals: 1, held: 1, closing: false, answer: None }
    }

    /// Returns the running turn.
    pub fn running(&self) -> Option<&TurnHandle> {
        match &self.phase {
            Phase::Running(turn) => Some(turn),
            Phase::Idle | Phase::Ending(_) => None,
        }
    }

    /// Returns whether no turn runs, and the events of the last turn are committed.
    pub fn is_between_turns(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// Returns whether no turn runs and none is about to start.
    pub fn is_idle(&self) -> bool {
        self.running().is_none() && self.first_runnable().is_none()
    }

    /// Returns whether the session is being closed or deleted.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Returns an error if the session is being closed or deleted.
    pub fn check_open(&self) -> Result<()> {
        if !self.closing {
            return Ok(());
        }
        let message = format!("session {} is being closed", self.session);
        Err(Error::new(Kind::SessionBusy, message).hint("retry to reopen the session"))
    }

    /// Returns an error if a turn runs or is about to start.
    pub fn check_idle(&self) -> Result<()> {
        if self.is_idle() {
            return Ok(());
        }
        let what = self.running().map_or("queued messages".into(), |running| format!("turn {}", running.id));
        let message = format!("session {} is working on {what}", self.session);
        Err(Error::new(Kind::SessionBusy, message).hint("wait for it to end, or cancel it"))
    }

    fn arrive(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// Decides what becomes of a message that arrives now.
    pub fn destination(&self, queued: &WaitingMessage) -> Result<MessageDestination> {
        if queued.message.role == Role::Custom || !queued.auto_run && self.running().is_none() {
            return Ok(MessageDestination::Conversation);
        }
        if self.is_idle() {
            return Ok(MessageDestination::Turn);
        }
        if self.messages().count() >= limits::QUEUED_MESSAGES_MAX {
            let message = format!("session {} has {} messages waiting", self.session, limits::QUEUED_MESSAGES_MAX);
            return Err(Error::new(Kind::Overloaded, message).hint("wait for the running turn to end"));
        }
        let steered = self.running().filter(|_| queued.delivery == Delivery::Steer);
        Ok(MessageDestination::Queue(steered.map(|turn| turn.id.clone())))
    }

    /// Adds a message to the waiting messages.
    pub fn queue_message(&mut self, queued: WaitingMessage) {
        let number = self.arrive();
        self.waiting.push(Arrival { number, what: QueueEntry::Message(queued) });
    }

    /// Creates a turn for a message that arrives now. Queued messages precede it.
    pub fn new_turn(&mut self, message: IncomingMessage, by: Option<Actor>) -> NewTurn {
        let after = self.arrive();
        NewTurn::new(message, by, after)
    }

    /// Adds a prompt to the waiting prompts. Returns `session_busy` if too many wait.
    pub fn queue_prompt(&mut self, prompt: QueuedPrompt) -> Result<()> {
        if self.prompts().count() >= limits::PROMPTS_WAITING_MAX {
            let message = format!("session {} has {} prompts waiting", self.session, limits::PROMPTS_WAITING_MAX);
            return Err(Error::new(Kind::SessionBusy, message).hint("wait for the running turn to end, or cancel it"));
        }
        let number = self.arrive();
        self.waiting.push(Arrival { number, what: QueueEntry::Prompt(prompt) });
        Ok(())
    }

    /// Returns whether a prompt can start a turn at once: nothing runs, nothing waits for its turn,
    /// and the answer to the last prompt is written.
    pub fn accepts_prompt(&self) -> bool {
        self.is_idle() && self.unwritten_answer().is_none()
    }

    /// Starts a turn. The caller ends it with [`SessionCore::end`] and
    /// [`SessionCore::end_committed`], or with [`SessionCore::fail`]. `answered` is cancelled once
    /// the answer to the turn's prompt is written.
    pub fn claim(&mut self, turn: TurnHandle, answered: Option<CancellationToken>) {
        for (taken_by, _) in &mut self.taken {
            taken_by.get_or_insert_with(|| turn.id.clone());
        }
        self.phase = Phase::Running(turn);
        if let Some(written) = answered {
            self.answer = Some(Answer { written, awaited: false });
        }
    }

    /// Returns the token of the answer to the last prompt, if it is not written.
    pub fn unwritten_answer(&self) -> Option<CancellationToken> {
        self.answer.as_ref().map(|answer| answer.written.clone()).filter(|written| !written.is_cancelled())
    }

    /// Records that the turn's last event is in the log's queue.
    pub fn end(&mut self, turn: &TurnId, completed: bool) {
        self.phase = Phase::Ending(turn.clone());
        self.held = if completed { 0 } else { self.arrivals };
    }

    /// Records that the turn's last event is committed. `queue` is the committed queue: messages in
    /// it that the turn has taken were not delivered, and wait again.
    pub fn end_committed(&mut self, turn: &TurnId, queue: &[WaitingMessage]) {
        self.release(turn);
        for (_, taken) in self.taken.extract_if(.., |(taken_by, _)| taken_by.as_ref() == Some(turn)).collect::<Vec<_>>() {
            if queue.iter().any(|queued| queued.has_id(&taken.what.message.id)) {
                self.wait_again(taken);
            }
        }
    }

    /// Records that the turn has ended and its end is not in the log. Returns the waiting prompts,
    /// which the caller answers with the error.
    pub fn fail(&mut self, turn: &TurnId) -> Vec<QueuedPrompt> {
        self.release(turn);
        self.held = self.arrivals;
        self.remove_prompts(|_| true)
    }

    /// Makes the session idle if this turn was its last.
    fn release(&mut self, turn: &TurnId) {
        if matches!(&self.phase, Phase::Running(TurnHandle { id, .. }) | Phase::Ending(id) if id == turn) {
            self.phase = Phase::Idle;
        }
    }

    /// Replaces the messages by the committed queue, after the session was taken. The messages
    /// start no turn, and prompts continue to wait behind the messages that arrived before them.
    /// Returns false if the claimed turn delivers a message that is not in the committed queue.
    pub fn rebuild(&mut self, queue: &[WaitingMessage]) -> bool {
        let taken = self.taken.iter().map(|(_, taken)| (taken.number, &taken.what));
        let numbers: Vec<(u64, MessageId)> =
            self.messages().chain(taken).map(|(number, queued)| (number, queued.message.id.clone())).collect();
        self.waiting.retain(|waiting| matches!(waiting.what, QueueEntry::Prompt(_)));
        let claimed = self.running().map(|turn| turn.id.clone());
        self.taken.retain(|(taken_by, _)| claimed.is_some() && *taken_by == claimed);
        // The messages of an earlier owner arrived first.
        let mut number = 1;
        for queued in queue {
            number = numbers.iter().find(|(_, id)| queued.has_id(id)).map_or(number, |(known, _)| *known);
            if !self.taken.iter().any(|(_, taken)| queued.has_id(&taken.what.message.id)) {
                self.wait_again(Arrival { number, what: queued.clone() });
            }
        }
        self.held = self.arrivals;
        self.taken.iter().all(|(_, taken)| queue.iter().any(|queued| queued.has_id(&taken.what.message.id)))
    }

    /// Cancels the running turn and the waiting prompts. If no turn runs, the messages that wait
    /// start none, as after a cancelled turn.
    pub fn cancel(&mut self) {
        drop(self.remove_prompts(|_| true));
        match &self.phase {
            Phase::Running(turn) => turn.cancel(),
            Phase::Idle | Phase::Ending(_) => self.held = self.arrivals,
        }
    }

    /// Refuses new turns, cancels the waiting prompts and returns the running turn.
    pub fn close(&mut self) -> Option<TurnHandle> {
        self.closing = true;
        drop(self.remove_prompts(|_| true));
        self.running().cloned()
    }

    /// Removes and returns the waiting prompts for which `removes` is true.
    pub fn remove_prompts(&mut self, removes: impl Fn(&QueuedPrompt) -> bool) -> Vec<QueuedPrompt> {
        let removes = |waiting: &mut Arrival<QueueEntry>| matches!(&waiting.what, QueueEntry::Prompt(prompt) if removes(prompt));
        let removed = self.waiting.extract_if(.., removes);
        removed
            .filter_map(|waiting| match waiting.what {
                QueueEntry::Prompt(prompt) => Some(prompt),
                QueueEntry::Message(_) => None,
            })
            .collect()
    }

    /// Returns whether the message waits, and can be changed or removed.
    pub fn is_waiting(&self, id: &MessageId) -> bool {
        self.messages().any(|(_, queued)| queued.has_id(id))
    }

    /// Changes or removes a waiting message.
    pub fn change(&mut self, id: &MessageId, change: QueueChange) {
        match change {
            QueueChange::Remove => self.waiting.retain(|waiting| !waiting.what.is_message(id)),
            QueueChange::Edit { parts, delivery } => {
                let found = self.waiting.iter_mut().find(|waiting| waiting.what.is_message(id));
                if let Some(Arrival { what: QueueEntry::Message(queued), .. }) = found {
                    queued.edit(parts, delivery);
                }
            }
        }
    }

    /// Removes the waiting messages that start no turn and for which `append` returns true, which
    /// adds them to the conversation.
    pub fn append_silent(&mut self, mut append: impl FnMut(&WaitingMessage) -> bool) {
        self.waiting.retain(|waiting| match &waiting.what {
            QueueEntry::Message(queued) => queued.auto_run || !append(queued),
            QueueEntry::Prompt(_) => true,
        });
    }

    /// Takes the waiting messages for which `takes` is true: the caller appends the events that
    /// deliver them.
    pub fn take(&mut self, takes: impl Fn(u64, &WaitingMessage) -> bool) -> Vec<WaitingMessage> {
        let takes = |waiting: &mut Arrival<QueueEntry>| matches!(&waiting.what, QueueEntry::Message(queued) if takes(waiting.number, queued));
        let turn = self.running().map(|turn| turn.id.clone());
        let mut messages = Vec::new();
        for Arrival { number, what } in self.waiting.extract_if(.., takes) {
            if let QueueEntry::Message(what) = what {
                messages.push(what.clone());
                self.taken.push((turn.clone(), Arrival { number, what }));
            }
        }
        messages
    }

    /// Returns the steering message that the running turn delivers next.
    pub fn next_steering(&self) -> Option<&WaitingMessage> {
        self.messages().map(|(_, queued)| queued).find(|queued| queued.delivery == Delivery::Steer)
    }

    /// Takes the next steering message if it is still the one that the turn has `prepared`: the
    /// caller appends the event that delivers it in the same step.
    pub fn take_prepared(&mut self, WaitingMessage { message: prepared, .. }: &WaitingMessage) -> bool {
        let is_prepared = |next: &WaitingMessage| next.has_id(&prepared.id) && next.message.parts == prepared.parts;
        self.next_steering().is_some_and(is_prepared) && !self.take(|_, queued| queued.has_id(&prepared.id)).is_empty()
    }

    /// Returns a message that was taken and not delivered to its place among the waiting messages.
    pub fn put_back(&mut self, id: &MessageId) {
        if let Some(place) = self.taken.iter().position(|(_, taken)| taken.what.has_id(id)) {
            let (_, taken) = self.taken.remove(place);
            self.wait_again(taken);
        }
    }

    fn wait_again(&mut self, Arrival { number, what }: Arrival<WaitingMessage>) {
        let place = self.waiting.partition_point(|waiting| waiting.number <= number);
        self.waiting.insert(place, Arrival { number, what: QueueEntry::Message(what) });
    }

    /// Decides what the session does next. A prompt whose client has cancelled it is removed.
    pub fn start_next(&mut self) -> Next {
        drop(self.remove_prompts(|prompt| prompt.request.cancel.is_cancelled()));
        let (false, Phase::Idle, Some(place)) = (self.closing, &self.phase, self.first_runnable()) else {
            return Next::Nothing;
        };
        if let Some(answer) = self.answer.as_mut().filter(|answer| !answer.written.is_cancelled()) {
            return match std::mem::replace(&mut answer.awaited, true) {
                true => Next::Nothing,
                false => Next::AwaitAnswer(answer.written.clone()),
            };
        }
        let Arrival { number: after, what } = self.waiting.remove(place);
        match what {
            QueueEntry::Message(queued) => {
                let WaitingMessage { message, by, .. } = queued.clone();
                self.taken.push((None, Arrival { number: after, what: queued }));
                Next::Start(Box::new(NewTurn::new(message, by, after)), None)
            }
            QueueEntry::Prompt(QueuedPrompt { message, request, started }) => {
                let PromptRequest { by, budget, answered, .. } = request;
                let turn = NewTurn { budget, answered: Some(answered), ..NewTurn::new(message, Some(by), after) };
                Next::Start(Box::new(turn), Some(started))
            }
        }
    }

    /// Returns the place of the message or the prompt that starts the next turn.
    fn first_runnable(&self) -> Option<usize> {
        self.waiting.iter().position(|waiting| match &waiting.what {
            QueueEntry::Message(queued) => queued.auto_run && waiting.number > self.held,
            QueueEntry::Prompt(_) => true,
        })
    }

    fn messages(&self) -> impl Iterator<Item = (u64, &WaitingMessage)> {
        self.waiting.iter().filter_map(|waiting| match &waiting.what {
            QueueEntry::Message(queued) => Some((waiting.number, queued)),
            QueueEntry::Prompt(_) => None,
        })
    }

    fn prompts(&self) -> impl Iterator<Item = &QueuedPrompt> {
        self.waiting.iter().filter_map(|waiting| match &waiting.what {
            QueueEntry::Prompt(prompt) => Some(prompt),
            QueueEntry::Message(_) => None,
        })
    }
}
