//! The messages with which processes forward calls to each other.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::dispatch::client::Client;
use crate::api::dispatch::method::{FollowChange, Reply};
use crate::error::Result;
use crate::id::{MessageId, Seq, SessionId};
use crate::rpc::message::error_object;

/// The request that forwards a call ([`ForwardedCall`], [`ForwardedReply`]).
pub(crate) const CALL: &str = "call";
/// The request for a session that its owner does not need ([`Release`]). The result is true if the
/// owner released the session.
pub(crate) const RELEASE: &str = "release";
/// The notification that the client cancelled a forwarded turn ([`CallNumber`]).
pub(crate) const CANCEL: &str = "cancel";
/// The notification that the client's response is written ([`CallNumber`]).
pub(crate) const ANSWERED: &str = "answered";
/// The notification of the owner that a forwarded call started a turn. Its params are a
/// [`TurnStart`] with the number of the call. Sent if [`ForwardedCall::reports_start`] is set.
pub(crate) const STARTED: &str = "started";
/// The notification of the owner that the client is to see the session ([`ShownEvents`]).
pub(crate) const SHOWN: &str = "shown";

/// A call that this process forwards to the owner of its session.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForwardedCall {
    /// Number of the call on its connection.
    pub call: u64,
    pub session: SessionId,
    pub method: String,
    pub params: Value,
    pub client: Arc<Client>,
    /// The client answers the permission requests of the turn that the call starts.
    pub answers: bool,
    pub reports_start: bool,
    pub message_id: MessageId,
    pub repeated_after: Option<Seq>,
    /// The epoch of a call that adds a message. The owner refuses it if it has refused another one
    /// of this epoch, or if it has released and taken the session since. Missing from older
    /// processes.
    pub epoch: Option<u64>,
}

/// The owner's reply to a [`ForwardedCall`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ForwardedReply {
    /// The process does not own the session, or no longer: the call had no effect. `accepted` is
    /// true if the call waited in the process before.
    NotOwner { accepted: bool },
    Reply {
        result: Value,
        /// The error object, if the method returned an error.
        error: Option<Value>,
        after: Option<(SessionId, Seq)>,
        follow: Option<FollowChange>,
    },
}

impl ForwardedReply {
    /// Encodes the outcome of a call.
    pub(crate) fn new(outcome: Result<Reply<Value>>) -> ForwardedReply {
        let Reply { result, after, follow, .. } = outcome.unwrap_or_else(|error| Reply::from_result(Err(error)));
        let (result, error) = match result {
            Ok(result) => (result, None),
            Err(error) => (Value::Null, Some(error_object(&error))),
        };
        ForwardedReply::Reply { result, error, after, follow }
    }
}

/// Names a call on a connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallNumber {
    pub call: u64,
}

/// Params of [`SHOWN`]: the client sees the events of the session after `after`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ShownEvents {
    pub call: u64,
    pub after: Seq,
}

/// Params of [`RELEASE`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Release {
    pub session: SessionId,
}
