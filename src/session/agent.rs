//! The interface between a session and its agent.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::state::SessionState;
use super::turn::Turn;
use crate::content::StopReason;
use crate::error::Result;
use crate::id::SessionId;

/// The agent of one session. It lives as long as the session is open.
pub trait Agent: Send + Sync + 'static {
    /// Runs one turn and records its events in the turn's log. Cancellation is a normal outcome
    /// ([`StopReason::Cancelled`]); an error is shown to the user. The future is never dropped
    /// before it completes, so it must watch `turn.cancel`.
    fn run<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<StopReason>>;

    /// Ends background work, such as jobs, and waits for it within a bound. No turn runs during the
    /// call; a later turn starts from a fresh environment.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Creates the agents of sessions.
pub trait Agents: Send + Sync + 'static {
    /// Creates the agent of a session. Must not block or use the network; configuration errors
    /// surface when the first turn runs.
    fn open(&self, id: &SessionId, state: &SessionState) -> Arc<dyn Agent>;

    /// Checks that a new session can run turns; on an error, the session is not created.
    fn check(&self, state: &SessionState) -> Result<()>;
}
