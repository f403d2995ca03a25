//! A turn: the work between one prompt and its stop. It runs on a task of its own and always comes to an end in the log.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::broker::Answer;
use super::now_ms;
use super::open::{Session, Slot};
use super::queue::Message;
use super::room::Place;
use super::title::title_of;
use crate::content::{Part, PermissionOption, StopReason, ToolContent, Usage};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, PermissionOutcome, SessionChange, Severity};
use crate::id::{PermissionId, Seq, ToolCallId, TurnId};

/// A running turn, as its agent sees it.
pub struct Turn {
    pub id: TurnId,
    pub session: Arc<Session>,
    pub cancel: CancellationToken,
    opened: watch::Sender<bool>,
    /// Among those that run.
    place: Place,
}

/// How a turn ended. `seq` is its last event: an answer to the prompt comes after it.
#[derive(Clone, Debug)]
pub struct TurnEnd {
    pub result: Result<StopReason>,
    pub seq: Seq,
    /// Of all its model requests; none when there was none.
    pub usage: Option<Usage>,
}

impl TurnEnd {
    /// The end of a turn of which the log has none.
    fn lost(error: Error) -> TurnEnd {
        TurnEnd { result: Err(error), seq: 0, usage: None }
    }
}

/// What a turn starts with.
pub(super) struct Start {
    pub message: Message,
    /// The client that prompted.
    pub by: Option<String>,
    /// With the queued messages, before the message.
    pub waiting: bool,
    /// The earlier turn whose prompt runs again.
    pub retries: Option<TurnId>,
}

/// A running turn, as others see it.
#[derive(Clone)]
pub struct TurnHandle {
    pub id: TurnId,
    cancel: CancellationToken,
    opened: watch::Receiver<bool>,
    end: watch::Receiver<Option<TurnEnd>>,
}

impl TurnHandle {
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Waits until its prompt is in the log; an error says why it will not be.
    pub async fn opened(&mut self) -> Result<()> {
        match self.opened.wait_for(|opened| *opened).await.map(drop) {
            Ok(()) => Ok(()),
            // Its task ended before.
            Err(_) => self.end().await.result.map(drop),
        }
    }

    pub async fn end(&mut self) -> TurnEnd {
        match self.end.wait_for(Option::is_some).await.map(|end| end.clone()) {
            Ok(Some(end)) => end,
            _ => TurnEnd::lost(Error::internal("the turn's task is gone")),
        }
    }
}

impl Session {
    /// Starts a turn with the user's message; `by` names the client. The claim is made before the first `.await`, so that whoever asks first has it:
    /// another prompt meets `session_busy`, a cancel meets this turn. What waits since a turn was stopped goes first into this one.
    pub fn start_turn(self: &Arc<Self>, prompt: Vec<Part>, by: &str) -> Result<TurnHandle> {
        self.start(prompt, by, None)
    }

    /// Runs the prompt of the turn `retries` again, in the context which that turn had; otherwise
    /// as [`Session::start_turn`].
    pub fn retry_turn(self: &Arc<Self>, prompt: Vec<Part>, by: &str, retries: TurnId) -> Result<TurnHandle> {
        self.start(prompt, by, Some(retries))
    }

    fn start(self: &Arc<Self>, prompt: Vec<Part>, by: &str, retries: Option<TurnId>) -> Result<TurnHandle> {
        let place = self.running.enter()?;
        let mut slot = self.slot();
        if slot.closing {
            return Err(self.is_closing());
        }
        if slot.turn.is_some() || slot.settling {
            let what = slot.turn.as_ref().map_or("messages that wait".into(), |running| format!("turn {}", running.id));
            let message = format!("session {} is working on {what}", self.log.id);
            return Err(Error::new(Kind::SessionBusy, message).hint("wait for it to end, or cancel it"));
        }
        let start = Start { message: Message::user(prompt), by: Some(by.into()), waiting: true, retries };
        Ok(self.launch(&mut slot, place, start))
    }

    /// Runs a turn in the slot, which is free.
    pub(super) fn launch(self: &Arc<Self>, slot: &mut Slot, place: Place, start: Start) -> TurnHandle {
        let (id, cancel) = (TurnId::new(), self.shutdown.child_token());
        let ((opened, is_open), (done, end)) = (watch::channel(false), watch::channel(None));
        let handle = TurnHandle { id: id.clone(), cancel: cancel.clone(), opened: is_open, end };
        slot.turn = Some(handle.clone());
        self.used();
        let turn = Turn { id, session: self.clone(), cancel, opened, place };
        let span = tracing::info_span!("turn", session = %self.log.id, turn = %turn.id);
        let work = async move {
            let end = turn.run(start).await;
            done.send_replace(Some(end));
        };
        self.tasks.spawn(work.instrument(span));
        handle
    }
}

impl Turn {
    async fn run(self, start: Start) -> TurnEnd {
        if let Err(error) = self.session.own().await {
            let mut slot = self.session.slot();
            slot.turn.take_if(|running| running.id == self.id);
            slot.prompts.refuse(&error);
            return TurnEnd::lost(error);
        }
        let result = match self.open(start).await {
            Ok(_) => match AssertUnwindSafe(self.work()).catch_unwind().await {
                Ok(result) => result,
                Err(panic) => self.clear_up(panic_message(&*panic)).await,
            },
            Err(error) => Err(error),
        };
        self.close(result).await
    }

    /// Runs the agent. Cancels it when the log is lost: its events would not be recorded.
    async fn work(&self) -> Result<StopReason> {
        let mut work = self.session.agent.run(self);
        tokio::select! {
            biased;
            result = &mut work => return result,
            () = self.session.log.lost() => self.cancel.cancel(),
        }
        work.await
    }

