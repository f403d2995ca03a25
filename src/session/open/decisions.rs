//! New work of a session: prompts, messages, and changes of queued messages. Each decision of the
//! core and its events enter the log's queue in one step.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::content::{BudgetLimits, Part};
use crate::error::{Error, Result};
use crate::event::{Actor, Body};
use crate::id::{MessageId, Seq, TurnId};
use crate::session::agent_setting::AgentSetting;
use crate::session::folds::queued_messages::LeftQueue;
use crate::session::message::{IncomingMessage, QueueChange, WaitingMessage};
use crate::session::open::RemoteCall;
use crate::session::open::owned_session::OwnedSession;
use crate::session::owner::lock;
use crate::session::turn::TurnHandle;
use crate::session::turn::core::SessionCore;
use crate::session::turn::new_turn::{MessageDestination, NewTurn, Next, QueuedPrompt};

pub(crate) use crate::session::turn::new_turn::PromptRequest;

/// Maximum time that the next turn of a session waits, after the end of the previous turn, for the
/// response to that turn's prompt.
const ANSWER_WRITTEN: Duration = Duration::from_secs(2);

pub(crate) enum AcceptedPrompt {
    /// The prompt's turn has started.
    Started(TurnHandle),
    /// The prompt waits for the running turn to end.
    Waits(WaitingPrompt),
}

/// The caller's handle to a waiting prompt.
pub(crate) struct WaitingPrompt {
    id: MessageId,
    session: OwnedSession,
    started: oneshot::Receiver<Result<TurnHandle>>,
}

impl WaitingPrompt {
    /// Waits for the turn to start. Returns `None` if the prompt was cancelled before that.
    pub(crate) async fn started(mut self, cancel: &CancellationToken) -> Result<Option<TurnHandle>> {
        tokio::select! {
            biased;
            started = &mut self.started => return started.ok().transpose(),
            () = cancel.cancelled() => drop(self.session.core().remove_prompts(|prompt| prompt.message.id == self.id)),
        }
        // The turn may have started before the prompt was removed.
        self.started.await.ok().transpose()
    }
}

/// The place of a message that was accepted.
pub(crate) enum Placement {
    /// A separate turn, which is already claimed.
    Turn(TurnHandle),
    /// The queue, or the conversation. The message names the turn that it steers.
    Log { committed: oneshot::Receiver<Result<Seq>>, steers: Option<TurnId> },
}

impl Placement {
    /// Waits until the message is in the log of `session`. Returns its turn, if it already has one.
    pub(crate) async fn arrived(self, session: &OwnedSession) -> Result<Option<TurnId>> {
        match self {
            Placement::Turn(mut turn) => turn.opened().await.map(|()| Some(turn.id)),
            Placement::Log { committed, steers } => session.committed(committed).await.map(|_| steers),
        }
    }
}

impl OwnedSession {
    /// Returns an error unless the session accepts new work. `forwarded`: another process forwarded
    /// the work, and runs it itself if this process is about to end.
    fn check_accepts(&self, core: &SessionCore, forwarded: bool) -> Result<()> {
        core.check_open()?;
        let generation = self.call.as_ref().and_then(|call| call.generation);
        let busy = || lock::busy(&self.log.id, None);
        match forwarded && core.is_idle() && self.hands_over() {
            true => Err(busy()),
            false if generation.is_some_and(|generation| generation != self.generation()) => Err(busy()),
            false => self.check_owned(),
        }
    }

    /// Starts a turn with the user's message, or queues it until the running turn ends. The turn or
    /// the queue position is claimed when this returns, as in [`Session::start_turn`]. Returns
    /// `session_busy` if too many prompts wait.
    pub(crate) fn prompt(&self, message: IncomingMessage, request: PromptRequest) -> Result<AcceptedPrompt> {
        let mut core = self.core();
        self.check_accepts(&core, request.forwarded)?;
        if core.accepts_prompt() {
            let permit = self.turn_slots.enter()?;
            let PromptRequest { by, budget, answered, .. } = request;
            let turn = NewTurn { budget, answered: Some(answered), ..core.new_turn(message, Some(by)) };
            return Ok(AcceptedPrompt::Started(self.launch(&mut core, permit, turn)));
        }
        let (id, (started, receiver)) = (message.id.clone(), oneshot::channel());
        core.queue_prompt(QueuedPrompt { message, request, started })?;
        self.start_next(&mut core);
        Ok(AcceptedPrompt::Waits(WaitingPrompt { id, session: self.clone(), started: receiver }))
    }

