//! A turn: the work from one prompt to its stop. It runs on its own task, and its end is always
//! recorded.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::broker::PermissionAnswer;
use super::now_ms;
use super::open::{Session, TurnQueue};
use super::queue::Message;
use super::room::TurnPermit;
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
    /// The messages that start the turn: queued ones, then the prompt.
    pub prompt: Vec<Part>,
    opened: watch::Sender<bool>,
    permit: TurnPermit,
}

/// How a turn ended. `seq` is its last event: an answer to the prompt comes after it.
#[derive(Clone, Debug)]
pub struct TurnEnd {
    pub result: Result<StopReason>,
    pub seq: Seq,
    /// Total of its model requests; `None` without a request.
    pub usage: Option<Usage>,
}

impl TurnEnd {
    /// The end of a turn whose end is not in the log.
    fn lost(error: Error) -> TurnEnd {
        TurnEnd { result: Err(error), seq: 0, usage: None }
    }
}

/// The input of a turn.
pub(super) struct Start {
    pub message: Message,
    /// The client that prompted.
    pub by: Option<String>,
    /// If true, the queued messages precede the message in this turn.
    pub waiting: bool,
    /// The earlier turn whose prompt runs again.
    pub retries: Option<TurnId>,
}

/// A handle to a running turn, to cancel it or to wait for it.
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

    /// Waits until the prompt is in the log. Returns the error of a turn that failed before that.
    pub async fn opened(&mut self) -> Result<()> {
        match self.opened.wait_for(|opened| *opened).await.map(drop) {
            Ok(()) => Ok(()),
            // The task ended before that.
            Err(_) => self.end().await.result.map(drop),
        }
    }

    pub async fn end(&mut self) -> TurnEnd {
        match self.end.wait_for(Option::is_some).await.map(|end| end.clone()) {
            Ok(Some(end)) => end,
            _ => TurnEnd::lost(Error::internal("the turn's task ended without a result")),
        }
    }
}

impl Session {
    /// Starts a turn with the user's message; `by` is the client. The session is claimed when this
    /// returns: another prompt gets `session_busy`, and a cancel applies to this turn. Messages
    /// queued since a stopped turn precede the message.
    pub fn start_turn(self: &Arc<Self>, prompt: Vec<Part>, by: &str) -> Result<TurnHandle> {
        self.start(prompt, by, None)
    }

    /// Runs the prompt of the turn `retries` again, with the context of that turn; otherwise like
    /// [`Session::start_turn`].
    pub fn retry_turn(self: &Arc<Self>, prompt: Vec<Part>, by: &str, retries: TurnId) -> Result<TurnHandle> {
        self.start(prompt, by, Some(retries))
    }

    fn start(self: &Arc<Self>, prompt: Vec<Part>, by: &str, retries: Option<TurnId>) -> Result<TurnHandle> {
        let permit = self.turn_slots.enter()?;
        let mut turn_queue = self.turn_queue();
        if turn_queue.closing {
            return Err(self.is_closing());
        }
        if turn_queue.turn.is_some() || turn_queue.promoting {
            let what = turn_queue.turn.as_ref().map_or("queued messages".into(), |running| format!("turn {}", running.id));
            let message = format!("session {} is working on {what}", self.log.id);
            return Err(Error::new(Kind::SessionBusy, message).hint("wait for it to end, or cancel it"));
        }
        let start = Start { message: Message::user(prompt), by: Some(by.into()), waiting: true, retries };
        Ok(self.launch(&mut turn_queue, permit, start))
    }

