//! Connections on which nobody has authenticated yet. When the server has no room left, the oldest
//! of them is closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// The unauthenticated connections, oldest first.
#[derive(Default)]
pub struct Newcomers(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    next: u64,
    connections: BTreeMap<u64, CancellationToken>,
}

/// One connection: listed until it authenticates or ends.
pub struct Newcomer {
    key: u64,
    newcomers: Arc<Newcomers>,
    /// Cancelled when the connection has to make room.
    pub close: CancellationToken,
}

impl Newcomers {
    fn waiting<T>(&self, with: impl FnOnce(&mut Waiting) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn enter(self: &Arc<Self>) -> Arc<Newcomer> {
        let close = CancellationToken::new();
        let key = self.waiting(|waiting| {
            waiting.next += 1;
            waiting.connections.insert(waiting.next, close.clone());
            waiting.next
        });
        Arc::new(Newcomer { key, newcomers: self.clone(), close })
    }

    /// Closes so many of the oldest. Returns whether there was one.
    pub fn close_oldest(&self, count: usize) -> bool {
        self.waiting(|waiting| {
            let oldest: Vec<CancellationToken> =
                std::iter::from_fn(|| waiting.connections.pop_first()).take(count).map(|(_, close)| close).collect();
            oldest.iter().for_each(CancellationToken::cancel);
            !oldest.is_empty()
        })
    }
}

impl Newcomer {
    /// It authenticated: it is not closed any more to make room.
    pub fn admit(&self) {
        self.newcomers.waiting(|waiting| waiting.connections.remove(&self.key));
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.admit();
    }
}
