//! Limits on running turns and open sessions. Unused sessions are closed to make room.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::counts::Counts;
use super::now_ms;
use super::open::Session;
use super::sessions::Sessions;
use crate::error::{Error, Kind, Result};
use crate::limits;

/// The maximum numbers of open sessions and running turns.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub sessions: usize,
    pub turns: usize,
}

impl Default for Room {
    fn default() -> Self {
        Room { sessions: usize::MAX, turns: usize::MAX }
    }
}

/// Counts the running turns of all sessions.
pub(super) struct TurnSlots {
    count: watch::Sender<usize>,
    max: usize,
    closed: AtomicBool,
}

/// RAII guard: one running turn. Decrements the count on drop.
pub(super) struct TurnPermit(Arc<TurnSlots>);

impl TurnSlots {
    pub fn new(max: usize) -> Arc<TurnSlots> {
        Arc::new(TurnSlots { count: watch::Sender::new(0), max, closed: AtomicBool::new(false) })
    }

    /// Takes a permit regardless of the limit. Returns `None` during shutdown.
    pub fn enter_unlimited(self: &Arc<Self>) -> Option<TurnPermit> {
        if self.closed.load(Ordering::Acquire) {
            return None;
        }
        self.count.send_modify(|count| *count += 1);
        Some(TurnPermit(self.clone()))
    }

    /// Takes a permit, or fails with `overloaded` at the limit and during shutdown.
    pub fn enter(self: &Arc<Self>) -> Result<TurnPermit> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(Kind::Overloaded, "nuncio is shutting down").hint("retry once it is back"));
        }
        let mut entered = false;
        self.count.send_if_modified(|count| {
            entered = *count < self.max;
            *count += usize::from(entered);
            entered
        });
        if entered {
            return Ok(TurnPermit(self.clone()));
        }
        let message = format!("{} turns are already running", self.max);
        Err(Error::new(Kind::Overloaded, message).hint("retry when one has ended, or raise http.max_turns"))
    }
}

impl Drop for TurnPermit {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}

impl Sessions {
    pub fn turns_running(&self) -> usize {
        *self.turn_slots.count.borrow()
    }

    pub fn counts(&self) -> &Counts {
        self.log.counts()
    }

    /// Number of events in the log writer's queue.
    pub fn log_queue(&self) -> usize {
        self.log.waiting()
    }

    pub fn sessions_open(&self) -> usize {
        self.map().len()
    }

    /// Refuses new turns from now on.
    pub fn refuse_turns(&self) {
        self.turn_slots.closed.store(true, Ordering::Release);
    }

    /// Refuses new turns and waits for the running ones.
    pub async fn wind_down(&self) {
        self.refuse_turns();
        // Cannot fail: `self.turn_slots` holds the sender.
        let _ = self.turn_slots.count.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Closes the sessions that were unused for `idle`. The next request opens them again.
    pub async fn release_idle(&self, idle: Duration) {
        let before = now_ms().saturating_sub(idle.as_millis() as u64);
        let unused: Vec<Arc<Session>> = self.map().values().filter(|session| is_unused(session, before)).cloned().collect();
        for session in unused {
            self.release(session, before).await;
        }
    }

    /// Ensures capacity for one more open session by closing the least recently used one.
    pub(super) async fn ensure_capacity(&self) -> Result<()> {
        let mut looks = 0;
        while self.sessions_open() >= self.room.sessions {
            let now = now_ms() + 1;
            let longest = {
                let map = self.map();
                map.values().filter(|session| is_unused(session, now)).min_by_key(|session| session.used_ms()).cloned()
            };
            let Some(session) = longest else {
                // A session may be referenced only for a moment.
                looks += 1;
                if looks < limits::ROOM_LOOKS {
                    tokio::time::sleep(limits::ROOM_LOOK).await;
                    continue;
                }
                let message = format!("{} sessions are already open", self.room.sessions);
                return Err(Error::new(Kind::Overloaded, message).hint("close one, or raise http.max_sessions"));
            };
            self.release(session, now).await;
        }
        Ok(())
    }

    async fn release(&self, session: Arc<Session>, before: u64) {
        let id = session.log.id.clone();
        drop(session);
        let taken = {
            let mut map = self.map();
            // References to the session are only taken while the map is locked.
            let unused = map.get(&id).is_some_and(|session| is_unused(session, before));
            let taken = if unused { map.remove(&id) } else { None };
            // While the map is locked, so that the next opening finds the session lock free.
            taken.map(|session| (session.is_owned(), session)).inspect(|(_, session)| session.release_ownership_now())
        };
        let Some((owned, session)) = taken else { return };
        session.agent.close().await;
        if !owned {
            return;
        }
        // Safe even if another process owns the session now: complete messages stay complete.
        let pruned = tokio::task::spawn_blocking(move || session.log.prune()).await;
        if let Ok(Err(error)) = pruned {
            tracing::warn!(session = %id, error = %error, "removing message deltas failed");
        }
    }
}

/// Returns whether only the map references the session and its last use is earlier than `before`.
/// Valid only while the map is locked.
fn is_unused(session: &Arc<Session>, before: u64) -> bool {
    Arc::strong_count(session) == 1 && session.used_ms() < before
}
