//! Questions to whoever decides, and their one answer: the first wins, nobody to answer is a no.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::content::{PermissionOption, PermissionOptionKind};
use crate::error::{Error, Result};
use crate::event::PermissionOutcome;
use crate::id::PermissionId;

/// An answer: what was decided, by whom, and why if they said so.
#[derive(Clone, Debug)]
pub struct Answer {
    pub outcome: PermissionOutcome,
    pub by: String,
    pub reason: Option<String>,
}

/// The open questions of one session.
#[derive(Default)]
pub struct Broker {
    open: Mutex<Desk>,
}

#[derive(Default)]
struct Desk {
    questions: HashMap<PermissionId, Question>,
    /// How many are there who could answer.
    attending: usize,
}

struct Question {
    options: Vec<PermissionOption>,
    answer: oneshot::Sender<Answer>,
}

/// Somebody is there who can answer, as long as this lives.
pub struct Attendance(Arc<Broker>);

impl Broker {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn attend(self: &Arc<Self>) -> Attendance {
        self.desk().attending += 1;
        Attendance(self.clone())
    }

    /// Opens a question. None: nobody is there to answer it.
    pub fn ask(&self, id: PermissionId, options: Vec<PermissionOption>) -> Option<oneshot::Receiver<Answer>> {
        let mut desk = self.desk();
        if desk.attending == 0 {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        desk.questions.insert(id, Question { options, answer });
        Some(answered)
    }

    /// Whether it can still be answered here.
    pub fn is_open(&self, id: &PermissionId) -> bool {
        self.desk().questions.contains_key(id)
    }

    /// Answers with one of the options that were offered; another one is an error, and leaves the question open.
    pub fn answer(&self, id: &PermissionId, option_id: &str, by: &str, reason: Option<String>) -> Result<()> {
        let wrong = || format!("optionId: {option_id} was not offered");
        self.answer_with(id, |option| option.option_id == option_id, wrong, by, reason)
    }

    /// The same with the first option of a kind.
    pub fn answer_kind(&self, id: &PermissionId, kind: PermissionOptionKind, by: &str, reason: Option<String>) -> Result<()> {
        self.answer_with(id, |option| option.kind == kind, || "outcome: no such option was offered".into(), by, reason)
    }

    fn answer_with(
        &self,
        id: &PermissionId,
        picked: impl Fn(&PermissionOption) -> bool,
        wrong: impl FnOnce() -> String,
        by: &str,
        reason: Option<String>,
    ) -> Result<()> {
        let mut desk = self.desk();
        let question = desk.questions.get(id).ok_or_else(|| Error::not_found(format!("no open permission {id}")))?;
        let option = question.options.iter().find(|option| picked(option)).ok_or_else(|| Error::invalid_params(wrong()))?;
        let outcome = match option.kind {
            PermissionOptionKind::AllowOnce => PermissionOutcome::AllowOnce,
            PermissionOptionKind::AllowAlways => PermissionOutcome::AllowAlways,
            PermissionOptionKind::RejectOnce => PermissionOutcome::RejectOnce,
            PermissionOptionKind::RejectAlways => PermissionOutcome::RejectAlways,
        };
        settle(&mut desk, id, Answer { outcome, by: by.into(), reason });
        Ok(())
    }

    /// Ends a question without an answer of anybody who was asked: a deadline, a bad answer, a cancel. No error if it is not open any more.
    pub fn dismiss(&self, id: &PermissionId, outcome: PermissionOutcome, by: &str, reason: &str) {
        settle(&mut self.desk(), id, Answer { outcome, by: by.into(), reason: Some(reason.into()) });
    }
}

fn settle(desk: &mut Desk, id: &PermissionId, answer: Answer) {
    if let Some(question) = desk.questions.remove(id) {
        // Whoever asked may be gone: then there is nobody to tell.
        let _ = question.answer.send(answer);
    }
}

impl Attendance {
    /// Whether it is for these questions, and not for those of an earlier opening of the session.
    pub fn is_for(&self, broker: &Arc<Broker>) -> bool {
        Arc::ptr_eq(&self.0, broker)
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        let mut desk = self.0.desk();
        desk.attending -= 1;
        if desk.attending > 0 {
            return;
        }
        let open: Vec<PermissionId> = desk.questions.keys().cloned().collect();
        for id in open {
            let reason = Some("whoever could have answered is gone".into());
            settle(&mut desk, &id, Answer { outcome: PermissionOutcome::Denied, by: "disconnect".into(), reason });
        }
    }
}
