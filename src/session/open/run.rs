//! Runs each turn on its own task, and always records the end of the turn.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::decisions::refuse;
use crate::content::{StopReason, plain_text};
use crate::error::{Error, Result};
use crate::event::{Body, CancelCause, Delivery, PermissionDecision, SessionChange, Severity};
use crate::id::{Seq, TurnId};
use crate::session::events::log::committed;
use crate::session::folds::turns::TurnRecord;
use crate::session::open::owned_session::OwnedSession;
use crate::session::title::title_of;
use crate::session::turn::asking_turn::AskingTurn;
use crate::session::turn::capacity::TurnPermit;
use crate::session::turn::core::SessionCore;
use crate::session::turn::new_turn::NewTurn;
use crate::session::turn::{Turn, TurnEnd, TurnHandle, TurnProgress, failed, panic_message, rejection};
use crate::toolkit::Subagents;

impl OwnedSession {
    /// Starts the task of a turn. No other turn may be running.
    pub(in crate::session) fn launch(&self, core: &mut SessionCore, permit: TurnPermit, input: NewTurn) -> TurnHandle {
        let (id, cancelled) = (TurnId::new(), self.shutdown.child_token());
        let cancel = cancelled.child_token();
        let asking = AskingTurn::new(self.turn_slots.clone(), cancel.clone());
        let (progress, mut handle) = TurnProgress::new(id.clone(), cancelled.clone());
        handle.asking = Some(asking.clone());
        let answered = core.unwritten_answer();
        core.claim(handle.clone(), input.answered.clone());
        self.settled.notify_waiters();
        self.used();
        let (log, clients, broker) = (self.log.clone(), self.clients.clone(), self.broker.clone());
        let (steering, taking, returning) = (self.clone(), self.clone(), self.clone());
        let turn = Turn {
            id,
            log,
            clients,
            cancel,
            prompt: Vec::new(),
            derived_title: None,
            broker,
            responders_wait_until: None,
            external: input.external,
            steering: Box::new(move |turn| {
                let session = steering.clone();
                Box::pin(async move { session.steer(turn).await })
            }),
            steered: Box::new(move || taking.core().take(|_, queued| queued.delivery == Delivery::Steer)),
            not_delivered: Box::new(move |id| returning.core().put_back(id)),
            subagents: None,
            children: self.children.clone(),
            ancestors: self.ancestors.clone(),
            asking,
            asked_above: Mutex::default(),
        };
        let claim = Claim { session: self.clone(), turn: handle.id.clone(), is_open: true };
        let running = RunningTurn { turn, session: self.clone(), permit, cancelled, answered, claim };
        let span = tracing::info_span!("turn", session = %self.log.id, turn = %running.turn.id);
        let work = async move {
            let end = running.run(input, &progress).await;
            progress.ended(end);
        };
        self.tasks.spawn(work.instrument(span));
        handle
    }

    /// Delivers the steering messages to the running turn. Returns whether there were any.
    ///
    /// A message waits until the event of its delivery enters the log's queue. If it was changed or
    /// removed while it was prepared, or if an earlier message steers now, the core decides again.
    async fn steer(&self, turn: &Turn) -> Result<bool> {
        let mut any = false;
        loop {
            let next = self.core().next_steering().cloned();
            let Some(queued) = next else { return Ok(any) };
            let mut message = queued.message.clone();
            let rejected = self.agent.prepare(turn, &mut message, false).await.err();
            let body = if rejected.is_some() { message.rejected() } else { message.completed() };
            let room = turn.log.room().await?;
            let delivered = {
                let mut core = self.core();
                core.take_prepared(&queued).then(|| room.append(turn.id.clone(), body))
            };
            let Some(delivered) = delivered else { continue };
            any = true;
            committed(delivered).await?;
            if let Some(error) = rejected {
                turn.emit(rejection(error)).await;
            }
        }
    }
}

/// A turn that runs on its own task.
struct RunningTurn {
    turn: Turn,
    session: OwnedSession,
    permit: TurnPermit,
    /// Cancelled when the turn is cancelled. The turn's own token is also cancelled when the turn
    /// must stop for another reason.
    cancelled: CancellationToken,
    /// Cancelled once the answer to the previous prompt is written. The turn opens after that.
    answered: Option<CancellationToken>,
    claim: Claim,
}

