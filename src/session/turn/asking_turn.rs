//! A running turn whose permission requests wait for an answer, or end the turn without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::capacity::TurnSlots;

/// The result of a call that did not run because a permission request got no answer.
pub(crate) const NOT_RUN: &str = "not run: nobody answered";

/// The part of a running turn that permission requests change.
pub(crate) struct AskingTurn {
    slots: Arc<TurnSlots>,
    /// Number of permission requests that the turn waits for.
    waits: Mutex<usize>,
    unanswered: AtomicBool,
    /// Makes the turn stop.
    cancel: CancellationToken,
}

/// RAII guard: a turn waits for an answer and needs no place among the running turns.
pub(in crate::session) struct WaitingTurn(Arc<AskingTurn>);

impl AskingTurn {
    /// Creates the part of a turn that `cancel` stops.
    pub(in crate::session) fn new(slots: Arc<TurnSlots>, cancel: CancellationToken) -> Arc<AskingTurn> {
        Arc::new(AskingTurn { slots, waits: Mutex::default(), unanswered: AtomicBool::new(false), cancel })
    }

    /// Makes the turn wait for an answer.
    pub(in crate::session) fn wait(self: &Arc<Self>) -> WaitingTurn {
        let mut waits = self.waits.lock();
        *waits += 1;
        if *waits == 1 {
            self.slots.begin_wait();
        }
        WaitingTurn(self.clone())
    }

    /// Returns whether the turn ends because a permission request got no answer.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.unanswered.load(Ordering::Acquire)
    }
}

impl WaitingTurn {
    /// Ends the turn because a request got no answer.
    pub(in crate::session) fn end_unanswered(&self) {
        self.0.unanswered.store(true, Ordering::Release);
        self.0.cancel.cancel();
    }
}

impl Drop for WaitingTurn {
    fn drop(&mut self) {
        let mut waits = self.0.waits.lock();
        *waits -= 1;
        if *waits == 0 {
            self.0.slots.end_wait();
        }
    }
}