    /// The prompt is on the disk before anything follows from it.
    async fn open(&self, Start { message, by, waiting, retries }: Start) -> Result<Seq> {
        self.emit(Body::TurnStarted { by, retries }).await;
        let (untitled, queue) = self.session.log.state(|state| {
            let runs = state.queue.iter().filter(|queued| waiting && queued.auto_run);
            (state.title.is_none(), runs.map(|queued| queued.message.clone()).collect::<Vec<_>>())
        });
        if let Some(title) = title_of(&message.parts).filter(|_| untitled) {
            self.emit(Body::SessionUpdated { change: SessionChange { title: Some(title), ..Default::default() } }).await;
        }
        for earlier in queue {
            self.emit(earlier.completed()).await;
        }
        let seq = self.commit(message.completed()).await?;
        self.opened.send_replace(true);
        Ok(seq)
    }

    /// After a panic: ends what the agent left open.
    async fn clear_up(&self, panic: &str) -> Result<StopReason> {
        let error = Error::internal(format!("the agent panicked: {panic}"));
        // Behind it, the state holds all that was appended before.
        self.commit(Body::notice(Severity::Error, "The agent broke", error.message.clone())).await?;
        for body in self.session.log.state(|state| state.closing()) {
            if !body.ends_turn() {
                self.emit(body).await;
            }
        }
        Err(error)
    }

    /// Ends the turn. The claim goes as the end goes into the queue: whatever the next turn appends comes after it, and whoever sees the
    /// end can begin the next turn.
    async fn close(self, result: Result<StopReason>) -> TurnEnd {
        let result = match self.session.log.failed() {
            Some(error) => Err(error),
            None if self.cancel.is_cancelled() => Ok(StopReason::Cancelled),
            None => result,
        };
        let body = match &result {
            Ok(StopReason::Cancelled) => Body::TurnCancelled {},
            Ok(stop_reason) => Body::TurnCompleted { stop_reason: *stop_reason },
            Err(error) => {
                tracing::info!(session = %self.session.log.id, turn = %self.id, error = ?error, "turn failed");
                failed(error)
            }
        };
        let completed = matches!(body, Body::TurnCompleted { .. });
        let place = self.place;
        let release = || {
            drop(place);
            let mut slot = self.session.slot();
            slot.turn.take_if(|running| running.id == self.id);
            let next = completed && (!slot.arriving.is_empty() || self.session.log.state(|state| state.runs_next().is_some()));
            slot.settling = next || !slot.prompts.is_empty();
            slot
        };
        let appended = self.session.log.append_holding(Some(self.id.clone()), body, true, release).await;
        // Where the writer is gone it goes, too.
        self.session.release_claim(&self.id);
        let committed = match appended {
            Ok(committed) => committed.await.unwrap_or_else(|_| Err(Error::internal("the log's writer is gone"))),
            Err(error) => Err(error),
        };
        if let Err(error) = &committed {
            let mut slot = self.session.slot();
            slot.settling = false;
            slot.prompts.refuse(error);
            drop(slot);
            self.session.recover();
        }
        let usage = self.session.log.state(|state| state.turns.get(&self.id).and_then(|turn| turn.usage));
        self.session.settle();
        match committed {
            Ok(seq) => TurnEnd { result, seq, usage },
            Err(error) => TurnEnd::lost(error),
        }
    }

    pub async fn emit(&self, body: Body) {
        self.session.log.emit(Some(self.id.clone()), body).await;
    }

    pub async fn commit(&self, body: Body) -> Result<Seq> {
        self.session.log.commit(Some(self.id.clone()), body).await
    }

    /// For what precedes an effect.
    pub async fn commit_durably(&self, body: Body) -> Result<Seq> {
        self.session.log.commit_durably(Some(self.id.clone()), body).await
    }

    /// Asks whoever is there, and waits for the first answer, the deadline or a cancel: everything but an offered yes is a no.
    /// Returns the question's id, for its `permission.resolved`, which the caller appends with the rule that comes of it.
    pub async fn ask(
        &self,
        tool_call_id: ToolCallId,
        content: Vec<ToolContent>,
        options: Vec<PermissionOption>,
        timeout: Duration,
    ) -> (Option<PermissionId>, Answer) {
        let id = PermissionId::new();
        let broker = &self.session.broker;
        let Some(mut answered) = broker.ask(id.clone(), options.clone()) else {
            let reason = Some("nobody is there who could be asked".into());
            return (None, Answer { outcome: PermissionOutcome::Denied, by: "nobody".into(), reason });
        };
        let deadline_ms = now_ms() + timeout.as_millis() as u64;
        self.emit(Body::PermissionRequested { permission_id: id.clone(), tool_call_id, content, options, deadline_ms }).await;
        let answer = tokio::select! {
            biased;
            answer = &mut answered => answer.ok(),
            () = self.cancel.cancelled() => {
                broker.dismiss(&id, PermissionOutcome::Cancelled, "cancel", "the turn was cancelled");
                answered.await.ok()
            }
            () = tokio::time::sleep(timeout) => {
                broker.dismiss(&id, PermissionOutcome::Denied, "deadline", "nobody answered in time");
                answered.await.ok()
            }
        };
        let nobody = || Answer { outcome: PermissionOutcome::Denied, by: "disconnect".into(), reason: None };
        (Some(id), answer.unwrap_or_else(nobody))
    }
}

/// The end of a turn that failed.
pub(super) fn failed(error: &Error) -> Body {
    Body::TurnFailed { code: error.kind.row().code.into(), message: error.message.clone(), hint: error.hint.clone() }
}

/// What a panic said.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
