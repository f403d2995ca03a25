//! One random history: the core, a log with its queue, the turns and the clients.

use std::collections::VecDeque;

use nuncio::id::{MessageId, SessionId, TurnId};
use nuncio::internal::error::{Error, Kind as ErrorKind, Result};
use nuncio::internal::session::message::WaitingMessage;
use nuncio::internal::session::turn::core::SessionCore;
use nuncio::internal::session::turn::new_turn::{NewTurn, Next};
use nuncio::internal::session::turn::{TurnHandle, TurnProgress};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::model::{Entry, Kind, Model};
use harness::Random;

/// The names of the actions, for the report of a failure.
const ACTIONS: [&str; 26] = [
    "prompt",
    "prompt",
    "prompt",
    "message",
    "message",
    "message",
    "start",
    "edit",
    "remove",
    "cancel",
    "disconnect",
    "steer",
    "deliver",
    "deliver",
    "open",
    "open",
    "end",
    "end",
    "commit",
    "commit",
    "commit",
    "notice end",
    "notice end",
    "write answer",
    "lose",
    "retake",
];

/// A turn whose task runs.
pub struct RunningTurn {
    pub id: TurnId,
    pub cancel: CancellationToken,
    pub input: NewTurn,
    /// Waits for this answer before it opens.
    pub answered: Option<CancellationToken>,
    pub is_open: bool,
    pub _progress: TurnProgress,
}

/// A prompt that a client has sent.
pub struct SentPrompt {
    pub id: MessageId,
    pub started: oneshot::Receiver<Result<TurnHandle>>,
    pub cancel: CancellationToken,
    /// The client has cancelled it before it started.
    pub cancelled: bool,
}

pub struct History {
    pub random: Random,
    pub core: SessionCore,
    pub model: Model,
    /// Events that are not committed.
    pub pending: VecDeque<Entry>,
    /// The committed queue.
    pub queue: Vec<WaitingMessage>,
    /// Appends fail.
    pub lost: bool,
    pub running: Option<RunningTurn>,
    /// The steering message that the running turn prepares.
    pub prepared: Option<WaitingMessage>,
    /// Turns whose end is in the log's queue.
    pub ending: Vec<TurnId>,
    /// Turns whose end is committed (true) or lost, before their tasks notice it.
    pub ended: Vec<(TurnId, bool)>,
    pub sent: Vec<SentPrompt>,
    /// Messages whose senders got an error.
    pub refused: Vec<MessageId>,
    /// Answers that are not written, and the answer to the prompt of the last turn that had one.
    pub unwritten: Vec<CancellationToken>,
    pub last_answer: Option<CancellationToken>,
    pub starts: u64,
    pub actions: Vec<String>,
}

impl Drop for History {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}\nafter {:?}", self.model, self.actions);
        }
    }
}

impl History {
    pub fn new(random: Random) -> History {
        History {
            random,
            core: SessionCore::new(SessionId::from("sess_1")),
            model: Model::default(),
            pending: VecDeque::new(),
            queue: Vec::new(),
            lost: false,
            running: None,
            prepared: None,
            ending: Vec::new(),
            ended: Vec::new(),
            sent: Vec::new(),
            refused: Vec::new(),
            unwritten: Vec::new(),
            last_answer: None,
            starts: 0,
            actions: Vec::new(),
        }
    }

    /// Does something at random.
    pub fn act(&mut self) {
        let action = self.random.below(ACTIONS.len() as u64);
        let name = ACTIONS[action as usize];
        self.actions.push(name.into());
        match action {
            0..=2 => self.prompt(),
            3..=5 => self.message(),
            6 => self.start(),
            7 => self.edit(),
            8 => self.remove(),
            9 => self.cancel(),
            10 => self.disconnect(),
            11 => self.steer(),
            12..=13 => self.deliver(),
            14..=15 => self.open(),
            16..=17 => self.end(),
            18..=20 => self.commit(),
            21..=22 => self.notice_end(),
            23 => self.write_answer(),
            24 => self.lose(),
            _ => self.retake(),
        }
    }

