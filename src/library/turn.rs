//! A turn of a session: a prompt, and the work on it.

use std::sync::Arc;
use std::task::Poll;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::session::Session;
use crate::api::{PromptParams, PromptResult, TurnStart};
use crate::client::SessionEvents;
use crate::content::{Part, Role, StopReason, Usage, plain_text};
use crate::error::{Error, Result};
use crate::event::{Body, Event, UsageUpdate};
use crate::id::TurnId;
use crate::task;

/// A turn: the agent's work on a prompt, and a stream of its events. Dropping it does not cancel
/// the turn.
pub struct Turn {
    session: Session,
    cancel: CancellationToken,
    state: TurnState,
    call: JoinHandle<Result<PromptResult>>,
    ready: std::vec::IntoIter<Arc<Event>>,
    usage: Usage,
    stop: Option<StopReason>,
    answer: String,
}

enum TurnState {
    /// The turn has not started: an earlier one runs.
    Waiting(oneshot::Receiver<TurnStart>),
    Started(TurnStart),
    Running(TurnId, SessionEvents),
    /// The turn has ended, with this error. Its last events may not have been read.
    Ending(TurnId, SessionEvents, Option<Error>),
    Ended(Option<Error>),
}

impl Session {
    /// Sends a prompt. If a turn runs, the prompt waits and then runs in a turn of its own.
    pub async fn prompt(&self, text: impl Into<String>) -> Result<Turn> {
        self.prompt_with(vec![Part::text(text)]).await
    }

    /// Sends a prompt with images, audio or documents.
    pub async fn prompt_with(&self, parts: Vec<Part>) -> Result<Turn> {
        Ok(Turn::start(self.clone(), PromptParams::new(&self.id, parts)).await)
    }
}

impl Turn {
    /// Sends a prompt. Prompts are taken in the order of these calls.
    async fn start(session: Session, params: PromptParams) -> Turn {
        let (cancel, (sender, started)) = (CancellationToken::new(), oneshot::channel());
        let mut call = Box::pin({
            // The task holds the session: the callback is asked even after the turn was dropped.
            let (session, cancel) = (session.clone(), cancel.clone());
            async move { session.shared.client.clone().prompt(params, cancel, sender).await }
        });
        // The first poll determines the place of the prompt.
        let first = std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
        let call = match first {
            Poll::Ready(reply) => task::spawn(async { reply }),
            Poll::Pending => task::spawn(call),
        };
        Turn {
            session,
            cancel,
            state: TurnState::Waiting(started),
            call,
            ready: Vec::new().into_iter(),
            usage: Usage::default(),
            stop: None,
            answer: String::new(),
        }
    }

    /// Waits for the next event of the turn; `None` after the last one. If the turn failed, the
    /// error follows its last event. Cancel safe.
    pub async fn next(&mut self) -> Option<Result<Arc<Event>>> {
        loop {
            while let Some(event) = self.ready.next() {
                if self.apply(&event) {
                    return Some(Ok(event));
                }
            }
            if let TurnState::Ended(error) = &mut self.state {
                return error.take().map(Err);
            }
            if let Err(error) = self.advance().await {
                self.state = TurnState::Ended(Some(error));
            }
        }
    }

    /// Reads the events to the end of the turn. Returns the text of the last message of the agent.
    pub async fn finish(&mut self) -> Result<String> {
        while let Some(event) = self.next().await {
            event?;
        }
        Ok(self.answer.clone())
    }

    /// Cancels the turn, or the prompt that waits. Its last event is `turn.cancelled`.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns why the turn stopped, once its last event was read; `None` if it failed.
    pub fn stop(&self) -> Option<StopReason> {
        self.stop
    }

    /// Returns the tokens of the model requests whose events were read.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Takes the next step of the state. Cancel safe.
    async fn advance(&mut self) -> Result<()> {
        match &mut self.state {
            TurnState::Waiting(started) => {
                let started = started.await;
                self.state = match started {
                    Ok(start) => TurnState::Started(start),
                    // No turn was started.
                    Err(_) => {
                        self.reply().await?;
                        self.stop = Some(StopReason::Cancelled);
                        TurnState::Ended(None)
                    }
                };
            }
            TurnState::Started(start) => {
                let (id, after) = (start.turn.clone(), start.after);
                let events = self.session.shared.client.follow(&self.session.id, after, None).await?;
                self.state = TurnState::Running(id, events);
            }
            TurnState::Running(_, events) => {
                let error = tokio::select! {
                    biased;
                    events = events.next() => {
                        self.ready = events?.into_iter();
                        return Ok(());
                    }
                    reply = &mut self.call => flatten(reply).err(),
                };
                if let TurnState::Running(id, events) = std::mem::replace(&mut self.state, TurnState::Ended(None)) {
                    self.state = TurnState::Ending(id, events, error);
                }
            }
            TurnState::Ending(_, events, error) => match events.next_committed().await? {
                Some(events) => self.ready = events.into_iter(),
                None => self.state = TurnState::Ended(error.take()),
            },
            TurnState::Ended(_) => {}
        }
        Ok(())
    }

    async fn reply(&mut self) -> Result<PromptResult> {
        flatten((&mut self.call).await)
    }

    /// Adds an event to the results. Returns false for an event of another turn.
    fn apply(&mut self, event: &Event) -> bool {
        let (TurnState::Running(turn, _) | TurnState::Ending(turn, ..)) = &self.state else { return false };
        if event.turn_id.as_ref() != Some(turn) {
            return false;
        }
        match &event.body {
            Body::UsageUpdated(UsageUpdate { usage, .. }) => self.usage += *usage,
            Body::MessageCompleted { role: Role::Assistant, parts, discarded: false, .. } => self.answer = plain_text(parts),
            Body::TurnCompleted { stop_reason } => self.stop = Some(*stop_reason),
            Body::TurnCancelled { .. } => self.stop = Some(StopReason::Cancelled),
            _ => {}
        }
        true
    }
}

fn flatten<T>(reply: Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    reply.unwrap_or_else(|_| Err(Error::internal("internal error: the prompt panicked")))
}
