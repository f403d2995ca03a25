//! Ends turns when leases end: those of this process, and those of other nodes.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use crate::error::{Error, Kind, Result};
use crate::session::clock::now_ms;
use crate::session::sessions::Sessions;

/// Maximum number of sessions of other nodes whose open turns one search ends.
const ABANDONED_MAX: usize = 1000;
/// Number of these sessions that are read at the same time.
const ABANDONED_AT_ONCE: usize = 8;

impl Sessions {
    /// Starts to renew the lease of this process, and to end the turns of nodes whose leases have
    /// ended. Both end at shutdown. Does nothing in a store without nodes.
    pub(in crate::session) fn watch_nodes(self: &Arc<Self>) {
        let Some(lease) = self.claims.lease().cloned() else { return };
        let sessions = Arc::downgrade(self);
        lease.on_end(move || drop(sessions.upgrade().inspect(|sessions| sessions.lease_ended())));
        self.tasks.spawn(lease.clone().run(self.shutdown.clone()));
        let (sessions, shutdown) = (Arc::downgrade(self), self.shutdown.clone());
        self.tasks.spawn(async move {
            while shutdown.run_until_cancelled(lease.renewed.notified()).await.is_some() {
                let Some(sessions) = sessions.upgrade() else { return };
                let closed = async {
                    lease.end_dead().await?;
                    sessions.close_abandoned().await
                };
                if let Err(error) = closed.await {
                    tracing::warn!(%error, "ending the turns of other nodes failed");
                }
            }
        });
    }

    /// Returns whether the lease of this process has ended, and it has not joined again.
    pub(crate) fn lease_has_ended(&self) -> bool {
        self.claims.lease().is_some_and(|lease| lease.has_ended())
    }

    /// Ends the turns of this process, because its lease has ended: another node may take its
    /// sessions.
    fn lease_ended(&self) {
        let error = Error::new(Kind::StoreUnavailable, "the lease of this process has ended: it could not be renewed in time");
        for session in self.all_owned() {
            session.log.fail(&error);
            session.recover();
        }
    }

    /// Ends the open turns of nodes whose leases have ended.
    async fn close_abandoned(&self) -> Result<()> {
        let mut abandoned = self.store.abandoned_sessions(ABANDONED_MAX).await?;
        // The owner of a turn is checked while its session is open.
        abandoned.retain(|id| self.opened(id).is_none());
        let close = async |id| match self.open_read_only(&id).await.map(|session| session.owned().ok()) {
            Ok(Some(_owned)) => {}
            Ok(None) => self.close_unused(&id, now_ms() + 1).await,
            Err(error) => tracing::warn!(session = %id, %error, "ending the turn of another node failed"),
        };
        stream::iter(abandoned).for_each_concurrent(ABANDONED_AT_ONCE, close).await;
        Ok(())
    }
}
