//! Runs each turn on its own task, and always records the end of the turn.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::capacity::{TurnPermit, shutting_down};
use super::message::IncomingMessage;
use super::open::Session;
use super::title::title_of;
use super::turn::{Turn, TurnEnd, TurnHandle, TurnProgress, failed, panic_message};
use super::turn_queue::TurnQueue;
use super::turns::TurnRecord;
use crate::content::{BudgetLimits, Part, StopReason, plain_text};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Delivery, SessionChange, Severity};
use crate::id::{MessageId, Seq, TurnId};
use crate::toolkit::Subagents;

/// The input of a turn.
pub(super) struct TurnInput {
    pub message: IncomingMessage,
    /// The client that sent the prompt.
    pub by: Option<String>,
    /// If true, the queued messages precede the message in this turn.
    pub waiting: bool,
    /// The earlier turn whose prompt runs again.
    pub retries: Option<TurnId>,
    /// Limits of the turn.
    pub budget: Option<BudgetLimits>,
    /// Another client of the agent has begun the turn.
    pub adopted: bool,
}

impl Session {
    /// Starts a turn with the user's message; `by` is the client that sent it. The session is
    /// claimed when this function returns: another prompt gets `session_busy`, and a cancel applies
    /// to this turn. Messages queued since a stopped turn precede the message.
    pub(crate) fn start_turn(&self, message: IncomingMessage, by: &str, budget: Option<BudgetLimits>) -> Result<TurnHandle> {
        self.start(TurnInput { message, by: Some(by.into()), waiting: true, retries: None, budget, adopted: false })
    }

    /// Runs the prompt of the turn `retries` again, as `message`, with the context of that turn.
    /// Queued messages run after it. Otherwise like [`Session::start_turn`].
    pub(crate) fn retry_turn(&self, message: IncomingMessage, by: &str, retries: TurnId) -> Result<TurnHandle> {
        self.start(TurnInput { message, by: Some(by.into()), waiting: false, retries: Some(retries), budget: None, adopted: false })
    }

    /// Starts a turn for a turn that another client of the agent has begun; `by` is that client.
    /// Queued messages run after it.
    pub(crate) fn adopt_turn(&self, prompt: Vec<Part>, by: &str) -> Result<()> {
        let message = IncomingMessage::user(MessageId::new(), prompt);
        self.start(TurnInput { message, by: Some(by.into()), waiting: false, retries: None, budget: None, adopted: true }).map(drop)
    }

    fn start(&self, input: TurnInput) -> Result<TurnHandle> {
        // The limit on running turns does not apply to a turn that runs already.
        let permit = match input.adopted {
            true => self.turn_slots.enter_unlimited().ok_or_else(shutting_down)?,
            false => self.turn_slots.enter()?,
        };
        let mut turn_queue = self.turn_queue();
        if turn_queue.is_closing() {
            return Err(self.closing());
        }
        if !turn_queue.is_idle() {
            let what = turn_queue.turn().map_or("queued messages".into(), |running| format!("turn {}", running.id));
            let busy = format!("session {} is working on {what}", self.log.id);
            return Err(Error::new(Kind::SessionBusy, busy).hint("wait for it to end, or cancel it"));
        }
        self.check_owned()?;
        Ok(self.launch(&mut turn_queue, permit, input))
    }

    /// Starts the task of a turn. No other turn may be running.
    pub(super) fn launch(&self, turn_queue: &mut TurnQueue, permit: TurnPermit, input: TurnInput) -> TurnHandle {
        let (id, cancel) = (TurnId::new(), self.shutdown.child_token());
        let (progress, handle) = TurnProgress::new(id.clone(), cancel.clone());
        turn_queue.claim(handle.clone());
        self.used();
        let (log, clients, broker) = (self.log.clone(), self.clients.clone(), self.broker.clone());
        let (taking, returning) = (self.clone(), self.clone());
        let cancelled = cancel.clone();
        let cancel = cancel.child_token();
        let turn = Turn {
            id,
            log,
            clients,
            cancel,
            prompt: Vec::new(),
            broker,
            responders_wait_until: None,
            adopted: input.adopted,
            steered: Box::new(move || taking.take_queued(|queued| queued.delivery == Delivery::Steer)),
            not_delivered: Box::new(move |id| returning.turn_queue().not_delivered(id)),
            subagents: None,
            children: self.children.clone(),
            ancestors: self.ancestors.clone(),
            asked_above: Mutex::default(),
        };
        let running = RunningTurn { turn, session: self.clone(), permit, cancelled, answered: turn_queue.answered() };
        let span = tracing::info_span!("turn", session = %self.log.id, turn = %running.turn.id);
        let work = async move {
            let end = running.run(input, &progress).await;
            progress.ended(end);
        };
        self.tasks.spawn(work.instrument(span));
        handle
    }
}

/// A turn that runs on its own task.
struct RunningTurn {
    turn: Turn,
    session: Session,
    permit: TurnPermit,
    /// Cancelled when the turn is cancelled. The turn's own token is also cancelled when the turn
    /// must stop for another reason.
    cancelled: CancellationToken,
    /// Cancelled once the answer to the previous prompt is written. The turn opens after that.
    answered: Option<CancellationToken>,
}

