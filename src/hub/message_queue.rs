//! The messages of a hosted agent that wait for its turn, limited in number and in size. The agent
//! waits while the queue is full.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::limits;

/// Maximum total size of the queued messages of an agent, in bytes.
const AGENT_MESSAGES_QUEUED_BYTES_MAX: usize = 32 << 20;

pub(super) fn message_queue<T>() -> (MessageSender<T>, MessageReceiver<T>) {
    let (sender, receiver) = mpsc::channel(limits::AGENT_MESSAGES_QUEUED_MAX);
    let bytes = Arc::new(Semaphore::new(AGENT_MESSAGES_QUEUED_BYTES_MAX));
    (MessageSender { sender, bytes }, MessageReceiver(receiver))
}

pub(super) struct MessageSender<T> {
    sender: mpsc::Sender<(T, OwnedSemaphorePermit)>,
    /// One permit for each free byte.
    bytes: Arc<Semaphore>,
}

impl<T> Clone for MessageSender<T> {
    fn clone(&self) -> MessageSender<T> {
        MessageSender { sender: self.sender.clone(), bytes: self.bytes.clone() }
    }
}

impl<T> MessageSender<T> {
    /// Adds a message of `bytes` as soon as there is room. Returns the message if the receiver was
    /// dropped or closed.
    pub(super) async fn send(&self, message: T, bytes: usize) -> Result<(), T> {
        // A message that is larger than the queue waits until the queue is empty.
        let bytes = u32::try_from(bytes.min(AGENT_MESSAGES_QUEUED_BYTES_MAX)).unwrap_or(u32::MAX);
        let Ok(permit) = self.bytes.clone().acquire_many_owned(bytes).await else { return Err(message) };
        self.sender.send((message, permit)).await.map_err(|refused| refused.0.0)
    }
}

pub(super) struct MessageReceiver<T>(mpsc::Receiver<(T, OwnedSemaphorePermit)>);

impl<T> MessageReceiver<T> {
    /// Waits for the next message. Never returns after the agent's process has ended.
    pub(super) async fn next(&mut self) -> T {
        match self.0.recv().await {
            Some((message, _)) => message,
            None => std::future::pending().await,
        }
    }

    /// Refuses further messages, and returns the next one that is in the queue.
    pub(super) async fn rest(&mut self) -> Option<T> {
        self.0.close();
        self.0.recv().await.map(|(message, _)| message)
    }
}
