//! Subagents: child sessions that work for a tool call of their parent.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{MissedTickBehavior, interval};

use crate::config::Policy;
use crate::content::{BudgetLimits, Part, Role, StopReason, ToolContent};
use crate::error::{Error, Kind, Result};
use crate::event::{Actor, Body, ChildEnd, ChildLabel, ChildStatus, Delivery, ParentCall, SessionChange, SessionParent};
use crate::id::{MessageId, SessionId, TurnId};
use crate::limits;
use crate::options::Mode;
use crate::permission::rules::stricter;
use crate::session::events::follow::Follow;
use crate::session::folds::spending::Spending;
use crate::session::folds::work_view::WorkView;
use crate::session::message::{IncomingMessage, WaitingMessage};
use crate::session::open::Session;
use crate::session::open::owned_session::OwnedSession;
use crate::session::sessions::{Lineage, Sessions};
use crate::session::turn::agent::SessionSetup;
use crate::session::turn::ancestor::Ancestor;
use crate::session::turn::capacity::shutting_down;
use crate::session::turn::running_children::ChildGuard;
use crate::session::turn::{TurnEnd, TurnHandle};
use crate::toolkit::{Progress, Spawner, Subagent, SubagentRequest, ToolError, tool_list};

impl Spawner for Sessions {
    fn spawn<'a>(
        &'a self,
        session: &'a SessionId,
        turn: &'a TurnId,
        prompt: &'a str,
        request: SubagentRequest,
    ) -> BoxFuture<'a, Result<Subagent, ToolError>> {
        Box::pin(async move {
            let (background, cancel) = (request.background, request.cancel.clone());
            let child = self.start_child(session, turn, prompt, request).await?;
            let (id, stop) = (child.session.log.id.clone(), child.guard.cancel.clone());
            let running = self.tasks.spawn(child.run());
            if background {
                return Ok(Subagent { session: id, end: None, answer: String::new() });
            }
            // The subagent also ends if this future is dropped.
            let _stop = stop.clone().drop_guard();
            let mut running = running;
            let ended = tokio::select! {
                biased;
                ended = &mut running => ended,
                () = cancel.cancelled() => {
                    stop.cancel();
                    running.await
                }
            };
            let (end, answer) = ended.map_err(|_| ToolError::new("internal error: the subagent panicked"))?;
            Ok(Subagent { session: id, end: Some(end), answer })
        })
    }
}

impl Sessions {
    /// Creates the child session and starts its turn. Does not wait for other subagents or turns.
    async fn start_child(
        &self,
        session: &SessionId,
        turn: &TurnId,
        prompt: &str,
        request: SubagentRequest,
    ) -> Result<RunningChild> {
        let sessions = self.this.upgrade().ok_or_else(shutting_down)?;
        let parent = self.opened(session).ok_or_else(|| Error::not_found(format!("session {session} is not open")))?.owned()?;
        let ancestors = ancestors_of(&parent, turn, prompt, &request);
        refuse_loop(&ancestors, &request)?;
        if request.profile.hosted.is_some()
            && parent.log.state(|state| state.parent.as_ref().is_some_and(|link| link.tools.is_some()))
        {
            let message = "a subagent with limited tools cannot start an agent that has tools of its own";
            return Err(Error::invalid_params(message).hint("do it yourself"));
        }
        let mut guard = parent.children.enter()?;
        let permit = self.subagents.clone().try_acquire_owned().map_err(|_| {
            let message = format!("{} subagents are already running", limits::SUBAGENTS_MAX);
            Error::new(Kind::Overloaded, message).hint("call task again when one has ended")
        })?;
        // The turn of the parent may use the last permit, so that waiting for one could block both.
        let turn_permit = self.turn_slots.enter_unlimited()?;
        let (progress, background) = (request.progress.clone(), request.background);
        let prompt = vec![Part::text(&request.prompt)];
        let (label, setup, mode, change) = child_of(&parent, turn, request);
        let above = Lineage { clients: parent.clients.clone(), ancestors: ancestors.into() };
        self.agents.check(&setup, &[])?;
        let child = self.create_session(setup, mode, change, above).await?;
        guard.count(turn.clone(), child.log.clone(), child.children.clone());
        let started = Body::ChildStarted { child: label.clone(), background };
        parent.log.commit(Some(turn.clone()), started).await?;
        let message = IncomingMessage::user(MessageId::new(), prompt);
        let handle = {
            let mut core = child.core();
            let turn = core.new_turn(message, Some(Actor::Task));
            child.launch(&mut core, turn_permit, turn)
        };
        let follow = child.log.follow(0);
        let view = WorkView::default();
        let progress = Some(progress).filter(|_| !background);
        Ok(RunningChild {
            sessions,
            parent,
            turn: turn.clone(),
            label,
            session: child,
            handle,
            follow,
            view,
            progress,
            guard,
            _permit: permit,
        })
    }
}