    pub fn append(&mut self, entry: Entry) {
        if !self.lost {
            self.pending.push_back(entry);
        }
    }

    pub fn launch(&mut self, input: NewTurn) -> TurnHandle {
        assert!(self.running.is_none(), "two turns run");
        let (id, cancel) = (TurnId::new(), CancellationToken::new());
        let (progress, handle) = TurnProgress::new(id.clone(), cancel.clone());
        let answered = self.core.unwritten_answer();
        self.core.claim(handle.clone(), input.answered.clone());
        if let Some(answer) = &input.answered {
            self.unwritten.push(answer.clone());
            self.last_answer = Some(answer.clone());
        }
        self.model.claim(&input.message.id);
        self.actions.push(format!("-> turn of {}, with messages before {}", input.message.id, input.after));
        self.starts += 1;
        self.running = Some(RunningTurn { id, cancel, input, answered, is_open: false, _progress: progress });
        handle
    }

    pub fn start_next(&mut self) {
        if !self.core.is_between_turns() {
            return;
        }
        let mut silent = Vec::new();
        self.core.append_silent(|queued| {
            silent.push(queued.message.id.clone());
            true
        });
        for id in silent {
            self.model.remove(&id);
            self.append(Entry::Completed(id));
        }
        let cancelled: Vec<MessageId> =
            self.sent.iter().filter(|sent| sent.cancel.is_cancelled()).map(|sent| sent.id.clone()).collect();
        cancelled.iter().for_each(|id| self.model.remove(id));
        match self.core.start_next() {
            Next::Start(turn, started) => {
                assert_eq!(Some(&turn.message.id), self.model.next(), "another one waited longer");
                let handle = self.launch(*turn);
                if let Some(started) = started {
                    let _ = started.send(Ok(handle));
                }
            }
            Next::AwaitAnswer(answered) => assert!(!answered.is_cancelled() && self.model.next().is_some()),
            Next::Nothing => {
                let waits = self.core.unwritten_answer().is_some();
                assert!(waits || self.model.next().is_none(), "nothing starts although work waits");
            }
        }
    }

    /// The task of the turn records its start, its prompt and the messages before it.
    fn open(&mut self) {
        let Some(running) = self.running.take_if(|running| !running.is_open) else { return };
        if running.answered.as_ref().is_some_and(|answered| !answered.is_cancelled()) {
            self.running = Some(running);
            return;
        }
        let own = running.input.message.id.clone();
        if self.lost && !self.take_again(Some(&own)) {
            self.model.remove(&own);
            return self.fail(running.id);
        }
        let after = running.input.after;
        self.append(Entry::Started(running.id.clone()));
        let earlier: Vec<MessageId> = if after > 0 { self.model.before(&own) } else { Vec::new() };
        let taken = self.core.take(|number, queued| queued.auto_run && number < after);
        let taken: Vec<MessageId> = taken.into_iter().map(|queued| queued.message.id).collect();
        assert_eq!(taken, earlier, "the messages before the prompt");
        for id in taken.into_iter().chain([own]) {
            self.model.remove(&id);
            self.append(Entry::Completed(id));
        }
        self.running = Some(RunningTurn { is_open: true, ..running });
    }

    fn end(&mut self) {
        let Some(running) = self.running.take_if(|running| running.is_open) else { return };
        self.prepared = None;
        let completed = !self.lost && !running.cancel.is_cancelled() && self.random.below(3) > 0;
        self.core.end(&running.id, completed);
        self.model.held.clear();
        if !completed {
            self.model.hold_all();
        }
        self.append(Entry::Ended(running.id.clone()));
        if self.lost { self.ended.push((running.id, false)) } else { self.ending.push(running.id) }
    }

    fn fail(&mut self, turn: TurnId) {
        for prompt in self.core.fail(&turn) {
            let _ = prompt.started.send(Err(Error::new(ErrorKind::Internal, "lost")));
        }
        self.model.remove_prompts(None);
        self.model.hold_all();
    }

