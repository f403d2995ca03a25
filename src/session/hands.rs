//! Client-side files and terminals that attached clients provide to a session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::toolkit::ClientHands;

/// The attached clients that provide files or terminals.
#[derive(Default)]
pub struct Lending {
    lent: Mutex<Vec<Arc<dyn ClientHands>>>,
}

/// RAII guard: the client is registered while this exists.
pub struct Lent {
    lending: Arc<Lending>,
    hands: Arc<dyn ClientHands>,
}

impl Lending {
    fn lent(&self) -> MutexGuard<'_, Vec<Arc<dyn ClientHands>>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a client.
    pub fn lend(self: &Arc<Self>, hands: Arc<dyn ClientHands>) -> Lent {
        self.lent().push(hands.clone());
        Lent { lending: self.clone(), hands }
    }

    /// Returns the most recently attached client.
    pub fn hands(&self) -> Option<Arc<dyn ClientHands>> {
        self.lent().last().cloned()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.lending.lent().retain(|hands| !Arc::ptr_eq(hands, &self.hands));
    }
}