/// Creates the label, the setup, the mode and the properties of a new child session of `parent`.
fn child_of(parent: &Session, turn: &TurnId, request: SubagentRequest) -> (ChildLabel, SessionSetup, Mode, SessionChange) {
    let SubagentRequest { call_id, title, profile, mode, depth, background, .. } = request;
    // The parent's time limits end its other subagents.
    let mut budget = if background { request.budget } else { BudgetLimits::default() };
    budget.max_requests = profile.max_requests.into_iter().chain(budget.max_requests).min();
    let label = ChildLabel {
        child_session_id: SessionId::new(),
        tool_call_id: call_id.clone(),
        agent: profile.name.clone(),
        title: title.clone(),
    };
    parent.log.state(|state| {
        let own_mode = state.mode.known().unwrap_or_default();
        let (session_id, turn_id) = (parent.log.id.clone(), turn.clone());
        let link = SessionParent {
            call: ParentCall { session_id, turn_id, tool_call_id: call_id, agent: profile.name },
            depth,
            tools: tool_list::both(state.parent.as_ref().and_then(|parent| parent.tools.clone()), profile.tools),
            rules: state.rules.iter().map(|rule| serde_json::json!(rule)).collect(),
        };
        let own = SessionChange {
            model: profile.model.or_else(|| state.settings.model.clone()),
            thinking: state.settings.thinking.clone(),
            system_prompt: profile.system_prompt.or_else(|| state.settings.system_prompt.clone()),
            system_prompt_append: Some(append(state.settings.system_prompt_append.as_deref())),
            tools: state.settings.tools.clone(),
            ..SessionChange::default()
        };
        let change = SessionChange {
            title: Some(title),
            additional_directories: (!state.additional_directories().is_empty()).then(|| state.additional_directories().to_vec()),
            budget: Some(budget).filter(|budget| *budget != BudgetLimits::default()),
            agent: profile.hosted.clone(),
            // The settings of nuncio's own agent do not apply to a hosted one.
            ..if profile.hosted.is_some() { SessionChange::default() } else { own }
        };
        let setup = SessionSetup {
            id: label.child_session_id.clone(),
            cwd: state.cwd.clone(),
            directories: state.additional_directories().to_vec(),
            parent: Some(link),
            agent: profile.hosted,
        };
        (label, setup, mode.map_or(own_mode, |mode| stricter(own_mode, mode, Policy::Ask)), change)
    })
}

/// Returns the parent sessions of the new child session, nearest first.
fn ancestors_of(parent: &Session, turn: &TurnId, prompt: &str, request: &SubagentRequest) -> Vec<Ancestor> {
    let nearest = Ancestor {
        log: parent.log.clone(),
        broker: parent.broker.clone(),
        turn: turn.clone(),
        prompt: prompt.into(),
        tool_call_id: request.call_id.clone(),
        children: parent.children.clone(),
        budget: parent.log.state(|state| state.budget.given()),
        asking: parent.turn().filter(|running| running.id == *turn).and_then(|running| running.asking),
        responders_wait_until: *parent.others.responders_wait_until.lock(),
    };
    std::iter::once(nearest).chain(parent.ancestors.iter().cloned()).collect()
}

