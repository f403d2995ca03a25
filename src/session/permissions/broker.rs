//! Permission requests of a session, their answers, and the clients that can answer. The first
//! answer counts.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{oneshot, watch};

use crate::content::{PermissionOption, PermissionOptionKind, ReviewAnswer, ToolLabel};
use crate::error::{Error, Result};
use crate::event::{Actor, PermissionDecision, PermissionOutcome};
use crate::id::{PermissionId, ToolCallId};
use crate::toolkit::OfferedReview;

/// An answer to a permission request: the outcome, its author and an optional reason.
#[derive(Clone, Debug)]
pub(crate) struct PermissionAnswer {
    pub outcome: PermissionOutcome,
    /// The chosen option; `None` if the request ended without a choice.
    pub option_id: Option<String>,
    pub by: Actor,
    pub reason: Option<String>,
    /// Decisions about parts of a review.
    pub review: ReviewAnswer,
}

impl PermissionAnswer {
    /// Creates an answer that chooses no option of the request.
    pub(crate) fn without_choice(outcome: PermissionOutcome, by: Actor, reason: Option<&str>) -> PermissionAnswer {
        PermissionAnswer { outcome, option_id: None, by, reason: reason.map(String::from), review: ReviewAnswer::default() }
    }

    /// Returns the decision on a call, without a rule.
    pub(crate) fn decision(
        &self,
        permission_id: Option<PermissionId>,
        tool_call_id: &ToolCallId,
        tool: &ToolLabel,
    ) -> PermissionDecision {
        PermissionDecision {
            permission_id,
            tool_call_id: tool_call_id.clone(),
            tool: Some(tool.clone()),
            outcome: self.outcome,
            reason: self.reason.clone(),
            by: self.by.clone(),
            rule: None,
        }
    }

    /// Returns whether no client could answer the request.
    pub(crate) fn is_unattended(&self) -> bool {
        self.by.is_absence()
    }
}

/// The parts of an answer besides its option.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChoiceDetails {
    pub reason: Option<String>,
    /// Decisions about parts of a review.
    pub review: ReviewAnswer,
}

/// The kind of user that answers permission requests through a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Responder {
    /// A program, or a person who may not look: requests have a deadline.
    Program,
    /// A person: requests wait.
    Person,
}

/// The numbers of attached clients that can answer.
#[derive(Clone, Copy, Debug, Default)]
struct Responders {
    programs: usize,
    people: usize,
    /// True once the process ends: people who have left do not return.
    ended: bool,
}

impl Responders {
    fn count(&mut self, responder: Responder) -> &mut usize {
        match responder {
            Responder::Program => &mut self.programs,
            Responder::Person => &mut self.people,
        }
    }

    fn best(self) -> Option<Responder> {
        match (self.people, self.programs) {
            (0, 0) => None,
            (0, _) => Some(Responder::Program),
            _ => Some(Responder::Person),
        }
    }
}

/// The open permission requests of one session.
#[derive(Default)]
pub struct Broker {
    open: Mutex<HashMap<PermissionId, PendingPermission>>,
    responders: watch::Sender<Responders>,
}

struct PendingPermission {
    options: Vec<PermissionOption>,
    review: Option<Arc<OfferedReview>>,
    answer: oneshot::Sender<PermissionAnswer>,
}

/// RAII guard: a client that can answer permission requests is attached while the guard exists.
pub(crate) struct ResponderGuard {
    broker: Arc<Broker>,
    responder: Responder,
}

