//! Connections that have not authenticated. When the server reaches its connection limit, the
//! oldest unauthenticated connection is closed.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The unauthenticated connections, oldest first.
#[derive(Default)]
pub(crate) struct PendingConnections(Mutex<ConnectionTable>);

#[derive(Default)]
struct ConnectionTable {
    next: u64,
    connections: BTreeMap<u64, CancellationToken>,
}

/// A connection that is listed until it authenticates or closes.
pub(crate) struct PendingConnection {
    key: u64,
    pending_connections: Arc<PendingConnections>,
    /// Cancelled to close the connection.
    pub close: CancellationToken,
}

impl PendingConnections {
    fn waiting<T>(&self, with: impl FnOnce(&mut ConnectionTable) -> T) -> T {
        with(&mut self.0.lock())
    }

    /// Adds a new connection to the list.
    pub(crate) fn enter(self: &Arc<Self>) -> Arc<PendingConnection> {
        let close = CancellationToken::new();
        let key = self.waiting(|waiting| {
            waiting.next += 1;
            waiting.connections.insert(waiting.next, close.clone());
            waiting.next
        });
        Arc::new(PendingConnection { key, pending_connections: self.clone(), close })
    }

    /// Closes the `count` oldest unauthenticated connections. Returns false if there were none.
    pub(crate) fn close_oldest(&self, count: usize) -> bool {
        self.waiting(|waiting| {
            let oldest: Vec<CancellationToken> =
                std::iter::from_fn(|| waiting.connections.pop_first()).take(count).map(|(_, close)| close).collect();
            oldest.iter().for_each(CancellationToken::cancel);
            !oldest.is_empty()
        })
    }
}

impl PendingConnection {
    /// Removes the connection from the list. Call this when the connection has authenticated.
    pub(crate) fn admit(&self) {
        self.pending_connections.waiting(|waiting| waiting.connections.remove(&self.key));
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        self.admit();
    }
}
