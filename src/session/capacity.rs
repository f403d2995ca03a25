//! Limits on running turns and open sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::error::{Error, Kind, Result};

/// The maximum numbers of open sessions and running turns.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    pub sessions: usize,
    pub turns: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Capacity { sessions: usize::MAX, turns: usize::MAX }
    }
}

/// Counts the running turns of all sessions.
pub(super) struct TurnSlots {
    count: watch::Sender<usize>,
    max: usize,
    closed: AtomicBool,
}

/// RAII guard of one running turn. Decrements the count on drop.
pub(super) struct TurnPermit(Arc<TurnSlots>);

impl TurnSlots {
    /// Creates slots for `max` concurrent turns.
    pub(crate) fn new(max: usize) -> Arc<TurnSlots> {
        Arc::new(TurnSlots { count: watch::Sender::new(0), max, closed: AtomicBool::new(false) })
    }

    /// Takes a permit regardless of the limit. Returns `None` during shutdown.
    pub(crate) fn enter_unlimited(self: &Arc<Self>) -> Option<TurnPermit> {
        if self.closed.load(Ordering::Acquire) {
            return None;
        }
        self.count.send_modify(|count| *count += 1);
        Some(TurnPermit(self.clone()))
    }

    /// Takes a permit, or fails with `overloaded` at the limit and during shutdown.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<TurnPermit> {
        if self.closed.load(Ordering::Acquire) {
            return Err(shutting_down());
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

    /// Returns the number of running turns.
    pub(crate) fn running(&self) -> usize {
        *self.count.borrow()
    }

    /// Refuses permits from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Waits until no turn runs.
    pub(crate) async fn empty(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for TurnPermit {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}

/// Creates the error for a turn that is refused because the process is shutting down.
pub(super) fn shutting_down() -> Error {
    Error::new(Kind::Overloaded, "nuncio is shutting down").hint("retry once it is back")
}