    /// Starts a turn with the user's message; `by` is the client that sent it. The session is
    /// claimed when this function returns: another prompt fails with `session_busy`, and a cancel
    /// applies to this turn. Messages queued since a stopped turn precede the message.
    pub(crate) fn start_turn(&self, message: IncomingMessage, by: Actor, budget: Option<BudgetLimits>) -> Result<TurnHandle> {
        self.start(message, by, |turn| NewTurn { budget, ..turn })
    }

    /// Runs the prompt of the turn `retries` again, as `message`, with the context of that turn.
    /// Queued messages run after it. Otherwise like [`Session::start_turn`].
    pub(crate) fn retry_turn(&self, message: IncomingMessage, by: Actor, retries: TurnId) -> Result<TurnHandle> {
        self.start(message, by, |turn| NewTurn { after: 0, retries: Some(retries), ..turn })
    }

    /// Starts a turn for an external turn; `by` is the client of the agent that started it. Queued
    /// messages run after it.
    pub(crate) fn start_external_turn(&self, prompt: Vec<Part>, by: Actor) -> Result<()> {
        let message = IncomingMessage::user(MessageId::new(), prompt);
        self.start(message, by, |turn| NewTurn { after: 0, external: true, ..turn }).map(drop)
    }

    fn start(&self, message: IncomingMessage, by: Actor, with: impl FnOnce(NewTurn) -> NewTurn) -> Result<TurnHandle> {
        let mut core = self.core();
        self.check_accepts(&core, self.call_id().is_some())?;
        core.check_idle()?;
        let turn = with(core.new_turn(message, Some(by)));
        // The limit on running turns does not apply: the external turn already runs.
        let permit = match turn.external {
            true => self.turn_slots.enter_unlimited()?,
            false => self.turn_slots.enter()?,
        };
        Ok(self.launch(&mut core, permit, turn))
    }

    /// Chooses the place of a message, without waiting, so that calls are served in order.
    pub(crate) fn place(&self, queued: &WaitingMessage) -> Result<Placement> {
        let mut core = self.core();
        self.check_accepts(&core, self.call_id().is_some())?;
        let destination = core.destination(queued)?;
        let body = match &destination {
            MessageDestination::Turn => {
                let permit = self.turn_slots.enter()?;
                let turn = core.new_turn(queued.message.clone(), queued.by.clone());
                return Ok(Placement::Turn(self.launch(&mut core, permit, turn)));
            }
            MessageDestination::Queue(_) => Body::MessageQueued(queued.queued()),
            MessageDestination::Conversation => queued.message.clone().completed(),
        };
        let committed = self.log.try_append(body, None)?;
        let MessageDestination::Queue(steers) = destination else { return Ok(Placement::Log { committed, steers: None }) };
        core.queue_message(queued.clone());
        Ok(Placement::Log { committed, steers })
    }

    /// Edits or removes a queued message. Fails if the message is not queued, or is being
    /// delivered. Returns the seq of the event that records the change.
    pub(crate) async fn change_queued(&self, id: MessageId, change: QueueChange, by: Actor) -> Result<Seq> {
        if let Some(seq) = self.changed_before().await? {
            return Ok(seq);
        }
        let committed = {
            let mut core = self.core();
            self.check_accepts(&core, false)?;
            if !core.is_waiting(&id) {
                return Err(self.not_queued(&id));
            }
            let committed = self.log.try_append(change.clone().event(id.clone(), &by), self.call_id())?;
            core.change(&id, change);
            committed
        };
        self.committed(committed).await
    }

    /// Returns the id of the call of another process that uses the handle.
    fn call_id(&self) -> Option<MessageId> {
        self.call.as_ref().map(|call| call.id.clone())
    }

