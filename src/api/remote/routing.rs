//! The calls of this process to a session that look for its owner.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

/// The calls of this process to one session that look for its owner, or run there.
#[derive(Default)]
pub(in crate::api) struct SessionCalls {
    order: Arc<tokio::sync::Mutex<()>>,
    /// The tokens that cancel the prompts.
    prompts: Mutex<Vec<CancellationToken>>,
}

impl SessionCalls {
    /// Locks the order of the calls. A call holds the lock until it has started in the owner, so
    /// that the calls of one client to a session keep their order.
    pub(in crate::api) async fn order(&self) -> OwnedMutexGuard<()> {
        self.order.clone().lock_owned().await
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