impl Broker {
    fn requests(&self) -> MutexGuard<'_, HashMap<PermissionId, PendingPermission>> {
        self.open.lock()
    }

    /// Registers a client that can answer permission requests.
    pub(crate) fn register_responder(self: &Arc<Self>, responder: Responder) -> ResponderGuard {
        self.responders.send_modify(|responders| *responders.count(responder) += 1);
        ResponderGuard { broker: self.clone(), responder }
    }

    /// Returns who can answer permission requests: a person if there is one.
    pub(crate) fn responder(&self) -> Option<Responder> {
        self.responders.borrow().best()
    }

    /// Returns whether a client can answer permission requests.
    pub(crate) fn has_responders(&self) -> bool {
        self.responder().is_some()
    }

    /// Records that the process ends: requests do not wait for people who have left.
    fn end(&self) {
        self.responders.send_modify(|responders| responders.ended = true);
    }

    /// Returns whether the process ends.
    pub(in crate::session) fn has_ended(&self) -> bool {
        self.responders.borrow().ended
    }

    /// Waits until a client can answer permission requests.
    pub(in crate::session) async fn attended(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.responders.subscribe().wait_for(|responders| responders.best().is_some()).await;
    }

    /// Waits until [`Broker::responder`] is not `known`.
    pub(in crate::session) async fn responder_changed(&self, known: Option<Responder>) {
        // Cannot fail: `self` holds the sender.
        let _ = self.responders.subscribe().wait_for(|responders| responders.best() != known).await;
    }

    /// Opens a request; with `review`, its answer may decide about parts of the changes.
    pub(crate) fn open(
        &self,
        id: PermissionId,
        options: Vec<PermissionOption>,
        review: Option<Arc<OfferedReview>>,
    ) -> oneshot::Receiver<PermissionAnswer> {
        let (answer, answered) = oneshot::channel();
        self.requests().insert(id, PendingPermission { options, review, answer });
        answered
    }

    /// Returns whether the request can still be answered in this process.
    pub(crate) fn is_open(&self, id: &PermissionId) -> bool {
        self.requests().contains_key(id)
    }

    /// Answers a request with one of its options. An option that was not offered is an error, and
    /// the request stays open.
    pub(crate) fn answer(&self, id: &PermissionId, option_id: &str, by: Actor, choice: ChoiceDetails) -> Result<()> {
        let wrong = || format!("optionId: {option_id} was not offered");
        self.answer_with(id, |option| option.option_id == option_id, wrong, by, choice)
    }

    /// Answers a request with its first option of `kind`.
    pub(crate) fn answer_kind(
        &self,
        id: &PermissionId,
        kind: PermissionOptionKind,
        by: Actor,
        choice: ChoiceDetails,
    ) -> Result<()> {
        self.answer_with(id, |option| option.kind == kind, || "outcome: no such option was offered".into(), by, choice)
    }

    fn answer_with(
        &self,
        id: &PermissionId,
        picked: impl Fn(&PermissionOption) -> bool,
        wrong: impl FnOnce() -> String,
        by: Actor,
        ChoiceDetails { reason, review }: ChoiceDetails,
    ) -> Result<()> {
        let mut requests = self.requests();
        let permission = requests.get(id).ok_or_else(|| Error::not_found(format!("no open permission {id}")))?;
        let option = permission.options.iter().find(|option| picked(option)).ok_or_else(|| Error::invalid_params(wrong()))?;
        match &permission.review {
            Some(offered) => offered.check(&review).map_err(Error::invalid_params)?,
            None if review == ReviewAnswer::default() => {}
            None => return Err(Error::invalid_params("hunks and edits: the answer to this request cannot decide about parts")),
        }
        let outcome = match option.kind {
            PermissionOptionKind::AllowOnce => PermissionOutcome::AllowOnce,
            PermissionOptionKind::AllowAlways => PermissionOutcome::AllowAlways,
            PermissionOptionKind::RejectOnce => PermissionOutcome::RejectOnce,
            PermissionOptionKind::RejectAlways => PermissionOutcome::RejectAlways,
        };
        let option_id = Some(option.option_id.clone());
        resolve(&mut requests, id, PermissionAnswer { outcome, option_id, by, reason, review });
        Ok(())
    }

    /// Ends a request without an answer from a client: on a deadline, an invalid answer or a
    /// cancellation. Does nothing if the request is not open.
    pub(crate) fn dismiss(&self, id: &PermissionId, outcome: PermissionOutcome, by: Actor, reason: &str) {
        resolve(&mut self.requests(), id, PermissionAnswer::without_choice(outcome, by, Some(reason)));
    }
}

fn resolve(requests: &mut HashMap<PermissionId, PendingPermission>, id: &PermissionId, answer: PermissionAnswer) {
    if let Some(permission) = requests.remove(id) {
        // Fails if the turn no longer waits for the answer.
        let _ = permission.answer.send(answer);
    }
}

impl ResponderGuard {
    /// Returns whether the guard belongs to `broker`, and not to the broker of an earlier opening
    /// of the session.
    pub(crate) fn is_for(&self, broker: &Arc<Broker>) -> bool {
        Arc::ptr_eq(&self.broker, broker)
    }

    /// Drops the guard because the process ends.
    pub(crate) fn end(self) {
        self.broker.end();
    }
}

impl Drop for ResponderGuard {
    fn drop(&mut self) {
        self.broker.responders.send_modify(|responders| *responders.count(self.responder) -= 1);
    }
}
