//! A session that this process owns, and how this process takes and releases the ownership.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::MutexGuard;
use tokio::sync::oneshot;

use crate::config::McpServer;
use crate::error::{Error, Kind, Result};
use crate::event::Body;
use crate::id::{Seq, TurnId};
use crate::session::events::log;
use crate::session::open::{OpenSession, Session};
use crate::session::owner::lock;
use crate::session::turn::agent::{CommandRequest, CommandResult};
use crate::session::turn::core::SessionCore;

/// Pause between two attempts to resume a session after its events were lost.
const STORE_RECOVERY: Duration = Duration::from_millis(500);

/// A handle to a session that this process owned when the handle was made. Prompts, messages and
/// changes need it. The process may have lost the session since, so each of them checks the
/// ownership again: it takes the session back or fails.
#[derive(Clone)]
pub struct OwnedSession(Session);

impl Deref for OwnedSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl Session {
    /// Returns a handle for the owner. Fails if this process does not own the session.
    pub(crate) fn owned(&self) -> Result<OwnedSession> {
        self.check_owned().map(|()| OwnedSession(self.clone()))
    }

    /// Ensures that this process owns the session, as [`Ownership::acquire`] does. A session that
    /// is being closed is not taken, and neither is one whose running turn lost its log.
    pub async fn own(&self) -> Result<OwnedSession> {
        self.own_for(None).await.map(|()| OwnedSession(self.clone()))
    }

    /// Takes the session, unless this process owns it. Returns `None` if another process owns it.
    pub(in crate::session) async fn own_unless_busy(&self) -> Result<Option<OwnedSession>> {
        match self.owned() {
            Ok(owned) => Ok(Some(owned)),
            Err(_) => unless_busy(self.own().await),
        }
    }
}

impl OwnedSession {
    /// Returns the generation in which this process owns the session.
    pub(crate) fn generation(&self) -> i64 {
        self.log.generation.load(Ordering::Acquire)
    }

    /// Replaces the MCP servers that the client gave. An empty set changes nothing, because clients
    /// without servers also send it.
    pub(crate) fn set_mcp_servers(&self, servers: BTreeMap<String, McpServer>) {
        if !servers.is_empty() {
            self.agent.set_mcp_servers(servers);
        }
    }

    /// Runs a command line of the session's hosted agent as a call of the running turn.
    pub(crate) async fn execute(&self, command: CommandRequest) -> Result<CommandResult> {
        self.agent.execute(command).await
    }

    /// Appends an event outside of a turn. Returns its seq once it is committed.
    pub(in crate::session) async fn append(&self, body: Body) -> Result<Seq> {
        self.own().await?;
        self.log.commit(None, body).await
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

    /// Recovers from a lost append: acquires ownership again, at once or when the store is
    /// writable. That also ends the turn and the tool calls that were left open, so that no client
    /// waits for their end in vain.
    pub(in crate::session) fn recover(&self) {
        let session = self.clone();
        self.tasks.spawn(async move {
            while session.log.failed().is_some() {
                // A running turn closes itself, which starts the next recovery.
                if session.turn().is_none()
                    && let Err(error) = session.own().await
                    && matches!(error.kind, Kind::SessionBusy | Kind::NotFound)
                {
                    // Another process took the session or deleted it.
                    return session.others.external.notify_one();
                }
                tokio::select! {
                    () = session.shutdown.cancelled() => return,
                    () = session.gone.cancelled() => return,
                    () = tokio::time::sleep(STORE_RECOVERY) => {}
                }
            }
        });
    }
}

impl OpenSession {
    /// Ensures that this process owns the session, as [`Session::own`] does, for the claimed turn
    /// `turn`, which has not started.
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
        let rebuild_core = || {
            let mut core = self.core();
            let rebuilt = self.log.state(|state| core.rebuild(&state.queue));
            rebuilt.then_some(()).ok_or_else(|| Error::internal("the message of the turn is not in the log"))
        };
        if self.ownership.acquire(may_take, rebuild_core).boxed().await? {
            self.others.taken_here();
        }
        Ok(())
    }

    /// Waits until this process does not own the session.
    pub(crate) async fn released(&self) {
        self.ownership.released().await;
    }

    /// Ends the turn and the tool calls that a dead owner left open, without owning the session.
    pub(in crate::session) async fn close_orphan(&self) -> Result<()> {
        if self.log.failed().is_some() {
            // This process lost an append: only an owner continues the log.
            self.own_for(None).await?;
            self.release_idle().await;
            return Ok(());
        }
        self.ownership.close_orphan(|| self.core().check_open()).await?;
        self.others.set_owner_connection(None);
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

/// Returns `None` for `session_busy`: the session stays with its owner.
pub(in crate::session) fn unless_busy<T>(owned: Result<T>) -> Result<Option<T>> {
    match owned {
        Err(error) if error.kind == Kind::SessionBusy => Ok(None),
        owned => owned.map(Some),
    }
}