impl RunningTurn {
    async fn run(mut self, input: TurnInput, progress: &TurnProgress) -> TurnEnd {
        if let Some(answered) = &self.answered {
            answered.cancelled().await;
        }
        if let Err(error) = self.session.own_for(Some(&self.turn.id)).await {
            self.session.turn_queue().fail(&self.turn.id, &error);
            return TurnEnd::lost(error);
        }
        self.turn.responders_wait_until = self.session.responders_wait_until();
        let work = async {
            self.open(input, progress).await?;
            self.work().await
        };
        let result = match AssertUnwindSafe(work).catch_unwind().await {
            Ok(result) => result,
            Err(panic) => self.close_open_items(panic_message(&*panic)).await,
        };
        self.close(result).await
    }

    /// Runs the agent. Cancels the turn when an append is lost, because later events would not be
    /// recorded.
    async fn work(&self) -> Result<StopReason> {
        let mut work = self.session.agent.run(&self.turn);
        tokio::select! {
            biased;
            result = &mut work => return result,
            () = self.turn.log.lost() => self.turn.cancel.cancel(),
        }
        work.await
    }

    /// Records the start of the turn and its prompt. The prompt is committed before the agent runs.
    async fn open(
        &mut self,
        TurnInput { mut message, by, waiting, retries, budget, adopted: _ }: TurnInput,
        progress: &TurnProgress,
    ) -> Result<Seq> {
        let turn = &mut self.turn;
        let mut opens = turn.log.state(|state| state.history.lacks_context(retries.as_ref()));
        turn.emit(Body::TurnStarted { by, retries, budget }).await;
        let queue = self.session.take_queued(|queued| waiting && queued.auto_run);
        let untitled = turn.log.state(|state| state.title.is_none());
        if let Some(title) = title_of(&message.parts).filter(|_| untitled) {
            turn.emit(Body::SessionUpdated { change: SessionChange { title: Some(title), ..Default::default() } }).await;
        }
        let agent = &self.session.agent;
        for mut earlier in queue.into_iter().map(|queued| queued.message) {
            if let Err(error) = agent.prepare(turn, &mut earlier, std::mem::take(&mut opens)).await {
                turn.reject(earlier, error).await;
                continue;
            }
            turn.prompt.extend_from_slice(&earlier.parts);
            turn.emit(earlier.completed()).await;
        }
        if let Err(error) = agent.prepare(turn, &mut message, opens).await {
            turn.emit(message.rejected()).await;
            return Err(error);
        }
        turn.prompt.extend_from_slice(&message.parts);
        turn.subagents = Some(Subagents {
            spawner: self.session.spawner.clone(),
            session: turn.log.id.clone(),
            turn: turn.id.clone(),
            prompt: plain_text(&turn.prompt).into(),
            budget: Arc::default(),
        });
        let seq = turn.commit(message.completed()).await?;
        progress.opened();
        Ok(seq)
    }

    /// Cleans up after a panic: ends the messages, permission requests and tool calls that the
    /// agent left open.
    async fn close_open_items(&self, panic: &str) -> Result<StopReason> {
        let error = Error::internal(format!("the agent panicked: {panic}"));
        // Wait for the commit, so that the state includes all earlier events when the open items
        // are read.
        self.turn.commit(Body::notice(Severity::Error, "Internal error", error.message.clone())).await?;
        let (closing, children) = self.turn.log.state(|state| (state.closing(), state.open_children.clone()));
        for body in closing {
            // Running subagents record their end, and the end of their permission requests.
            let of_child = match &body {
                Body::ChildCompleted { .. } => true,
                Body::PermissionResolved { tool_call_id, .. } => children.iter().any(|child| child.tool_call_id == *tool_call_id),
                _ => false,
            };
            if !body.ends_turn() && !of_child {
                self.turn.emit(body).await;
            }
        }
        Err(error)
    }

    /// Ends the turn. The turn's claim on the session is released while the last event is put into
    /// the log's queue, as [`TurnQueue`] requires.
    async fn close(self, result: Result<StopReason>) -> TurnEnd {
        let RunningTurn { turn: Turn { id, log, .. }, session, permit, cancelled, .. } = self;
        let result = match log.failed() {
            Some(error) => Err(error),
            None if cancelled.is_cancelled() => Ok(StopReason::Cancelled),
            None => result,
        };
        let body = match &result {
            Ok(StopReason::Cancelled) => Body::TurnCancelled {},
            Ok(stop_reason) => Body::TurnCompleted { stop_reason: *stop_reason },
            Err(error) => {
                tracing::info!(session = %log.id, turn = %id, error = ?error, "turn failed");
                failed(error)
            }
        };
        let completed = matches!(body, Body::TurnCompleted { .. });
        let release = || {
            drop(permit);
            let mut turn_queue = session.turn_queue();
            let runs_next = log.state(|state| state.runs_next().is_some());
            turn_queue.end(&id, completed, runs_next);
            turn_queue
        };
        let appended = log.append_holding(Some(id.clone()), body, true, release).await;
        // If the writer has exited, `release` was not called: release the claim here.
        session.turn_queue().release(&id);
        let committed = match appended {
            Ok(committed) => committed.await.unwrap_or_else(|_| Err(Error::internal("the log writer has ended"))),
            Err(error) => Err(error),
        };
        if let Err(error) = &committed {
            session.turn_queue().fail(&id, error);
            session.recover();
        }
        let (usage, cost) = log.state(|state| state.turns.get(&id).map_or((None, None), TurnRecord::total));
        session.promote();
        match committed {
            Ok(seq) => TurnEnd { result, seq, usage, cost },
            Err(error) => TurnEnd::lost(error),
        }
    }
}
