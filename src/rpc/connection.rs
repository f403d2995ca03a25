//! The sending side of a connection: requests and notifications to the other side.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::dialect::Dialect;
use super::message::Id;
use super::reader::MessageReader;
use super::shared::{ClosedConnection, ConnectionState, OutgoingMessage};
use super::writer::MessageWriter;

/// Sends messages to the other side. Clones share one connection and do not keep it open. The
/// connection ends when its [`MessageWriter`] is dropped, or when its [`MessageReader`] and all
/// running handlers are dropped.
pub struct Connection<B> {
    shared: Arc<ConnectionState>,
    queue: mpsc::WeakSender<OutgoingMessage<B>>,
}

/// Creates the parts of a connection. A barrier of type `B` is attached to each message: see
/// [`super::Feed::Barrier`].
pub fn connection<B: Send>(dialect: Dialect) -> (Connection<B>, MessageReader<B>, MessageWriter<B>) {
    let shared = Arc::new(ConnectionState::new(dialect));
    let (sender, receiver) = mpsc::channel(dialect.messages_queued_max);
    let connection = Connection { shared: shared.clone(), queue: sender.downgrade() };
    (connection, MessageReader::new(shared.clone(), sender), MessageWriter::new(shared, receiver))
}

impl<B> Clone for Connection<B> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), queue: self.queue.clone() }
    }
}

/// Why a request has no result.
#[derive(Debug)]
pub enum RequestError {
    /// The connection has ended.
    Closed,
    /// The error object with which the other side responded.
    Refused(Value),
    /// The result is not of the expected type.
    Invalid(serde_json::Error),
}

impl From<ClosedConnection> for RequestError {
    fn from(ClosedConnection: ClosedConnection) -> Self {
        RequestError::Closed
    }
}

impl<B: Default + Send + 'static> Connection<B> {
    /// Sends a request before it returns. The future waits for the result; dropping it cancels the
    /// request.
    pub fn request<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
        barrier: B,
    ) -> impl Future<Output = Result<R, RequestError>> {
        let (sender, response) = oneshot::channel();
        let id = self.shared.requests.register(Box::new(move |result| drop(sender.send(result))));
        let pending = PendingRequest { connection: self, id };
        let mut message = Vec::new();
        self.shared.dialect.framing.request(&pending.id, method, params, &mut message);
        let sent = self.send(message, barrier);
        async move {
            let _pending = pending;
            sent?;
            let result = tokio::select! {
                biased;
                result = response => result.map_err(|_| RequestError::Closed)?,
                () = self.closed() => return Err(RequestError::Closed),
            };
            serde_json::from_value(result.map_err(RequestError::Refused)?).map_err(RequestError::Invalid)
        }
    }

    /// Sends a request and ignores its response.
    pub fn request_without_response(&self, method: &str, params: impl Serialize) -> Result<(), ClosedConnection> {
        let mut message = Vec::new();
        self.shared.dialect.framing.request(&self.shared.requests.next_id(), method, params, &mut message);
        self.send(message, B::default())
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Result<(), ClosedConnection> {
        let mut message = Vec::new();
        self.shared.dialect.framing.notification(method, params, &mut message);
        self.send(message, B::default())
    }

    /// Queues a barrier without a message.
    pub fn send_barrier(&self, barrier: B) -> Result<(), ClosedConnection> {
        self.send(Vec::new(), barrier)
    }

    /// Resolves when the [`MessageWriter`] is dropped. After that, no message is sent.
    pub async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }

    fn send(&self, message: Vec<u8>, barrier: B) -> Result<(), ClosedConnection> {
        let queue = self.queue.upgrade().ok_or(ClosedConnection)?;
        self.shared.send(&queue, OutgoingMessage { message, barrier })
    }
}

/// A request that has no response yet. Dropping the value cancels the request.
struct PendingRequest<'a, B: Default + Send + 'static> {
    connection: &'a Connection<B>,
    id: Id,
}

impl<B: Default + Send + 'static> Drop for PendingRequest<'_, B> {
    fn drop(&mut self) {
        let Connection { shared, .. } = self.connection;
        if shared.requests.withdraw(&self.id) {
            // The error is ignored: without a connection there is nothing left to cancel.
            let _ = self.connection.notify(shared.dialect.cancel_method, shared.dialect.cancel_params(&self.id));
        }
    }
}
