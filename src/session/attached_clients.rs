//! Client-side files and terminals that attached clients provide to a session.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::toolkit::ClientAccess;

/// The attached clients of one session that provide files or terminals.
#[derive(Default)]
pub struct AttachedClients {
    clients: Mutex<Vec<Arc<dyn ClientAccess>>>,
}

/// RAII guard: the client is registered while this exists.
pub(crate) struct AttachedClient {
    clients: Arc<AttachedClients>,
    client: Arc<dyn ClientAccess>,
}

impl AttachedClients {
    pub(crate) fn attach(self: &Arc<Self>, client: Arc<dyn ClientAccess>) -> AttachedClient {
        self.clients.lock().push(client.clone());
        AttachedClient { clients: self.clone(), client }
    }

    /// Returns the most recently attached client.
    pub(crate) fn latest(&self) -> Option<Arc<dyn ClientAccess>> {
        self.clients.lock().last().cloned()
    }
}

impl Drop for AttachedClient {
    fn drop(&mut self) {
        self.clients.clients.lock().retain(|client| !Arc::ptr_eq(client, &self.client));
    }
}
