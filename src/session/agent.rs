//! Who works in a session: nuncio's own loop, or another agent behind the same face.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::state::SessionState;
use super::turn::Turn;
use crate::content::StopReason;
use crate::error::Result;
use crate::id::SessionId;

/// The worker of one session; kept as long as the session is open.
pub trait Agent: Send + Sync + 'static {
    /// Does one turn: everything that happens goes to the turn's log. A cancel is an outcome ([`StopReason::Cancelled`]); an error
    /// is what the user has to know. The future is never dropped before its end: it must watch `turn.cancel`.
    fn run<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<StopReason>>;

    /// Ends what runs on between turns, and waits for that, a bounded time. No turn runs; one that comes finds a fresh worker.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Makes the workers of sessions. Must be quick, and touch neither a model nor the network. What keeps a worker from working is told by
/// its turns.
pub trait Agents: Send + Sync + 'static {
    fn open(&self, id: &SessionId, state: &SessionState) -> Arc<dyn Agent>;

    /// Whether there can be a new session: one that could not work is not made.
    fn check(&self, state: &SessionState) -> Result<()>;
}
