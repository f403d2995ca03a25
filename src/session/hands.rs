//! What clients lend to a session, as long as they are there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tools::ClientHands;

/// The hands of those clients that attend a session and have some.
#[derive(Default)]
pub struct Lending {
    lent: Mutex<Vec<Arc<dyn ClientHands>>>,
}

/// Hands are lent as long as this lives.
pub struct Lent {
    lending: Arc<Lending>,
    hands: Arc<dyn ClientHands>,
}

impl Lending {
    fn lent(&self) -> MutexGuard<'_, Vec<Arc<dyn ClientHands>>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn lend(self: &Arc<Self>, hands: Arc<dyn ClientHands>) -> Lent {
        self.lent().push(hands.clone());
        Lent { lending: self.clone(), hands }
    }

    /// Those of the client that came last.
    pub fn hands(&self) -> Option<Arc<dyn ClientHands>> {
        self.lent().last().cloned()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.lending.lent().retain(|hands| !Arc::ptr_eq(hands, &self.hands));
    }
}
