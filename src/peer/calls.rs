//! The calls of one connection: those that are running, and the owners of those that add messages.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::id::SessionId;

/// Maximum number of sessions whose epochs are known for a connection.
const EPOCHS_MAX: usize = 4096;

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

/// The last epoch of the calls that add messages, by session, and the generation in which this
/// process owned the session at its first call. `None`: a call of the epoch was refused.
#[derive(Default)]
pub(super) struct CallEpochs(Mutex<HashMap<SessionId, (u64, Option<i64>)>>);

impl CallEpochs {
    /// Returns whether a call that has arrived can run: this process owns the session, and owned it
    /// at each earlier call of the epoch without a pause.
    pub(crate) fn accepts(&self, session: &SessionId, epoch: u64, generation: Option<i64>) -> bool {
        let mut epochs = self.0.lock();
        if epochs.len() >= EPOCHS_MAX && !epochs.contains_key(session) {
            // Matters only to calls that are on their way while a session changes its owner.
            epochs.clear();
        }
        let known = epochs.entry(session.clone()).or_insert((epoch, generation));
        match known.0.cmp(&epoch) {
            std::cmp::Ordering::Less => *known = (epoch, generation),
            std::cmp::Ordering::Equal if known.1 != generation => known.1 = None,
            _ => {}
        }
        generation.is_some() && *known == (epoch, generation)
    }

    /// Records that a call of an epoch was refused, after it had waited.
    pub(crate) fn refuse(&self, session: &SessionId, epoch: u64) {
        if let Some(known) = self.0.lock().get_mut(session).filter(|known| known.0 == epoch) {
            known.1 = None;
        }
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
