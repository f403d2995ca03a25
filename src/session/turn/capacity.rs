//! Limits on running turns and open sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
pub(in crate::session) struct TurnSlots {
    count: watch::Sender<usize>,
    /// Number of these turns that wait for an answer to a permission request: they use no slot.
    waiting: AtomicUsize,
    max: usize,
    closed: AtomicBool,
}

/// RAII guard of one running turn. Decrements the count on drop.
pub(in crate::session) struct TurnPermit(Arc<TurnSlots>);

impl TurnSlots {
    pub(crate) fn new(max: usize) -> Arc<TurnSlots> {
        Arc::new(TurnSlots { count: watch::Sender::new(0), waiting: AtomicUsize::new(0), max, closed: AtomicBool::new(false) })
    }

    /// Takes a permit regardless of the limit. Fails with `overloaded` during shutdown.
    pub(crate) fn enter_unlimited(self: &Arc<Self>) -> Result<TurnPermit> {
        self.enter_below(usize::MAX).then(|| TurnPermit(self.clone())).ok_or_else(shutting_down)
    }

    /// Takes a permit, or fails with `overloaded` at the limit and during shutdown.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<TurnPermit> {
        if self.enter_below(self.max) {
            return Ok(TurnPermit(self.clone()));
        }
        if self.is_closed() {
            return Err(shutting_down());
        }
        let message = format!("{} turns are already running", self.max);
        Err(Error::new(Kind::Overloaded, message).hint("retry when one has ended, or raise http.max_turns"))
    }

    fn enter_below(&self, max: usize) -> bool {
        self.count.send_if_modified(|count| {
            let working = count.saturating_sub(self.waiting.load(Ordering::Acquire));
            let enters = working < max && !self.is_closed();
            *count += usize::from(enters);
            enters
        })
    }

    /// Gives the slot of a running turn back while the turn waits for an answer.
    pub(in crate::session) fn begin_wait(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes the slot again, regardless of the limit.
    pub(in crate::session) fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns whether permits are refused.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn running(&self) -> usize {
        *self.count.borrow()
    }

    /// Refuses permits from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Waits until no turn runs, and refuses permits from that moment on.
    pub(crate) async fn close_when_empty(&self) {
        while !self.is_closed() {
            self.empty().await;
            self.count.send_if_modified(|count| {
                if *count == 0 {
                    self.close();
                }
                false
            });
        }
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
pub(in crate::session) fn shutting_down() -> Error {
    Error::new(Kind::Overloaded, "nuncio is shutting down").hint("retry once it is back")
}
