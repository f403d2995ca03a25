//! Takes and releases the ownership of an open session.

use parking_lot::MutexGuard;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::id::{Seq, TurnId};
use crate::limits;
use crate::session::events::log;
use crate::session::open::OpenSession;
use crate::session::owner::lock;
use crate::session::turn::core::SessionCore;

impl OpenSession {
    /// Ensures that this process owns the session, as [`Ownership::acquire`] does. A session that
    /// is being closed is not taken, and neither is one whose running turn lost its log.
    pub async fn own(&self) -> Result<()> {
        self.own_for(None).await
    }

    /// Ensures that this process owns the session, as [`OpenSession::own`] does, for the claimed
    /// turn `turn`, which has not started.
    pub(in crate::session) async fn own_for(&self, turn: Option<&TurnId>) -> Result<()> {
        let may_take = |lost: Option<&Error>, locked: bool| {
            let core = self.core();
            match lost {
                Some(error) if core.running().is_some_and(|running| turn != Some(&running.id)) => Err(error.clone()),
                // A session that is being closed ends its turn in the log, too.
                Some(_) if locked => Ok(core),
                // A closed session would keep the lock from the one that replaces it.
                _ => core.check_open().map(|()| core),
            }
        };
        let before = self.is_owned();
        self.ownership.acquire(may_take, || self.rebuild_core()).await?;
        if !before {
            self.set_owner_connection(None);
            let due = self.peers.has_others().then(|| Instant::now() + limits::RESPONDER_WAIT);
            *self.responders_wait_until.lock() = due;
        }
        Ok(())
    }

    /// Rebuilds the core from the committed state.
    fn rebuild_core(&self) -> Result<()> {
        let mut core = self.core();
        if self.log.state(|state| core.rebuild(&state.queue)) {
            Ok(())
        } else {
            Err(Error::internal("the message of the turn is not in the log"))
        }
    }

    /// Waits until an event that was appended outside of a turn is committed, and returns its seq.
    /// If the event is lost because its generation is over, takes the session again, so that the
    /// call succeeds when it is repeated. A turn that loses an event recovers the session itself.
    pub(in crate::session) async fn committed(&self, done: oneshot::Receiver<Result<Seq>>) -> Result<Seq> {
        let committed = log::committed(done).await;
        if committed.as_ref().is_err_and(lock::is_not_owner) && self.is_owned() {
            // A failure changes nothing for the call, which is repeated in any case.
            let _ = self.own().await;
        }
        committed
    }

    /// Waits until this process does not own the session.
    pub(crate) async fn released(&self) {
        self.ownership.released().await;
    }

    /// Ends the turn and the tool calls that a dead owner left open, without owning the session.
    pub(in crate::session) async fn close_orphan(&self) -> Result<()> {
        if self.log.failed().is_some() {
            // This process lost an append: only an owner continues the log.
            self.own().await?;
            self.release_idle().await;
            return Ok(());
        }
        self.ownership.close_orphan(|| self.core().check_open()).await?;
        self.set_owner_connection(None);
        Ok(())
    }

    /// Closes the agent and releases ownership, if no turn runs and nothing waits. Returns whether
    /// ownership was released.
    pub(in crate::session) async fn release_idle(&self) -> bool {
        // The end of the last turn may not be committed yet.
        let idle = |core: &MutexGuard<'_, SessionCore>| core.is_between_turns() && core.is_idle();
        self.ownership.release_if(|| Some(self.core()).filter(idle), self.agent.close()).await
    }
}
