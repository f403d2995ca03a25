//! The subagents of a session that run in this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::log::SessionLog;
use super::spending::Spending;
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::limits;

/// Counts and cancels the running subagents of one session, and sums the amounts they have used.
#[derive(Default)]
pub(crate) struct RunningChildren {
    count: watch::Sender<usize>,
    used: Mutex<Used>,
    /// Cancels the subagents that are running now.
    cancel: Mutex<CancellationToken>,
}

/// The amounts that the subagents of a session have used.
#[derive(Default)]
struct Used {
    /// The subagents that are running.
    running: Vec<UsedByChild>,
    /// The subagents that ended while the session was open.
    ended: Spending,
    /// The total when the budget of later subagents was set.
    at_budget: Spending,
}

/// A running subagent, whose log has the amounts that it has used.
struct UsedByChild {
    log: Arc<SessionLog>,
    children: Arc<RunningChildren>,
}

impl UsedByChild {
    fn total(&self) -> Spending {
        self.log.state(|state| Spending::of(state.turns.after(0))).plus(self.children.used_by_running())
    }
}

impl Used {
    fn running(&self, except: Option<&SessionId>) -> Spending {
        let counted = self.running.iter().filter(|child| except != Some(&child.log.id));
        counted.map(UsedByChild::total).fold(Spending::default(), Spending::plus)
    }
}

/// RAII guard of one running subagent.
pub(super) struct ChildGuard {
    children: Arc<RunningChildren>,
    /// The session of the subagent, once it exists.
    session: Option<SessionId>,
    /// Cancelled when the subagent must stop.
    pub cancel: CancellationToken,
}

impl RunningChildren {
    /// Counts a subagent, or fails if [`limits::SUBAGENTS_SESSION_MAX`] are running. It never
    /// waits, because a subagent that waits for another one could wait without a bound.
    pub(super) fn enter(self: &Arc<Self>) -> Result<ChildGuard> {
        let mut entered = false;
        self.count.send_if_modified(|count| {
            entered = *count < limits::SUBAGENTS_SESSION_MAX;
            *count += usize::from(entered);
            entered
        });
        if !entered {
            let message = format!("{} subagents of this session are already running", limits::SUBAGENTS_SESSION_MAX);
            return Err(Error::new(Kind::Overloaded, message).hint("call task again when one has ended"));
        }
        let cancel = self.cancel.lock().unwrap_or_else(PoisonError::into_inner).child_token();
        Ok(ChildGuard { children: self.clone(), session: None, cancel })
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The amounts that the running subagents have used.
    pub(crate) fn used_by_running(&self) -> Spending {
        self.used().running(None)
    }

    /// The amounts that the subagents have used since the session was opened, without the subagent
    /// that works in the session `except`.
    pub(super) fn used_by_others(&self, except: &SessionId) -> Spending {
        let used = self.used();
        used.ended.plus(used.running(Some(except)))
    }

    /// Called when the budget of the subagents that start later is set.
    pub(crate) fn mark_budget(&self) {
        let mut used = self.used();
        used.at_budget = used.ended.plus(used.running(None));
    }

    /// The amounts that the subagents had used when the budget was set.
    pub(super) fn used_at_budget(&self) -> Spending {
        self.used().at_budget
    }

    /// Returns whether a subagent is running.
    pub(crate) fn any(&self) -> bool {
        *self.count.borrow() > 0
    }

    /// Cancels the running subagents.
    pub(crate) fn cancel(&self) {
        let running = std::mem::take(&mut *self.cancel.lock().unwrap_or_else(PoisonError::into_inner));
        running.cancel();
    }

    /// Waits until no subagent is running.
    pub(crate) async fn ended(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl ChildGuard {
    /// Counts the amounts that the subagent uses.
    pub(super) fn count(&mut self, log: Arc<SessionLog>, children: Arc<RunningChildren>) {
        self.session = Some(log.id.clone());
        self.children.used().running.push(UsedByChild { log, children });
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            let mut used = self.children.used();
            if let Some(index) = used.running.iter().position(|child| child.log.id == *session) {
                used.ended = used.ended.plus(used.running.swap_remove(index).total());
            }
        }
        self.children.count.send_modify(|count| *count -= 1);
    }
}
