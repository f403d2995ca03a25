//! The actions of clients: prompts, messages, changes of queued messages, cancels.

use nuncio::content::{Part, Role};
use nuncio::event::{Actor, Delivery, MessageExtra};
use nuncio::id::MessageId;
use nuncio::internal::error::Kind as ErrorKind;
use nuncio::internal::session::message::{IncomingMessage, QueueChange, WaitingMessage};
use nuncio::internal::session::turn::new_turn::{MessageDestination, NewTurn, PromptRequest, QueuedPrompt};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::history::{History, SentPrompt};
use super::model::{Entry, Kind};

fn message(role: Role) -> IncomingMessage {
    let parts = vec![Part::text("text")];
    IncomingMessage { id: MessageId::new(), role, parts, extra: MessageExtra::default(), by_model: false, is_forwarded: false }
}

impl History {
    fn client(&mut self) -> String {
        ["one", "two"][self.random.below(2) as usize].into()
    }

    pub fn prompt(&mut self) {
        let (message, by) = (message(Role::User), self.client());
        let (cancel, answered) = (CancellationToken::new(), CancellationToken::new());
        let request = PromptRequest {
            by: Actor::from(&*by),
            forwarded: false,
            budget: None,
            cancel: cancel.clone(),
            answered: answered.clone(),
        };
        let id = message.id.clone();
        let idle = self.running.is_none() && self.model.next().is_none();
        if self.core.accepts_prompt() {
            let written = self.last_answer.as_ref().is_none_or(CancellationToken::is_cancelled);
            assert!(idle && written, "started although work waits");
            let turn = self.core.new_turn(message, Some(Actor::from(&*by)));
            self.model.arrive(id.clone(), Kind::Prompt { client: by });
            return drop(self.launch(NewTurn { answered: Some(answered), ..turn }));
        }
        let (started, receiver) = oneshot::channel();
        match self.core.queue_prompt(QueuedPrompt { message, request, started }) {
            Ok(()) => {
                self.model.arrive(id.clone(), Kind::Prompt { client: by });
                self.unwritten.push(answered);
                self.sent.push(SentPrompt { id, started: receiver, cancel, cancelled: false });
                self.start_next();
            }
            Err(error) => assert!(error.kind == ErrorKind::SessionBusy && self.model.waiting.len() >= 16, "{error:?}"),
        }
    }

    pub fn message(&mut self) {
        let role = if self.random.below(8) == 0 { Role::Custom } else { Role::User };
        let auto_run = role != Role::Custom && self.random.below(3) > 0;
        let delivery = [Delivery::Queue, Delivery::Steer][self.random.below(2) as usize];
        let queued = WaitingMessage { message: message(role), delivery, auto_run, by: None, seq: 0 };
        let id = queued.message.id.clone();
        let is_idle = self.running.is_none() && self.model.next().is_none();
        match self.core.destination(&queued).expect("fewer than 64 messages") {
            MessageDestination::Turn => {
                assert!(is_idle && auto_run, "started although work waits");
                self.model.arrive(id, Kind::Runs);
                let turn = self.core.new_turn(queued.message, None);
                self.launch(turn);
            }
            MessageDestination::Conversation => {
                assert!(role == Role::Custom || self.running.is_none());
                if self.lost { self.refused.push(id) } else { self.pending.push_back(Entry::Completed(id)) }
            }
            MessageDestination::Queue(steered) => {
                assert!(!is_idle || !auto_run, "waits although nothing runs");
                let running = self.running.as_ref().filter(|_| delivery == Delivery::Steer).map(|turn| turn.id.clone());
                assert_eq!(steered, running);
                if self.lost {
                    self.refused.push(id.clone())
                } else {
                    self.pending.push_back(Entry::Queued(queued.clone().into()))
                }
                self.actions.push(format!("-> {id} waits, committed: {}", !self.lost));
                self.model.set_delivery(&id, delivery);
                self.model.arrive(id, if auto_run { Kind::Runs } else { Kind::Silent });
                self.core.queue_message(queued);
            }
        }
    }

    /// A prompt over HTTP, or a retry, which does not wait.
    pub fn start(&mut self) {
        let idle = self.running.is_none() && self.model.next().is_none();
        assert_eq!(self.core.check_idle().is_ok(), idle);
        if idle {
            let message = message(Role::User);
            let id = message.id.clone();
            let mut turn = self.core.new_turn(message, None);
            if self.random.below(2) == 0 {
                turn.after = 0;
            }
            self.model.arrive(id, Kind::Runs);
            self.launch(turn);
        }
    }

    fn waiting_message(&mut self) -> Option<MessageId> {
        let ids: Vec<MessageId> = self
            .model
            .waiting
            .iter()
            .filter(|(id, kind)| !matches!(kind, Kind::Prompt { .. }) && self.core.is_waiting(id))
            .map(|(id, _)| id.clone())
            .collect();
        let which = self.random.below(ids.len().max(1) as u64) as usize;
        ids.get(which).cloned()
    }

    pub fn edit(&mut self) {
        let Some(id) = self.waiting_message() else { return };
        let delivery = [Delivery::Queue, Delivery::Steer][self.random.below(2) as usize];
        self.append(Entry::Edited(id.clone(), delivery));
        self.model.set_delivery(&id, delivery);
        self.core.change(&id, QueueChange::Edit { parts: None, delivery: Some(delivery) });
    }

    pub fn remove(&mut self) {
        let Some(id) = self.waiting_message().filter(|_| !self.lost) else { return };
        self.append(Entry::Removed(id.clone()));
        self.core.change(&id, QueueChange::Remove);
        self.model.remove(&id);
        // A removal that is lost returns the message, behind the message before it.
        while !self.pending.is_empty() {
            self.commit();
        }
    }

    pub fn cancel(&mut self) {
        self.core.cancel();
        self.model.remove_prompts(None);
        match &self.running {
            Some(running) => assert!(running.cancel.is_cancelled()),
            None => self.model.hold_all(),
        }
        self.sent.iter_mut().for_each(SentPrompt::mark_cancelled);
    }

    pub fn disconnect(&mut self) {
        if self.random.below(2) == 0 {
            let client = self.client();
            drop(self.core.remove_prompts(|prompt| prompt.request.by.as_str() == client));
            self.model.remove_prompts(Some(&client));
        } else if let Some(sent) = self.sent.last() {
            sent.cancel.cancel();
        }
    }
}

impl SentPrompt {
    /// Notes that the client cancels the prompt, unless it has started.
    fn mark_cancelled(&mut self) {
        if !self.cancelled && self.started.is_empty() {
            self.cancelled = true;
        }
    }
}
