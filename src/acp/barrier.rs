//! The order between the messages of a connection and the events of the followed sessions.

use tokio_util::sync::DropGuard;

use super::subscriptions::Subscription;
use crate::api::FollowChange;
use crate::id::{Seq, SessionId};
use crate::rpc::Connection;

/// The connection to an ACP client.
pub(crate) type AcpConnection = Connection<Barrier>;

/// Determines which events are written before a message, and how the set of followed sessions
/// changes after the message.
#[derive(Default)]
pub(crate) struct Barrier {
    /// Events of this session up to this seq are written before the message.
    pub after: Option<(SessionId, Seq)>,
    pub follow: Option<FollowChange>,
    /// Begins after the message.
    pub subscription: Option<Subscription>,
    /// Dropped once the response is in the output buffer. The next turn starts after that, so none
    /// of the turn's events precede the response.
    pub answered: Option<DropGuard>,
}

impl Barrier {
    /// Creates a barrier that places a message after the events of `session` up to `seq`.
    pub(crate) fn after(session: SessionId, seq: Seq) -> Barrier {
        Barrier { after: Some((session, seq)), ..Barrier::default() }
    }
}
