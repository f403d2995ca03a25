//! The receiving side of a connection: passes requests and notifications to a handler, and
//! responses to the requests that wait for them.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::dialect::OverflowPolicy;
use super::framing::Framing;
use super::headers::HeaderReader;
use super::lines::{Line, LineReader};
use super::message::{Id, InvalidMessage, ReceivedMessage, error_object};
use super::shared::{ConnectionState, OutgoingMessage};
use crate::error::{Error, Kind, Result};

/// Handles the messages of a connection. The functions are called in the order of the messages; the
/// futures that they return run concurrently.
pub trait Handler<B> {
    /// Handles a request. Returns its result and the barrier of its response. `cancel` is cancelled
    /// when the other side cancels the request or the connection ends.
    fn request(
        &self,
        method: String,
        params: Value,
        cancel: CancellationToken,
    ) -> impl Future<Output = (Result<Value>, B)> + Send + 'static;

    /// Handles a notification. `cancel` is cancelled when the connection ends.
    fn notification(&self, method: String, params: Value, cancel: CancellationToken) -> impl Future<Output = ()> + Send + 'static;

    /// Handles the error with which an invalid message is answered.
    fn invalid(&self, _error: &Error) {}
}

/// Why reading ended before the end of the input.
#[derive(Debug)]
pub enum ReadError {
    /// The input failed, or its framing is invalid ([`io::ErrorKind::InvalidData`]).
    Input(io::Error),
    /// The other side does not read its messages: see [`OverflowPolicy`].
    PeerNotReading,
}

/// Reads the messages of a connection. The connection is kept open while the reader exists.
pub struct MessageReader<B> {
    shared: Arc<ConnectionState>,
    queue: mpsc::Sender<OutgoingMessage<B>>,
    /// Cancels the requests and notifications that are being handled.
    cancel: CancellationToken,
}

