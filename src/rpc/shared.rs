//! The state that the parts of a connection share, and its outgoing queue.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::dialect::{Dialect, OverflowPolicy};
use super::requests::PendingRequests;
use crate::task::TaskTracker;

/// The connection has ended, so the message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedConnection;

/// An encoded message, and the barrier that determines which events are written before and after
/// it.
pub(super) struct OutgoingMessage<B> {
    /// The message with its framing; may be empty.
    pub message: Vec<u8>,
    /// See [`super::writer::Feed::Barrier`].
    pub barrier: B,
}

/// The state that the parts of a connection share.
pub(super) struct ConnectionState {
    pub dialect: Dialect,
    pub requests: PendingRequests,
    /// Tasks that run handlers, and tasks that wait for room in the queue to send a message.
    pub tasks: TaskTracker,
    /// Cancelled when a message did not fit into the queue and the dialect has
    /// [`OverflowPolicy::End`].
    pub overflowed: CancellationToken,
    /// Cancelled when the writer is dropped. After that, no message is written.
    pub closed: CancellationToken,
}

impl ConnectionState {
    pub(crate) fn new(dialect: Dialect) -> ConnectionState {
        ConnectionState {
            dialect,
            requests: PendingRequests::default(),
            tasks: TaskTracker::default(),
            overflowed: CancellationToken::new(),
            closed: CancellationToken::new(),
        }
    }

    /// Queues a message without waiting.
    pub(crate) fn send<B: Send + 'static>(
        &self,
        queue: &mpsc::Sender<OutgoingMessage<B>>,
        outgoing: OutgoingMessage<B>,
    ) -> Result<(), ClosedConnection> {
        match (queue.try_send(outgoing), self.dialect.when_full) {
            (Ok(()), _) => Ok(()),
            (Err(mpsc::error::TrySendError::Closed(_)), _) => Err(ClosedConnection),
            // The number of tasks is bounded, because the reader waits for room before it accepts
            // more requests.
            (Err(mpsc::error::TrySendError::Full(outgoing)), OverflowPolicy::PauseReading(_)) => {
                let queue = queue.clone();
                self.tasks.spawn(async move {
                    let _ = queue.send(outgoing).await;
                });
                Ok(())
            }
            (Err(mpsc::error::TrySendError::Full(_)), OverflowPolicy::End) => {
                self.overflowed.cancel();
                Err(ClosedConnection)
            }
        }
    }
}
