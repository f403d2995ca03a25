//! The writing side of a connection: collects messages in a buffer and writes them together.

use std::io;
use std::sync::Arc;

use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use super::message::Id;
use super::requests::ResponseHandler;
use super::shared::{ConnectionState, OutgoingMessage};

/// A source of messages that are not queued but produced when there is room to write them, such as
/// session events. The feed `()` produces no messages.
pub trait Feed: Send {
    /// A value attached to each queued message. It determines which feed messages are written
    /// before and after the queued message.
    type Barrier: Send;
    /// Identifies messages that are ready to be written.
    type Change: Send;

    /// Writes the feed messages that must precede the queued message with this barrier.
    fn before(&mut self, barrier: &Self::Barrier, out: &mut FrameWriter) -> impl Future<Output = io::Result<()>> + Send;

    /// Writes the feed messages that follow the queued message with this barrier. Called once the
    /// queued message is in the buffer.
    fn after(&mut self, barrier: Self::Barrier, out: &mut FrameWriter) -> impl Future<Output = ()> + Send;

    /// Resolves when there is something to write. Cancel-safe.
    fn changed(&mut self) -> impl Future<Output = Self::Change> + Send;

    /// Writes the feed messages that are ready. Queued messages wait until this call returns.
    fn write(&mut self, change: Self::Change, out: &mut FrameWriter) -> impl Future<Output = io::Result<()>> + Send;

    /// Writes the messages that are still queued when the connection ends.
    fn finish(&mut self, out: &mut FrameWriter) -> impl Future<Output = io::Result<()>> + Send;
}

impl Feed for () {
    type Barrier = ();
    type Change = ();

    async fn before(&mut self, (): &(), _: &mut FrameWriter) -> io::Result<()> {
        Ok(())
    }

    async fn after(&mut self, (): (), _: &mut FrameWriter) {}

    async fn changed(&mut self) {
        std::future::pending().await
    }

    async fn write(&mut self, (): (), _: &mut FrameWriter) -> io::Result<()> {
        Ok(())
    }

    async fn finish(&mut self, _: &mut FrameWriter) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the queued messages of a connection and the messages of its feed.
pub struct MessageWriter<B> {
    shared: Arc<ConnectionState>,
    queue: mpsc::Receiver<OutgoingMessage<B>>,
    _closed: DropGuard,
}

impl<B: Send> MessageWriter<B> {
    pub(super) fn new(shared: Arc<ConnectionState>, queue: mpsc::Receiver<OutgoingMessage<B>>) -> MessageWriter<B> {
        let closed = shared.closed.clone().drop_guard();
        MessageWriter { shared, queue, _closed: closed }
    }

    /// Writes messages until the [`super::MessageReader`] and its handlers are dropped, or writing
    /// fails.
    pub async fn run(
        &mut self,
        output: impl AsyncWrite + Unpin + Send + 'static,
        mut feed: impl Feed<Barrier = B>,
    ) -> io::Result<()> {
        let mut out = FrameWriter { shared: self.shared.clone(), output: Box::new(output), buffer: Vec::new() };
        loop {
            let idle = out.buffer.is_empty();
            tokio::select! {
                biased;
                outgoing = self.queue.recv() => match outgoing {
                    Some(OutgoingMessage { message, barrier }) => {
                        feed.before(&barrier, &mut out).await?;
                        out.buffer.extend_from_slice(&message);
                        feed.after(barrier, &mut out).await;
                        out.flush_if_full().await?;
                    }
                    None => break,
                },
                change = feed.changed() => {
                    feed.write(change, &mut out).await?;
                    out.flush_if_full().await?;
                }
                () = std::future::ready(()), if !idle => out.flush().await?,
            }
        }
        feed.finish(&mut out).await?;
        out.flush().await
    }
}

/// Buffer size that causes a flush, in bytes. The buffer is also flushed when no message is ready.
const FLUSH_BYTES: usize = 64 << 10;

/// Encodes messages into a buffer and writes the buffer to the output.
pub struct FrameWriter {
    shared: Arc<ConnectionState>,
    output: Box<dyn AsyncWrite + Unpin + Send>,
    buffer: Vec<u8>,
}

impl FrameWriter {
    /// Writes a notification.
    pub fn notify(&mut self, method: &str, params: impl Serialize) {
        self.shared.dialect.framing.notification(method, params, &mut self.buffer);
    }

    /// Writes a request. `handler` receives the response.
    pub fn request(&mut self, method: &str, params: impl Serialize, handler: ResponseHandler) -> Id {
        let id = self.shared.requests.register(handler);
        self.shared.dialect.framing.request(&id, method, params, &mut self.buffer);
        id
    }

    /// Cancels a request, unless the other side has responded.
    pub fn cancel_request(&mut self, id: &Id) {
        let ConnectionState { requests, dialect, .. } = &*self.shared;
        if requests.withdraw(id) {
            dialect.framing.notification(dialect.cancel_method, dialect.cancel_params(id), &mut self.buffer);
        }
    }

    /// Writes the buffer to the output if it is large.
    pub async fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= FLUSH_BYTES { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(&self.buffer).await?;
        self.output.flush().await?;
        self.buffer.clear();
        if self.buffer.capacity() > 4 * FLUSH_BYTES {
            self.buffer.shrink_to(FLUSH_BYTES);
        }
        Ok(())
    }
}