/// RAII guard: the claim of a running turn on its session. The session is idle again once the end
/// of the turn is committed, or when the guard is dropped.
struct Claim {
    session: OwnedSession,
    turn: TurnId,
    is_open: bool,
}

impl Claim {
    /// Releases the claim of a turn whose end is committed, and starts the next turn.
    fn committed(mut self) {
        self.is_open = false;
        let mut core = self.session.core();
        self.session.log.state(|state| core.end_committed(&self.turn, &state.queue));
        self.session.start_next(&mut core);
    }

    /// Releases the claim of a turn whose end is not in the log: answers the waiting prompts with
    /// the error, and takes the session again, which ends the turn in the log.
    fn fail(&mut self, error: &Error) {
        self.is_open = false;
        refuse(self.session.core().fail(&self.turn), error);
        self.session.settled.notify_waiters();
        self.session.recover();
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.is_open {
            let error = Error::internal("the turn's task ended before the turn");
            self.session.log.fail(&error);
            self.fail(&error);
        }
    }
}

impl RunningTurn {
    async fn run(mut self, input: NewTurn, progress: &TurnProgress) -> TurnEnd {
        if let Some(answered) = &self.answered {
            self.session.answer_written(answered).await;
        }
        if let Err(error) = self.session.own_for(Some(&self.turn.id)).await {
            self.claim.fail(&error);
            return TurnEnd::lost(error);
        }
        self.turn.responders_wait_until = *self.session.others.responders_wait_until.lock();
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
        NewTurn { mut message, by, after, retries, budget, .. }: NewTurn,
        progress: &TurnProgress,
    ) -> Result<Seq> {
        let turn = &mut self.turn;
        let mut opens = turn.log.state(|state| state.history.lacks_context(retries.as_ref()));
        turn.emit(Body::TurnStarted { by, retries, budget }).await;
        let queue = self.session.core().take(|number, queued| queued.auto_run && number < after);
        let untitled = turn.log.state(|state| state.settings.title.is_none());
        if let Some(title) = title_of(&message.parts).filter(|_| untitled) {
            turn.derived_title = Some(title.clone());
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
                Body::PermissionResolved(PermissionDecision { tool_call_id, .. }) => {
                    children.iter().any(|child| child.tool_call_id == *tool_call_id)
                }
                _ => false,
            };
            if !body.ends_turn() && !of_child {
                self.turn.emit(body).await;
            }
        }
        Err(error)
    }

    /// Ends the turn. The core ends it in the same step in which its last event enters the log's
    /// queue.
    async fn close(self, result: Result<StopReason>) -> TurnEnd {
        let RunningTurn { turn: Turn { id, log, asking, .. }, session, permit, cancelled, mut claim, .. } = self;
        let cause = asking.is_unanswered().then_some(CancelCause::Unanswered);
        let result = match log.failed() {
            Some(error) => Err(error),
            None if cancelled.is_cancelled() || cause.is_some() => Ok(StopReason::Cancelled),
            None => result,
        };
        let body = match &result {
            Ok(StopReason::Cancelled) => Body::TurnCancelled { cause },
            Ok(stop_reason) => Body::TurnCompleted { stop_reason: *stop_reason },
            Err(error) => {
                tracing::info!(session = %log.id, turn = %id, error = ?error, "turn failed");
                failed(error)
            }
        };
        let completed = matches!(body, Body::TurnCompleted { .. });
        let end = async {
            let room = log.room().await?;
            drop(permit);
            let end = {
                let mut core = session.core();
                core.end(&id, completed);
                room.append(id.clone(), body)
            };
            committed(end).await
        };
        let committed = end.await;
        let (usage, cost) = log.state(|state| state.turns.get(&id).map_or((None, None), TurnRecord::total));
        match committed {
            Ok(seq) => {
                claim.committed();
                TurnEnd { result, seq, usage, cost, cause }
            }
            Err(error) => {
                claim.fail(&error);
                TurnEnd::lost(error)
            }
        }
    }
}
