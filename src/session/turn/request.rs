//! Permission requests of a turn. The requests of a subagent also appear in its parent sessions,
//! whose clients can answer them. The first answer counts.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::config::{Policy, Rule};
use crate::content::{PermissionOption, ReviewOffer, ToolContent, ToolLabel, ToolStatus};
use crate::event::{Actor, Body, PermissionDecision, PermissionOutcome, PermissionRequest, ToolUpdate};
use crate::id::{PermissionId, ToolCallId, TurnId};
use crate::options::Mode;
use crate::permission::git_acts::GitActs;
use crate::permission::rules::stricter;
use crate::session::events::log::SessionLog;
use crate::session::permissions::broker::{Broker, PermissionAnswer};
use crate::session::permissions::deadline::{AnswerDeadline, DeadlineChange};
use crate::session::turn::Turn;
use crate::session::turn::ancestor::{Ancestor, agent_of};
use crate::session::turn::asking_turn::{AskingTurn, WaitingTurn};
use crate::toolkit::OfferedReview;

/// A permission request in one of the sessions in which it appears.
struct OpenRequest {
    id: PermissionId,
    broker: Arc<Broker>,
    log: Arc<SessionLog>,
    /// The turn that the request belongs to, if it is running.
    turn: Option<TurnId>,
    tool_call_id: ToolCallId,
    tool: ToolLabel,
    answered: oneshot::Receiver<PermissionAnswer>,
}

/// A permission request that is about to be made.
pub(crate) struct TurnQuestion {
    pub tool_call_id: ToolCallId,
    /// The id of the tool call, or of the question if there is no call.
    pub tool: ToolLabel,
    pub content: Vec<ToolContent>,
    pub options: Vec<PermissionOption>,
    /// Time limit for the answer while no person's client is attached.
    pub timeout: Duration,
    /// The turn ends without an answer in time.
    pub ends_turn: bool,
    /// Withdraws the question.
    pub cancel: CancellationToken,
    /// A review whose parts the answer may decide about.
    pub review: Option<ReviewOffer>,
}

impl Turn {
    /// Asks the attached clients for permission and waits for the first answer, a cancellation or,
    /// while no person's client is attached, the deadline. Every outcome except an offered allow
    /// option denies the tool call. Returns the id for the `permission.resolved` event, which the
    /// caller appends with the rule to remember.
    pub(crate) async fn ask(&self, question: TurnQuestion) -> (Option<PermissionId>, PermissionAnswer) {
        let tool = question.tool.clone();
        let (ids, answer) = self.ask_from(0, question).await;
        let mut ids = ids.into_iter();
        let own = ids.next();
        match &own {
            None => {
                for ancestor in &*self.ancestors {
                    emit_above(ancestor, answer.decision(None, &ancestor.tool_call_id, &self.label_above(&tool))).await;
                }
            }
            Some(own) if !self.ancestors.is_empty() => {
                let mut asked_above = self.asked_above.lock();
                asked_above.insert(own.clone(), ids.collect());
            }
            Some(_) => {}
        }
        (own, answer)
    }

    /// Asks the clients of the ancestor session at `level`, and of its parent sessions, about a
    /// question of that session. Otherwise like [`Turn::ask`]. Records the answer.
    pub(in crate::session) async fn ask_above(&self, level: usize, question: TurnQuestion) -> PermissionAnswer {
        let tool = question.tool.clone();
        let (ids, answer) = self.ask_from(level, question).await;
        // Without a client that can answer, no session contains the request.
        for ((index, ancestor), id) in self.ancestors.iter().enumerate().skip(level - 1).zip(ids) {
            let label = if index + 1 == level { tool.clone() } else { self.label_above(&tool) };
            resolve_in(ancestor, answer.decision(Some(id), &ancestor.tool_call_id, &label)).await;
        }
        answer
    }

