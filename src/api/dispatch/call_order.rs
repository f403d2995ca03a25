//! The order of the calls of this process to a session. A call takes its place when its message is
//! read, and keeps it until it has its effect: until its turn or its entry of the queue is decided,
//! until it was sent to the owner of the session, or until it has ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The calls of this process to one session.
#[derive(Default)]
pub(in crate::api) struct SessionCalls {
    order: watch::Sender<CallOrder>,
    /// The numbers of the prompts, and the tokens that cancel them.
    prompts: Mutex<Vec<(u64, CancellationToken)>>,
}

/// The order of the calls.
#[derive(Default)]
struct CallOrder {
    /// The number of the last call.
    last: u64,
    /// Numbers of the calls that are not decided.
    undecided: BTreeSet<u64>,
}

impl SessionCalls {
    /// Adds a call after the earlier calls.
    pub(in crate::api) fn add_call(self: &Arc<Self>) -> CallPlace {
        let mut number = 0;
        self.order.send_modify(|order| {
            order.last += 1;
            number = order.last;
            order.undecided.insert(number);
        });
        CallPlace { calls: self.clone(), number }
    }
}

/// The place of a call in the order. Dropping it removes the call from the order.
pub struct CallPlace {
    calls: Arc<SessionCalls>,
    number: u64,
}

impl CallPlace {
    /// Waits until each earlier call is decided.
    pub(crate) async fn is_next(&self) {
        let mut order = self.calls.order.subscribe();
        // Cannot fail: `self.calls` holds the sender.
        let _ = order.wait_for(|order| order.undecided.range(..self.number).next().is_none()).await;
    }

    /// Records that the call is decided. Later calls can start.
    pub(crate) fn set_decided(&self) {
        self.calls.order.send_if_modified(|order| order.undecided.remove(&self.number));
    }

    /// Registers the call as a prompt until it has ended. `cancel` cancels it.
    pub(in crate::api) fn add_prompt(&self, cancel: CancellationToken) {
        self.calls.prompts.lock().push((self.number, cancel));
    }

    /// Cancels the earlier prompts: those that run, those that wait and those that look for an
    /// owner.
    pub(in crate::api) fn cancel_prompts(&self) {
        for (_, cancel) in self.calls.prompts.lock().iter().filter(|(number, _)| *number < self.number) {
            cancel.cancel();
        }
    }

    /// Records that the call has ended.
    pub(in crate::api) fn end(&self) {
        self.set_decided();
        self.calls.prompts.lock().retain(|(number, _)| *number != self.number);
    }

    /// Records that the owner refused the call, which looks for the next owner. Later calls that
    /// have not started wait for it.
    pub(in crate::api) fn set_refused(&self) {
        self.calls.order.send_modify(|order| {
            order.undecided.insert(self.number);
        });
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        self.end();
    }
}
