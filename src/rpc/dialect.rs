//! Connection conventions that the JSON-RPC specification leaves open.

use std::time::Duration;

use serde_json::{Value, json};

use super::framing::Framing;
use super::message::Id;

/// Conventions and limits of a connection. ACP and LSP are two dialects.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// How both directions of the stream are divided into messages.
    pub framing: Framing,
    /// Maximum size of a received message without its framing, in bytes. With [`Framing::Lines`], a
    /// longer message is skipped and answered with an error. With [`Framing::Headers`], a longer
    /// message ends the connection.
    pub message_bytes_max: usize,
    /// Maximum number of messages in the outgoing queue.
    pub messages_queued_max: usize,
    /// The reaction when the outgoing queue is full.
    pub when_full: OverflowPolicy,
    /// The notification that cancels a request.
    pub cancel_method: &'static str,
    /// The field in the params of `cancel_method` that contains the id of the request.
    pub cancel_id: &'static str,
    /// True if an invalid message is answered with an error, false if it is ignored.
    pub rejects_invalid: bool,
}

/// The reaction to a full outgoing queue, which means that the other side does not read its
/// messages.
#[derive(Clone, Copy, Debug)]
pub enum OverflowPolicy {
    /// Stop reading until the queue has room. The connection ends if that takes this long.
    PauseReading(Duration),
    /// End the connection.
    End,
}

impl Dialect {
    /// Creates the params of the notification that cancels the request `id`.
    pub(super) fn cancel_params(&self, id: &Id) -> Value {
        json!({ (self.cancel_id): id })
    }
}