    /// Asks in the ancestor session at `level` (0: this session) and in its parent sessions.
    /// Returns the ids of the requests in these sessions, in this order; empty if no client can
    /// answer.
    async fn ask_from(&self, level: usize, question: TurnQuestion) -> (Vec<PermissionId>, PermissionAnswer) {
        let TurnQuestion { tool_call_id, tool, content, options, timeout, ends_turn, cancel, review } = question;
        self.wait_for_responders().await;
        let offered = review.clone().map(|offer| Arc::new(OfferedReview { offer, content: content.clone() }));
        let mut open = self.open_requests(level, tool_call_id, &tool, &options, offered.as_ref());
        let mut deadline = AnswerDeadline::new(open.iter().map(|request| request.broker.clone()).collect(), timeout);
        if !deadline.has_responder() {
            for request in &open {
                request.broker.dismiss(&request.id, PermissionOutcome::Denied, Actor::Nobody, "");
            }
            let reason = Some("no connected client can answer the permission request");
            return (Vec::new(), PermissionAnswer::without_choice(PermissionOutcome::Denied, Actor::Nobody, reason));
        }
        let waiting = self.wait();
        let deadline_ms = deadline.at_ms();
        for request in &open {
            let body = Body::PermissionRequested(PermissionRequest {
                permission_id: request.id.clone(),
                tool_call_id: request.tool_call_id.clone(),
                tool: Some(request.tool.clone()),
                content: content.clone(),
                options: options.clone(),
                deadline_ms,
                review: review.clone(),
            });
            request.log.emit(request.turn.clone(), body).await;
        }
        let ended = |outcome, by, reason| PermissionAnswer::without_choice(outcome, by, Some(reason));
        let answer = loop {
            tokio::select! {
                biased;
                answer = first_answer(&mut open) => break answer,
                change = deadline.change() => match change {
                    DeadlineChange::Moved(deadline_ms) => {
                        for request in &open {
                            let permission_id = request.id.clone();
                            request.log.emit(request.turn.clone(), Body::PermissionUpdated { permission_id, deadline_ms }).await;
                        }
                    }
                    DeadlineChange::Passed => break ended(PermissionOutcome::Denied, Actor::Deadline, "no answer before the deadline"),
                    DeadlineChange::Disconnected => {
                        break ended(PermissionOutcome::Denied, Actor::Disconnect, "the last client that could answer disconnected");
                    }
                },
                () = cancel.cancelled() => break ended(PermissionOutcome::Cancelled, Actor::Cancel, "the turn was cancelled"),
            }
        };
        for request in &open {
            request.broker.dismiss(&request.id, answer.outcome, answer.by.clone(), answer.reason.as_deref().unwrap_or_default());
        }
        // A client may have answered just before the request was dismissed.
        let chosen = open.iter_mut().filter_map(|request| request.answered.try_recv().ok());
        let late = chosen.into_iter().find(|late| late.option_id.is_some() && answer.option_id.is_none());
        let answer = late.unwrap_or(answer);
        if ends_turn && answer.by == Actor::Deadline {
            waiting.iter().for_each(WaitingTurn::end_unanswered);
        }
        (open.into_iter().map(|request| request.id).collect(), answer)
    }

    /// Returns the deadline of a question that the clients of the session and of its parent
    /// sessions see now.
    pub(crate) fn answer_deadline(&self, timeout: Duration) -> AnswerDeadline {
        let above = self.ancestors.iter().map(|ancestor| &ancestor.broker);
        AnswerDeadline::new(std::iter::once(&self.broker).chain(above).cloned().collect(), timeout)
    }

    /// Returns whether a client of the session or of its parent sessions can answer a request.
    pub(crate) fn has_responder(&self) -> bool {
        self.answer_deadline(Duration::ZERO).has_responder()
    }

    /// Marks the turn, and turns of parent sessions whose calls run it, as waiting for an answer.
    fn wait(&self) -> Vec<WaitingTurn> {
        let waits = |ancestor: &&Ancestor| {
            ancestor.log.state(|state| state.open_tools.iter().any(|open| open.has_id(&ancestor.tool_call_id)))
        };
        let above = self.ancestors.iter().take_while(waits).filter_map(|ancestor| ancestor.asking.as_ref());
        std::iter::once(&self.asking).chain(above).map(AskingTurn::wait).collect()
    }

    /// Opens the request in the ancestor session at `level` (0: this session) and in its parent
    /// sessions, in this order.
    fn open_requests(
        &self,
        level: usize,
        tool_call_id: ToolCallId,
        tool: &ToolLabel,
        options: &[PermissionOption],
        review: Option<&Arc<OfferedReview>>,
    ) -> Vec<OpenRequest> {
        let open = |broker: &Arc<Broker>, log: &Arc<SessionLog>, turn, tool_call_id, tool| {
            let id = PermissionId::new();
            let answered = broker.open(id.clone(), options.to_vec(), review.cloned());
            OpenRequest { id, broker: broker.clone(), log: log.clone(), turn, tool_call_id, tool, answered }
        };
        let mut requests = Vec::new();
        if level == 0 {
            requests.push(open(&self.broker, &self.log, Some(self.id.clone()), tool_call_id, tool.clone()));
        }
        for (index, ancestor) in self.ancestors.iter().enumerate().skip(level.saturating_sub(1)) {
            let label = if index + 1 == level { tool.clone() } else { self.label_above(tool) };
            let call = ancestor.tool_call_id.clone();
            requests.push(open(&ancestor.broker, &ancestor.log, ancestor.running_turn(), call, label));
        }
        requests
    }