/// Returns an error if a parent session works on the same prompt with the same agent: such a task
/// would be delegated without end.
fn refuse_loop(ancestors: &[Ancestor], request: &SubagentRequest) -> Result<()> {
    let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
    let task = words(&request.prompt);
    let same = |ancestor: &&Ancestor| words(&ancestor.prompt) == task && ancestor.agent() == request.profile.name;
    if ancestors.iter().any(|ancestor| same(&ancestor)) {
        let message = "this is the task that you are working on: delegating it again would never end";
        return Err(Error::invalid_params(message).hint("do it yourself, or delegate a part of it"));
    }
    Ok(())
}

/// Returns the addition to the system prompt of a subagent: the instructions for subagents, after
/// `inherited`, the addition of its parent session.
fn append(inherited: Option<&str>) -> String {
    let own = "You are a subagent: another agent delegated a task to you. Work on it until it is done. Your last message is the \
               result, and the only text that the other agent receives. You cannot ask questions. Other agents may work in the same directory: do not revert their changes. \
               Report paths with lines, and what you could not do.";
    match inherited {
        // A subagent of a subagent inherits the addition.
        Some(inherited) if inherited.contains(own) => inherited.into(),
        Some(inherited) => format!("{inherited}\n\n{own}"),
        None => own.into(),
    }
}

/// A subagent that is running.
struct RunningChild {
    sessions: Arc<Sessions>,
    parent: OwnedSession,
    /// The turn of the parent that started the subagent.
    turn: TurnId,
    label: ChildLabel,
    session: OwnedSession,
    handle: TurnHandle,
    follow: Follow,
    view: WorkView,
    /// Shows the subagent in the parent's tool call; `None` in the background.
    progress: Option<Progress>,
    guard: ChildGuard,
    _permit: OwnedSemaphorePermit,
}

impl RunningChild {
    /// Runs the subagent to its end, closes its session and records the end in the parent's log.
    /// Returns the end and the last answer.
    async fn run(mut self) -> (ChildEnd, String) {
        let mut end = end(self.work().await);
        if let Err(error) = self.sessions.close(&self.session.log.id).await {
            tracing::warn!(session = %self.session.log.id, %error, "closing the session of a subagent failed");
        }
        // The child's totals include its own subagents.
        (end.usage, end.cost) = self.session.log.state(|state| state.turns.total());
        end.requests = self.session.log.state(|state| Spending::from_turns(state.turns.after(0)).requests);
        let (answer, unresolved) = std::mem::take(&mut self.view).into_result();
        end.unresolved = unresolved.map(Box::new);
        let running = self.parent.turn().is_some_and(|turn| turn.id == self.turn);
        let turn = Some(self.turn.clone()).filter(|_| running);
        // The amounts must be in the log before the subagent no longer counts as running.
        let completed = Body::ChildCompleted { child: self.label.clone(), end: end.clone() };
        if let Err(error) = self.parent.log.commit(turn, completed).await {
            tracing::warn!(session = %self.parent.log.id, %error, "recording the end of a subagent failed");
        }
        if self.progress.is_none() {
            self.report(&end, &answer).await;
        }
        (end, answer)
    }

    /// Runs the turns of the child session: the first one, and turns that messages started during
    /// the first one. Returns the result of the last turn.
    async fn work(&mut self) -> Result<StopReason> {
        loop {
            let turn = self.run_turn().await;
            // A background subagent of the child reports in a turn of the child.
            tokio::select! {
                () = self.session.children.ended() => {}
                () = self.guard.cancel.cancelled() => {}
            }
            let next = tokio::select! {
                biased;
                () = self.guard.cancel.cancelled() => None,
                next = self.session.next_turn() => next,
            };
            match next {
                Some(next) => self.handle = next,
                None => return turn.result,
            }
        }
    }