    /// Commits the oldest event.
    pub fn commit(&mut self) {
        let Some(entry) = self.pending.pop_front() else { return };
        self.model.committed(&entry, &self.queue);
        match entry {
            Entry::Queued(queued) => self.queue.push(*queued),
            Entry::Removed(id) | Entry::Completed(id) => self.queue.retain(|queued| queued.message.id != id),
            Entry::Ended(turn) => {
                let place = self.ending.iter().position(|ending| *ending == turn).expect("the turn has ended");
                self.ended.push((self.ending.remove(place), true));
            }
            Entry::Edited(id, delivery) => {
                self.queue.iter_mut().filter(|queued| queued.message.id == id).for_each(|queued| queued.delivery = delivery);
            }
            Entry::Started(_) => {}
        }
    }

    /// The task of a turn that has ended sees that the end is committed, or lost.
    fn notice_end(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let (turn, committed) = self.ended.remove(0);
        if !committed {
            return self.fail(turn);
        }
        self.core.end_committed(&turn, &self.queue);
        self.model.taken.retain(|_, taken_by| *taken_by != turn);
        self.start_next();
    }

    fn write_answer(&mut self) {
        if !self.unwritten.is_empty() {
            let which = self.random.below(self.unwritten.len() as u64) as usize;
            self.unwritten.remove(which).cancel();
            self.start_next();
        }
    }

    fn lose(&mut self) {
        if self.random.below(4) > 0 || self.lost {
            return;
        }
        self.actions.push("-> lost".into());
        self.lost = true;
        for entry in std::mem::take(&mut self.pending) {
            match entry {
                Entry::Queued(queued) => self.refused.push(queued.message.id),
                Entry::Ended(turn) => self.ended.push((turn, false)),
                _ => {}
            }
        }
        self.ending.clear();
    }

    /// Takes the session again, if no turn runs.
    fn retake(&mut self) {
        if self.lost && self.running.is_none() {
            self.take_again(None);
        }
    }

    /// Takes the session after a lost append, for a turn with the message `claimed`. Returns whether
    /// the turn can start.
    fn take_again(&mut self, claimed: Option<&MessageId>) -> bool {
        self.lost = false;
        self.model.taken.clear();
        self.actions.push("-> taken again".into());
        if let Some(turn) = self.model.open() {
            self.model.committed(&Entry::Ended(turn), &self.queue);
        }
        let starts = self.core.rebuild(&self.queue);
        let in_queue = |id: &MessageId| self.queue.iter().any(|queued| queued.message.id == *id);
        self.model.waiting.retain(|(id, kind)| matches!(kind, Kind::Prompt { .. }) || in_queue(id) || claimed == Some(id));
        self.model.wait_again(&self.queue);
        self.queue.iter().for_each(|queued| self.model.set_delivery(&queued.message.id, queued.delivery));
        self.model.hold_all();
        starts
    }

    /// Lets all work end. Returns the number of turns.
    pub fn finish(mut self) -> u64 {
        self.actions.push("finish".into());
        for _ in 0..1000 {
            self.retake();
            self.open();
            self.end();
            self.commit();
            self.notice_end();
            self.write_answer();
        }
        assert!(self.running.is_none() && self.core.is_idle() && self.core.is_between_turns(), "work is left");
        assert_eq!(self.model.next(), None, "work is left");
        let waits: Vec<&MessageId> = self.queue.iter().map(|queued| &queued.message.id).collect();
        let expected: Vec<&MessageId> = self.model.waiting.iter().map(|(id, _)| id).collect();
        assert_eq!(waits, expected, "the committed queue");
        for id in &self.refused {
            assert!(!self.model.was_delivered(id), "{id} was refused and delivered");
        }
        for sent in &mut self.sent {
            match sent.started.try_recv() {
                Ok(Ok(_)) => assert!(!sent.cancelled, "{} was cancelled and started", sent.id),
                Ok(Err(_)) | Err(oneshot::error::TryRecvError::Closed) => {}
                Err(oneshot::error::TryRecvError::Empty) => panic!("{} has no answer", sent.id),
            }
        }
        self.starts
    }
}
