//! The calls of this process to a session that look for its owner.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The calls of this process to one session that look for its owner, or run there.
#[derive(Default)]
pub(in crate::api) struct SessionCalls {
    order: watch::Sender<CallOrder>,
    /// The tokens that cancel the prompts.
    prompts: Mutex<Vec<CancellationToken>>,
}

/// The order of the calls.
#[derive(Default)]
struct CallOrder {
    /// The number of the last call.
    last: u64,
    /// Numbers of the calls that have not started in an owner, or were refused by it.
    unstarted: BTreeSet<u64>,
}

impl SessionCalls {
    /// Adds a call after the earlier calls.
    pub(in crate::api) fn add_call(self: &Arc<Self>) -> RoutedCall {
        let mut number = 0;
        self.order.send_modify(|order| {
            order.last += 1;
            number = order.last;
            order.unstarted.insert(number);
        });
        RoutedCall { routing: self.clone(), number }
    }

    /// Registers a prompt until the guard is dropped. `cancel` cancels it.
    pub(in crate::api) fn add_prompt(self: &Arc<Self>, cancel: CancellationToken) -> RoutedPrompt {
        self.prompts.lock().push(cancel.clone());
        RoutedPrompt { routing: self.clone(), cancel }
    }

    /// Cancels the prompts: those that run, those that wait and those that look for an owner.
    pub(in crate::api) fn cancel_prompts(&self) {
        for cancel in self.prompts.lock().iter() {
            cancel.cancel();
        }
    }
}

/// RAII guard: a registered prompt.
pub(in crate::api) struct RoutedPrompt {
    routing: Arc<SessionCalls>,
    cancel: CancellationToken,
}

impl Drop for RoutedPrompt {
    fn drop(&mut self) {
        self.routing.prompts.lock().retain(|cancel| *cancel != self.cancel);
    }
}

/// A call with its place in the order of the calls. Dropping it removes it from the order.
pub(in crate::api) struct RoutedCall {
    routing: Arc<SessionCalls>,
    number: u64,
}

impl RoutedCall {
    /// Waits until each earlier call has started in the owner, so that the calls of one client to a
    /// session keep their order.
    pub(in crate::api) async fn is_next(&self) {
        let mut order = self.routing.order.subscribe();
        // Cannot fail: `self.routing` holds the sender.
        let _ = order.wait_for(|order| order.unstarted.range(..self.number).next().is_none()).await;
    }

    /// Records that the call has started in the owner. Later calls can start.
    pub(in crate::api) fn set_started(&self) {
        self.routing.order.send_modify(|order| {
            order.unstarted.remove(&self.number);
        });
    }

    /// Records that the owner refused the call, which looks for the next owner. Later calls that
    /// have not started wait for it.
    pub(in crate::api) fn set_refused(&self) {
        self.routing.order.send_modify(|order| {
            order.unstarted.insert(self.number);
        });
    }
}

impl Drop for RoutedCall {
    fn drop(&mut self) {
        self.set_started();
    }
}