    /// Follows the running turn of the child session to its end.
    async fn run_turn(&mut self) -> TurnEnd {
        let mut updates = interval(limits::SUBAGENT_UPDATE);
        updates.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut cancelled, mut follows) = (false, true);
        let end = loop {
            tokio::select! {
                biased;
                () = self.guard.cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    self.session.cancel();
                }
                end = self.handle.end() => break end,
                _ = updates.tick(), if self.view.changed => self.show(),
                () = self.follow.moved(), if follows => follows = self.read().await,
            }
        };
        while self.follow.cursor() < end.seq {
            let before = self.follow.cursor();
            if !self.read().await || self.follow.cursor() == before {
                break;
            }
        }
        end
    }

    /// Reads the next events. Returns false if they cannot be read.
    async fn read(&mut self) -> bool {
        let read = self.follow.read().await;
        match &read {
            Ok(events) => events.iter().for_each(|event| self.view.apply(event)),
            Err(error) => tracing::warn!(session = %self.session.log.id, %error, "reading the events of a subagent failed"),
        }
        read.is_ok()
    }

    fn show(&mut self) {
        let status = self.view.status();
        if let Some(progress) = &self.progress {
            progress(vec![ToolContent::text(status)]);
        }
    }

    /// Sends the result of a background subagent to the parent. It starts a turn of an idle parent,
    /// unless the subagent was cancelled.
    async fn report(&self, end: &ChildEnd, answer: &str) {
        let agent = self.label.agent.as_deref().unwrap_or("subagent");
        let (outcome, text) = match (end.status, &end.error) {
            (ChildStatus::Completed, _) => ("has finished. Its result follows.", answer),
            (_, Some(error)) => ("failed. Its error follows.", error.as_str()),
            (_, None) => ("was cancelled.", ""),
        };
        let (text, cut) = shortened(text);
        let more = if cut { "\n[truncated]" } else { "" };
        let id = &self.label.child_session_id;
        let unresolved = end.unresolved.as_ref().map(|unresolved| format!("\n{}", unresolved.text())).unwrap_or_default();
        let note = format!("The background task of {agent} ({id}) {outcome}");
        let result = format!("Task: {}\n\n{text}{more}{unresolved}", self.label.title);
        let parts = vec![Part::note(note), Part::text(result.trim_end())];
        let message = IncomingMessage { role: Role::System, ..IncomingMessage::user(MessageId::new(), parts) };
        let auto_run = end.status != ChildStatus::Cancelled;
        let mut queued = WaitingMessage { message, delivery: Delivery::Steer, auto_run, by: Some(Actor::Task), seq: 0 };
        let placed = self.parent.place(&queued).or_else(|error| match error.kind {
            Kind::Overloaded => {
                queued.auto_run = false;
                self.parent.place(&queued)
            }
            _ => Err(error),
        });
        let arrived = match placed {
            Ok(placed) => placed.arrived(&self.parent).await,
            Err(error) => Err(error),
        };
        if let Err(error) = arrived {
            tracing::info!(session = %self.parent.log.id, %error, "the report of a subagent was not delivered");
        }
    }
}

/// Creates the end of a subagent from the result of its last turn. Usage, cost and unresolved
/// problems are not set.
fn end(result: Result<StopReason>) -> ChildEnd {
    let (status, stop_reason, error) = match result {
        Ok(StopReason::Cancelled) => (ChildStatus::Cancelled, None, None),
        Ok(stop) => (ChildStatus::Completed, Some(stop), None),
        Err(error) => (ChildStatus::Failed, None, Some(error.message)),
    };
    ChildEnd { status, stop_reason, usage: None, cost: None, requests: 0, unresolved: None, error }
}

/// Truncates a result that is sent as a message. Also returns whether it was truncated.
fn shortened(text: &str) -> (&str, bool) {
    let mut end = text.len().min(limits::SUBAGENT_ANSWER_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], end < text.len())
}

impl Sessions {
    /// Starts a task that ends the turns of children whose owner, also the owner of the session,
    /// has died.
    pub(in crate::session) fn close_orphans_of(&self, parent: &SessionId) {
        let (Some(sessions), parent) = (self.this.upgrade(), parent.clone()) else { return };
        self.tasks.spawn(async move {
            let children = sessions.store.children(&parent, limits::CHILDREN_LISTED_MAX).await.unwrap_or_default();
            for child in children.into_iter().filter(|child| child.activity.turn.is_some()) {
                if let Err(error) = sessions.open_read_only(&child.id).await {
                    tracing::warn!(session = %child.id, %error, "ending the turn of a subagent failed");
                }
            }
        });
    }
}
