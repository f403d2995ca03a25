//! How much there may be at once: turns that run, sessions that are open. Sessions that nobody uses make room.

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

/// Most that there may be at once.
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

/// The turns that run, all sessions together.
pub(super) struct Running {
    count: watch::Sender<usize>,
    max: usize,
    closed: AtomicBool,
}

/// The place of one turn.
pub(super) struct Place(Arc<Running>);

impl Running {
    pub fn new(max: usize) -> Arc<Running> {
        Arc::new(Running { count: watch::Sender::new(0), max, closed: AtomicBool::new(false) })
    }

    /// Without looking at the limit. None: nothing begins any more.
    pub fn enter_behind(self: &Arc<Self>) -> Option<Place> {
        if self.closed.load(Ordering::Acquire) {
            return None;
        }
        self.count.send_modify(|count| *count += 1);
        Some(Place(self.clone()))
    }

    pub fn enter(self: &Arc<Self>) -> Result<Place> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(Kind::Overloaded, "nuncio is about to end").hint("try again with the next one"));
        }
        let mut entered = false;
        self.count.send_if_modified(|count| {
            entered = *count < self.max;
            *count += usize::from(entered);
            entered
        });
        if entered {
            return Ok(Place(self.clone()));
        }
        let message = format!("{} turns run already", self.max);
        Err(Error::new(Kind::Overloaded, message).hint("try again when one has ended; http.max_turns is the limit"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}

impl Sessions {
    pub fn turns_running(&self) -> usize {
        *self.running.count.borrow()
    }

    pub fn counts(&self) -> &Counts {
        self.log.counts()
    }

    /// Events that wait to be written.
    pub fn log_queue(&self) -> usize {
        self.log.waiting()
    }

    pub fn sessions_open(&self) -> usize {
        self.map().len()
    }

    /// Lets no turn begin any more.
    pub fn refuse_turns(&self) {
        self.running.closed.store(true, Ordering::Release);
    }

    /// The same, and waits for those that run.
    pub async fn wind_down(&self) {
        self.refuse_turns();
        // The sender lives in what we hold.
        let _ = self.running.count.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Gives up the sessions that nobody has used for so long; they open again by themselves.
    pub async fn release_idle(&self, idle: Duration) {
        let before = now_ms().saturating_sub(idle.as_millis() as u64);
        let unused: Vec<Arc<Session>> = self.map().values().filter(|session| is_unused(session, before)).cloned().collect();
        for session in unused {
            self.release(session, before).await;
        }
    }

    /// Room for one more open session, made by giving up the one that was not used for the longest time.
    pub(super) async fn make_room(&self) -> Result<()> {
        let mut looks = 0;
        while self.sessions_open() >= self.room.sessions {
            let now = now_ms() + 1;
            let longest = {
                let map = self.map();
                map.values().filter(|session| is_unused(session, now)).min_by_key(|session| session.used_ms()).cloned()
            };
            let Some(session) = longest else {
                // Somebody may just be looking at all of them.
                looks += 1;
                if looks < limits::ROOM_LOOKS {
                    tokio::time::sleep(limits::ROOM_LOOK).await;
                    continue;
                }
                let message = format!("{} sessions are open already", self.room.sessions);
                return Err(Error::new(Kind::Overloaded, message).hint("close some; http.max_sessions is the limit"));
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
            // Whoever has it from the map has it counted.
            let unused = map.get(&id).is_some_and(|session| is_unused(session, before));
            let taken = if unused { map.remove(&id) } else { None };
            // While the map is held: who opens it next finds its lock free.
            taken.map(|session| (session.is_owned(), session)).inspect(|(_, session)| session.disown_now())
        };
        let Some((owned, session)) = taken else { return };
        session.agent.close().await;
        if !owned {
            return;
        }
        // What was whole at its last event stays whole, whoever works in it now.
        let pruned = tokio::task::spawn_blocking(move || session.log.prune()).await;
        if let Ok(Err(error)) = pruned {
            tracing::warn!(session = %id, error = %error, "forgetting pieces of messages");
        }
    }
}

/// Nobody but the map has it, and nobody asked for it since. Only true as long as the map is held.
fn is_unused(session: &Arc<Session>, before: u64) -> bool {
    Arc::strong_count(session) == 1 && session.used_ms() < before
}
