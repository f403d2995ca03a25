//! Conventions of a connection on which the JSON-RPC specification leaves a choice.

use std::time::Duration;

use serde_json::{Value, json};

use super::framing::Framing;
use super::message::Id;

/// Conventions and limits of a connection. ACP and LSP are two dialects.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// How both directions of the stream are divided into messages.
    pub framing: Framing,
    /// Longest message that is accepted, in bytes, without its framing. Of lines, a longer one is
    /// skipped and answered with an error; with headers, the connection ends.
    pub message_bytes_max: usize,
    /// Messages that wait to be written.
    pub messages_queued_max: usize,
    /// The reaction when that many messages wait.
    pub when_full: WhenFull,
    /// The notification that cancels a request.
    pub cancel_method: &'static str,
    /// The field of its params that contains the id of the request.
    pub cancel_id: &'static str,
    /// Responds with an error to bytes that are not a valid message. Otherwise they are ignored.
    pub rejects_invalid: bool,
}

/// The reaction to a full outgoing queue: the other side does not read.
#[derive(Clone, Copy, Debug)]
pub enum WhenFull {
    /// Stop reading until there is room. The connection ends if that takes this long.
    PauseReading(Duration),
    /// End the connection.
    End,
}

impl Dialect {
    /// The params of the notification that cancels the request `id`.
    pub(super) fn cancel_params(&self, id: &Id) -> Value {
        json!({ (self.cancel_id): id })
    }
}