    /// Returns the event of the call, if an earlier attempt of it changed the session.
    async fn changed_before(&self) -> Result<Option<Seq>> {
        match &self.call {
            Some(RemoteCall { id, repeated_after: Some(after), .. }) => self.log.event_of_call(*after, id).await,
            _ => Ok(None),
        }
    }

    /// Appends an event outside of a turn, such as a mode change, for the call that uses the
    /// handle. Returns its seq once it is committed.
    pub(crate) async fn change(&self, body: Body) -> Result<Seq> {
        self.agent().check_settings(&AgentSetting::set_by(&body))?;
        self.own().await?;
        match self.changed_before().await? {
            Some(seq) => Ok(seq),
            None => self.log.commit_for(self.call_id(), body).await,
        }
    }

    /// Appends an event while no turn runs and no message waits, as [`Session::change`] does;
    /// otherwise fails with `session_busy`.
    pub(crate) async fn change_between_turns(&self, body: Body) -> Result<Seq> {
        self.agent().check_settings(&AgentSetting::set_by(&body))?;
        self.own().await?;
        if let Some(seq) = self.changed_before().await? {
            return Ok(seq);
        }
        let committed = {
            let core = self.core();
            core.check_idle()?;
            self.check_owned()?;
            self.log.try_append(body, self.call_id())?
        };
        self.committed(committed).await
    }

    fn not_queued(&self, id: &MessageId) -> Error {
        let (queued, left) = self.log.state(|state| (state.queue.iter().any(|queued| queued.has_id(id)), state.queue.left(id)));
        Error::not_found(match left {
            Some(LeftQueue::Delivered) => format!("message {id} was already delivered"),
            Some(LeftQueue::Removed) => format!("message {id} was already removed"),
            None if queued => format!("message {id} is being delivered or removed"),
            None => format!("no queued message {id}"),
        })
    }

    /// Appends the messages that do not start a turn, then starts the next turn. Does nothing while
    /// a turn runs.
    pub(in crate::session) fn start_next(&self, core: &mut SessionCore) {
        if core.is_between_turns() {
            let forwarded = |prompt: &QueuedPrompt| prompt.request.forwarded;
            let ends = self.shutdown.is_cancelled();
            if ends || self.hands_over() {
                // The processes that forwarded the prompts run them.
                refuse(core.remove_prompts(forwarded), &lock::busy(&self.log.id, None));
            }
            if ends {
                drop(core.remove_prompts(|_| true));
            } else {
                // If the log's queue is full, the message is appended after the next turn.
                core.append_silent(|queued| self.log.try_append(queued.message.clone().completed(), None).is_ok());
                self.launch_next(core);
            }
        }
        self.settled.notify_waiters();
    }

    fn launch_next(&self, core: &mut SessionCore) {
        if core.is_idle() {
            return;
        }
        // The new turn replaces the ended one, so the limit on running turns does not apply.
        let permit = match self.turn_slots.enter_unlimited() {
            Ok(permit) => permit,
            Err(error) => return refuse(core.remove_prompts(|_| true), &error),
        };
        match core.start_next() {
            Next::Nothing => {}
            Next::AwaitAnswer(answered) => {
                let session = self.clone();
                self.tasks.spawn(async move {
                    session.answer_written(&answered).await;
                    session.start_next(&mut session.core());
                });
            }
            Next::Start(turn, started) => {
                let turn = self.launch(core, permit, *turn);
                if let Some(Err(Ok(turn))) = started.map(|started| started.send(Ok(turn))) {
                    // The request that sent the prompt was dropped: the turn is no longer wanted.
                    turn.cancel();
                }
            }
        }
    }

    /// Waits until the answer to a prompt is written, for a limited time: the client may not read,
    /// or the process that forwarded the prompt may hang.
    pub(in crate::session) async fn answer_written(&self, answered: &CancellationToken) {
        tokio::select! {
            () = answered.cancelled() => {}
            () = self.shutdown.cancelled() => {}
            () = tokio::time::sleep(ANSWER_WRITTEN) => {}
        }
        answered.cancel();
    }
}

pub(in crate::session) fn refuse(prompts: Vec<QueuedPrompt>, error: &Error) {
    for prompt in prompts {
        let _ = prompt.started.send(Err(error.clone()));
    }
}
