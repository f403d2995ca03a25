//! The calls of one connection that are running.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The running calls, by their number on the connection. Dropping the value reports that all
/// responses are written.
#[derive(Default)]
pub(super) struct RunningCalls(Mutex<HashMap<u64, RunningCall>>);

struct RunningCall {
    /// Cancelled when the client cancels its turn.
    cancel: CancellationToken,
    /// Dropped when the client's response is written.
    _answered: DropGuard,
}

impl RunningCalls {
    /// Registers a call. `cancel` and `answered` are cancelled as the notifications arrive.
    pub(crate) fn begin(&self, call: u64, cancel: CancellationToken, answered: CancellationToken) {
        self.0.lock().insert(call, RunningCall { cancel, _answered: answered.drop_guard() });
    }

    /// Cancels the turn of a call.
    pub(crate) fn cancel(&self, call: u64) {
        if let Some(running) = self.0.lock().get(&call) {
            running.cancel.cancel();
        }
    }

    /// Removes a call whose response is written.
    pub(crate) fn finish(&self, call: u64) {
        self.0.lock().remove(&call);
    }

    /// Returns a guard that removes the call when it is dropped.
    pub(crate) fn finishing(self: &Arc<Self>, call: u64) -> FinishGuard {
        FinishGuard { calls: self.clone(), call }
    }
}

/// RAII guard: removes a call.
pub(super) struct FinishGuard {
    calls: Arc<RunningCalls>,
    call: u64,
}

impl Drop for FinishGuard {
    fn drop(&mut self) {
        self.calls.finish(self.call);
    }
}
