//! The subagents of a session that run in this process.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::content::BudgetLimit;
use crate::error::{Error, Kind, Result};
use crate::id::{SessionId, TurnId};
use crate::session::events::log::SessionLog;
use crate::session::folds::spending::Spending;

/// Maximum number of concurrent subagents per session.
const SUBAGENTS_SESSION_MAX: usize = 16;

/// Counts and cancels the running subagents of one session, and sums the amounts that the session
/// and its subagents have used.
#[derive(Default)]
pub(crate) struct RunningChildren {
    count: watch::Sender<usize>,
    used: Mutex<UnrecordedUsage>,
    /// Cancels the subagents that are running now.
    cancel: Mutex<CancellationToken>,
    /// Locked while a request of the session or of one of its subagents is reserved. All sessions
    /// of a tree use the lock of the outermost session, so that concurrent requests cannot exceed a
    /// limit.
    pub(in crate::session) reserving: Mutex<()>,
    /// Locked during a permission request about the session's budget. The value is the last
    /// refusal.
    pub(in crate::session) refused: tokio::sync::Mutex<Option<RefusedBudget>>,
}

/// A permission request to raise a limit that was not granted: later requests of the turn do not
/// ask again.
#[derive(Clone, PartialEq)]
pub(in crate::session) struct RefusedBudget {
    pub turn: TurnId,
    pub limit: BudgetLimit,
    pub amount: u64,
}

/// The amounts that the log of a session does not contain.
#[derive(Default)]
struct UnrecordedUsage {
    /// The subagents that are running.
    running: Vec<ChildUsage>,
    /// The number of requests of the running turn, with those that were reserved and whose start is
    /// not in the log yet.
    reserved: Option<(TurnId, u64)>,
}

/// A running subagent. Its log contains the amounts that it has used.
struct ChildUsage {
    /// The turn that started the subagent.
    turn: TurnId,
    log: Arc<SessionLog>,
    children: Arc<RunningChildren>,
}

/// RAII guard of one running subagent.
pub(in crate::session) struct ChildGuard {
    children: Arc<RunningChildren>,
    /// The session of the subagent, once it exists.
    session: Option<SessionId>,
    /// Cancelled when the subagent must stop.
    pub cancel: CancellationToken,
}

impl RunningChildren {
    /// Counts a subagent, or fails if [`SUBAGENTS_SESSION_MAX`] are running. It never
    /// waits, because a subagent that waits for another one could wait without a bound.
    pub(in crate::session) fn enter(self: &Arc<Self>) -> Result<ChildGuard> {
        let mut entered = false;
        self.count.send_if_modified(|count| {
            entered = *count < SUBAGENTS_SESSION_MAX;
            *count += usize::from(entered);
            entered
        });
        if !entered {
            let message = format!("{} subagents of this session are already running", SUBAGENTS_SESSION_MAX);
            return Err(Error::new(Kind::Overloaded, message).hint("call task again when one has ended"));
        }
        let cancel = self.cancel.lock().child_token();
        Ok(ChildGuard { children: self.clone(), session: None, cancel })
    }

    /// Returns the amounts that `turn` of the session with this log, or without `turn` the whole
    /// session, has used, including its subagents and reserved requests.
    pub(in crate::session) fn spent(&self, log: &SessionLog, turn: Option<&TurnId>) -> Spending {
        // Holding the lock keeps a subagent that ends either in the list or in the log. Only a
        // subagent whose end is not in the log counts as running.
        let used = self.used.lock();
        let (recorded, open) = log.state(|state| {
            let turns = match turn {
                Some(turn) => state.turns.get(turn).map(std::slice::from_ref).unwrap_or_default(),
                None => state.turns.after(0),
            };
            let mut recorded = Spending::from_turns(turns);
            if let Some((reserved_by, requests)) = used.reserved.as_ref().filter(|(by, _)| turn.is_none_or(|turn| turn == by)) {
                let known = state.turns.get(reserved_by).map_or(0, |turn| turn.requests);
                recorded.requests += requests.saturating_sub(known);
            }
            let open: Vec<SessionId> = state.open_children.iter().map(|child| child.child_session_id.clone()).collect();
            (recorded, open)
        });
        let counts = |child: &&ChildUsage| turn.is_none_or(|turn| child.turn == *turn) && open.contains(&child.log.id);
        let running = used.running.iter().filter(counts);
        running.map(|child| child.children.spent(&child.log, None)).fold(recorded, Spending::plus)
    }

    /// Counts a request that `turn`, the running turn, is about to send.
    pub(crate) fn reserve(&self, log: &SessionLog, turn: &TurnId) {
        let mut used = self.used.lock();
        let before = used.reserved.take().filter(|(by, _)| by == turn).map_or(0, |(_, requests)| requests);
        let known = log.state(|state| state.turns.get(turn).map_or(0, |turn| turn.requests));
        used.reserved = Some((turn.clone(), before.max(known) + 1));
    }

    /// Returns whether a subagent is running.
    pub(crate) fn any(&self) -> bool {
        *self.count.borrow() > 0
    }

    pub(crate) fn cancel(&self) {
        let running = std::mem::take(&mut *self.cancel.lock());
        running.cancel();
    }

    /// Waits until no subagent is running.
    pub(crate) async fn ended(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl ChildGuard {
    /// Counts the amounts that the subagent uses for `turn` of the parent.
    pub(in crate::session) fn count(&mut self, turn: TurnId, log: Arc<SessionLog>, children: Arc<RunningChildren>) {
        self.session = Some(log.id.clone());
        self.children.used.lock().running.push(ChildUsage { turn, log, children });
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            self.children.used.lock().running.retain(|child| child.log.id != *session);
        }
        self.children.count.send_modify(|count| *count -= 1);
    }
}