impl<B: Default + Send + 'static> MessageReader<B> {
    /// Reads until the input ends. Handlers never delay reading, so responses and cancellations
    /// always arrive.
    pub async fn run(&self, input: impl AsyncRead + Unpin, handler: &impl Handler<B>) -> Result<(), ReadError> {
        let read = async {
            match self.shared.dialect.framing {
                Framing::Lines => self.read_lines(input, handler).await,
                Framing::Headers => self.read_messages(input, handler).await,
            }
        };
        tokio::select! {
            biased;
            () = self.shared.overflowed.cancelled() => Err(ReadError::PeerNotReading),
            read = read => read,
        }
    }

    /// Cancels the requests and notifications that are being handled.
    pub fn cancel_handlers(&self) {
        self.cancel.cancel();
    }

    /// Waits until all handlers have returned and their responses are queued. Dropping the reader
    /// then ends the [`super::MessageWriter`].
    pub async fn finish(self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    async fn read_lines(&self, input: impl AsyncRead + Unpin, handler: &impl Handler<B>) -> Result<(), ReadError> {
        let bytes_max = self.shared.dialect.message_bytes_max;
        let mut lines = LineReader::new(input, bytes_max);
        loop {
            self.wait_for_room().await?;
            match lines.next().await.map_err(ReadError::Input)? {
                Some(Line::Text(line)) if line.iter().all(u8::is_ascii_whitespace) => {}
                Some(Line::Text(line)) => self.handle(&line, handler),
                Some(Line::TooLong(start)) => {
                    let error = Error::new(Kind::TooLarge, format!("message is longer than {bytes_max} bytes"));
                    self.invalid(InvalidMessage::unreadable(&start, error), handler);
                }
                None => return Ok(()),
            }
        }
    }

    async fn read_messages(&self, input: impl AsyncRead + Unpin, handler: &impl Handler<B>) -> Result<(), ReadError> {
        let mut messages = HeaderReader::new(input, self.shared.dialect.message_bytes_max);
        loop {
            self.wait_for_room().await?;
            match messages.next().await.map_err(ReadError::Input)? {
                Some(message) => self.handle(&message, handler),
                None => return Ok(()),
            }
        }
    }

    /// Waits while the outgoing queue is full because the other side does not read.
    async fn wait_for_room(&self) -> Result<(), ReadError> {
        match self.shared.dialect.when_full {
            OverflowPolicy::PauseReading(stalled) if self.queue.capacity() == 0 => {
                let room = tokio::time::timeout(stalled, self.queue.reserve()).await;
                room.map(drop).map_err(|_| ReadError::PeerNotReading)
            }
            OverflowPolicy::PauseReading(_) | OverflowPolicy::End => Ok(()),
        }
    }

    fn handle(&self, message: &[u8], handler: &impl Handler<B>) {
        match ReceivedMessage::parse(message) {
            Ok(ReceivedMessage::Request { id, method, params }) => self.request(id, method, params, handler),
            Ok(ReceivedMessage::Notification { method, params }) if method == self.shared.dialect.cancel_method => {
                self.cancel_request(&params);
            }
            Ok(ReceivedMessage::Notification { method, params }) => {
                self.start(handler.notification(method, params, self.cancel.child_token()));
            }
            Ok(ReceivedMessage::Response { id, result }) => {
                if !self.shared.requests.resolve(&id, result) {
                    tracing::debug!(%id, "response to a request that is not pending");
                }
            }
            Err(invalid) => self.invalid(invalid, handler),
        }
    }

    /// Fails the request that an invalid response answers. Answers any other invalid message with
    /// an error if the dialect says so.
    fn invalid(&self, InvalidMessage { id, is_response, error }: InvalidMessage, handler: &impl Handler<B>) {
        if is_response && self.shared.requests.resolve(&id, Err(error_object(&error))) {
            tracing::warn!(%id, %error, "invalid response");
        } else if self.shared.dialect.rejects_invalid {
            self.refuse(&id, error, handler);
        } else {
            tracing::debug!(%error, "invalid message");
        }
    }

    fn request(&self, id: Id, method: String, params: Value, handler: &impl Handler<B>) {
        let cancel = self.cancel.child_token();
        if let Err(error) = self.shared.requests.begin(&id, cancel.clone()) {
            return self.refuse(&id, error, handler);
        }
        let handled = handler.request(method, params, cancel);
        let (shared, queue) = (self.shared.clone(), self.queue.clone());
        self.start(async move {
            let (result, barrier) = handled.await;
            shared.requests.finish(&id);
            respond(&shared, &queue, &id, &result, barrier);
        });
    }

    fn cancel_request(&self, params: &Value) {
        let dialect = &self.shared.dialect;
        match params.get(dialect.cancel_id).map(Id::deserialize) {
            Some(Ok(id)) => self.shared.requests.cancel(&id),
            _ => tracing::warn!("{} without a valid {}", dialect.cancel_method, dialect.cancel_id),
        }
    }

    /// Polls the handler once and spawns it if it has not finished. The poll is exempt from Tokio's
    /// cooperative scheduling budget: with an exhausted budget, even a free lock would return
    /// `Pending`.
    fn start(&self, handled: impl Future<Output = ()> + Send + 'static) {
        let mut handled = Box::pin(handled);
        if tokio::task::coop::unconstrained(&mut handled).now_or_never().is_none() {
            self.shared.tasks.spawn(handled);
        }
    }

    fn refuse(&self, id: &Id, error: Error, handler: &impl Handler<B>) {
        handler.invalid(&error);
        respond(&self.shared, &self.queue, id, &Err(error), B::default());
    }
}

impl<B> MessageReader<B> {
    pub(super) fn new(shared: Arc<ConnectionState>, queue: mpsc::Sender<OutgoingMessage<B>>) -> MessageReader<B> {
        MessageReader { shared, queue, cancel: CancellationToken::new() }
    }
}

fn respond<B: Send + 'static>(
    shared: &ConnectionState,
    queue: &mpsc::Sender<OutgoingMessage<B>>,
    id: &Id,
    result: &Result<Value>,
    barrier: B,
) {
    let mut message = Vec::new();
    shared.dialect.framing.response(id, result, &mut message);
    // The error is ignored: a closed connection needs no response.
    let _ = shared.send(queue, OutgoingMessage { message, barrier });
}