    /// Starts the task of a turn. No other turn may be running.
    pub(super) fn launch(self: &Arc<Self>, turn_queue: &mut TurnQueue, permit: TurnPermit, start: Start) -> TurnHandle {
        let (id, cancel) = (TurnId::new(), self.shutdown.child_token());
        let ((opened, is_open), (done, end)) = (watch::channel(false), watch::channel(None));
        let handle = TurnHandle { id: id.clone(), cancel: cancel.clone(), opened: is_open, end };
        turn_queue.turn = Some(handle.clone());
        self.used();
        let turn = Turn { id, session: self.clone(), cancel, prompt: Vec::new(), opened, permit };
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
    async fn run(mut self, start: Start) -> TurnEnd {
        if let Err(error) = self.session.own().await {
            let mut turn_queue = self.session.turn_queue();
            turn_queue.turn.take_if(|running| running.id == self.id);
            turn_queue.prompts.refuse(&error);
            return TurnEnd::lost(error);
        }
        let result = match self.open(start).await {
            Ok(_) => match AssertUnwindSafe(self.work()).catch_unwind().await {
                Ok(result) => result,
                Err(panic) => self.close_open_items(panic_message(&*panic)).await,
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

    /// Records the start of the turn and its prompt. The prompt is committed before the agent runs.
    async fn open(&mut self, Start { message, by, waiting, retries }: Start) -> Result<Seq> {
        self.emit(Body::TurnStarted { by, retries }).await;
        let (untitled, queue) = self.session.log.state(|state| {
            let runs = state.queue.iter().filter(|queued| waiting && queued.auto_run);
            (state.title.is_none(), runs.map(|queued| queued.message.clone()).collect::<Vec<_>>())
        });
        if let Some(title) = title_of(&message.parts).filter(|_| untitled) {
            self.emit(Body::SessionUpdated { change: SessionChange { title: Some(title), ..Default::default() } }).await;
        }
        for earlier in queue {
            self.prompt.extend_from_slice(&earlier.parts);
            self.emit(earlier.completed()).await;
        }
        self.prompt.extend_from_slice(&message.parts);
        let seq = self.commit(message.completed()).await?;
        self.opened.send_replace(true);
        Ok(seq)
    }

    /// After a panic: ends the messages, permissions and calls that the agent left open.
    async fn close_open_items(&self, panic: &str) -> Result<StopReason> {
        let error = Error::internal(format!("the agent panicked: {panic}"));
        // Once this is committed, the state includes all earlier events.
        self.commit(Body::notice(Severity::Error, "Internal error", error.message.clone())).await?;
        for body in self.session.log.state(|state| state.closing()) {
            if !body.ends_turn() {
                self.emit(body).await;
            }
        }
        Err(error)
    }

    /// Ends the turn. The claim is released while the end is put into the log's queue: events of
    /// the next turn come after it, and a client that sees the end can start the next turn.
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
        let permit = self.permit;
        let release = || {
            drop(permit);
            let mut turn_queue = self.session.turn_queue();
            turn_queue.turn.take_if(|running| running.id == self.id);
            let next =
                completed && (!turn_queue.enqueuing.is_empty() || self.session.log.state(|state| state.runs_next().is_some()));
            turn_queue.promoting = next || !turn_queue.prompts.is_empty();
            turn_queue
        };
        let appended = self.session.log.append_holding(Some(self.id.clone()), body, true, release).await;
        // The claim is also released if the writer has ended.
        self.session.release_claim(&self.id);
        let committed = match appended {
            Ok(committed) => committed.await.unwrap_or_else(|_| Err(Error::internal("the log writer has ended"))),
            Err(error) => Err(error),
        };
        if let Err(error) = &committed {
            let mut turn_queue = self.session.turn_queue();
            turn_queue.promoting = false;
            turn_queue.prompts.refuse(error);
            drop(turn_queue);
            self.session.recover();
        }
        let usage = self.session.log.state(|state| state.turns.get(&self.id).and_then(|turn| turn.usage));
        self.session.promote();
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

    /// Commits an event durably, before an external effect.
    pub async fn commit_durably(&self, body: Body) -> Result<Seq> {
        self.session.log.commit_durably(Some(self.id.clone()), body).await
    }

    /// Requests permission from the attached clients and waits for the first answer, the deadline
    /// or a cancel. Any outcome except an offered allow option denies. Returns the id for the
    /// `permission.resolved` event, which the caller appends with the rule to remember.
    pub async fn ask(
        &self,
        tool_call_id: ToolCallId,
        content: Vec<ToolContent>,
        options: Vec<PermissionOption>,
        timeout: Duration,
    ) -> (Option<PermissionId>, PermissionAnswer) {
        let id = PermissionId::new();
        let broker = &self.session.broker;
        let Some(mut answered) = broker.ask(id.clone(), options.clone()) else {
            let reason = Some("no client is attached to answer");
            return (None, PermissionAnswer::without_choice(PermissionOutcome::Denied, "nobody", reason));
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
                broker.dismiss(&id, PermissionOutcome::Denied, "deadline", "no answer before the deadline");
                answered.await.ok()
            }
        };
        let disconnected = || PermissionAnswer::without_choice(PermissionOutcome::Denied, "disconnect", None);
        (Some(id), answer.unwrap_or_else(disconnected))
    }
}

/// The final event of a failed turn.
pub(super) fn failed(error: &Error) -> Body {
    Body::TurnFailed { code: error.kind.row().code.into(), message: error.message.clone(), hint: error.hint.clone() }
}

/// The message of a panic.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