    /// Creates the label that a call of this session has in the parent sessions: its title names
    /// the subagent.
    fn label_above(&self, tool: &ToolLabel) -> ToolLabel {
        let agent = self.log.state(|state| agent_of(state.parent.as_deref())).unwrap_or_else(|| "subagent".into());
        ToolLabel { title: format!("{agent}: {}", tool.title), ..tool.clone() }
    }

    /// Records the end of a permission request in the parent sessions in which the request appears.
    /// An "always" answer also becomes a rule of these sessions.
    pub(in crate::session) async fn resolve_above(&self, decision: &PermissionDecision) {
        let (Some(own), Some(tool)) = (&decision.permission_id, &decision.tool) else { return };
        let asked = self.asked_above.lock().remove(own);
        for (ancestor, id) in self.ancestors.iter().zip(asked.into_iter().flatten()) {
            let tool = Some(self.label_above(tool));
            resolve_in(ancestor, PermissionDecision { permission_id: Some(id), tool, ..decision.clone() }).await;
        }
    }

    /// Returns the mode and the remembered rules that apply to the calls of the turn. A subagent is
    /// also limited by its parent sessions: the strictest mode applies, and rules of the parent
    /// sessions take precedence over the subagent's own rules, except own rules that deny.
    /// `default` is the policy of the mode `ask`.
    pub(crate) fn permissions(&self, default: Policy) -> (Mode, Vec<Rule>) {
        let logs = std::iter::once(&self.log).chain(self.ancestors.iter().map(|ancestor| &ancestor.log));
        let of = |log: &Arc<SessionLog>| log.state(|state| (state.mode.known().unwrap_or_default(), state.rules.clone()));
        let outermost_first: Vec<(Mode, Vec<Rule>)> = logs.map(of).rev().collect();
        let narrowed = outermost_first.into_iter().reduce(|(mode, above), (own_mode, own)| {
            let (denied, mut rules): (Vec<Rule>, Vec<Rule>) = own.into_iter().partition(|rule| rule.policy == Policy::Deny);
            // Later rules take precedence.
            rules.extend(above);
            rules.extend(denied);
            (stricter(mode, own_mode, default), rules)
        });
        narrowed.unwrap_or_default()
    }

    /// Returns what the user's messages in this session, or in the one whose model began this one,
    /// ask git to do.
    pub(crate) fn asked_git_acts(&self) -> GitActs {
        let outermost = self.ancestors.last().map_or(&self.log, |ancestor| &ancestor.log);
        outermost.state(|state| state.asked_git_acts)
    }

    /// Waits until a client can answer permission requests. A recently taken session may have
    /// clients in other processes, which attend it within [`limits::RESPONDER_WAIT`].
    ///
    /// [`limits::RESPONDER_WAIT`]: crate::limits::RESPONDER_WAIT
    async fn wait_for_responders(&self) {
        let above = self.ancestors.iter().filter_map(|ancestor| ancestor.responders_wait_until);
        let Some(due) = self.responders_wait_until.into_iter().chain(above).max() else { return };
        let brokers = std::iter::once(&self.broker).chain(self.ancestors.iter().map(|ancestor| &ancestor.broker));
        let attended = select_all(brokers.map(|broker| Box::pin(broker.attended())));
        tokio::select! {
            biased;
            _ = attended => {}
            () = self.cancel.cancelled() => {}
            () = tokio::time::sleep_until(due) => {}
        }
    }
}

/// Waits for the first answer.
async fn first_answer(open: &mut [OpenRequest]) -> PermissionAnswer {
    let (answer, ..) = select_all(open.iter_mut().map(|request| &mut request.answered)).await;
    // Cannot fail: the brokers of the requests hold the senders.
    answer.unwrap_or_else(|_| PermissionAnswer::without_choice(PermissionOutcome::Cancelled, Actor::Cancel, None))
}

/// Records the end of a permission request in a parent session.
async fn resolve_in(ancestor: &Ancestor, decision: PermissionDecision) {
    emit_above(ancestor, decision).await;
    // Clients show a call with an open request as pending.
    let call = &ancestor.tool_call_id;
    if ancestor.log.state(|state| state.open_tools.iter().any(|open| open.has_id(call))) {
        let update = Body::ToolUpdated(ToolUpdate::status(call.clone(), ToolStatus::InProgress));
        ancestor.log.emit(ancestor.running_turn(), update).await;
    }
}

async fn emit_above(ancestor: &Ancestor, decision: PermissionDecision) {
    let decision = PermissionDecision { tool_call_id: ancestor.tool_call_id.clone(), ..decision };
    ancestor.log.emit(ancestor.running_turn(), Body::PermissionResolved(decision)).await;
}
