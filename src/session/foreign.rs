//! Sessions of other processes that are looked at here, and what those write.

use std::sync::{Arc, Weak};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::sessions::{Sessions, unless_busy};
use crate::error::Result;
use crate::id::{Seq, SessionId};
use crate::limits;
use crate::store::Watch;

impl Sessions {
    /// Waits until something comes after `cursor` in a session that is not open here any more. An error: it is gone.
    pub async fn beyond(&self, id: &SessionId, cursor: Seq) -> Result<()> {
        let mut commits = self.log.commits().subscribe();
        self.foreign.notify_one();
        while self.row(id)?.head <= cursor {
            // The sender lives in what we hold.
            let _ = commits.changed().await;
        }
        Ok(())
    }
}

/// While a session of another process is open here, or all are followed, looks for what that one wrote.
pub(super) async fn watch_others(sessions: Weak<Sessions>, opened: Arc<Notify>, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = opened.notified() => {}
        }
        let Some(watch) = sessions.upgrade().map(|sessions| sessions.store.watch()) else { return };
        match watch {
            Ok(watch) => follow_others(&sessions, watch, &shutdown).await,
            Err(error) => tracing::warn!(error = %error, "following another process's session"),
        }
    }
}

/// Returns when no session of another process is open any more, and nobody follows all of them.
async fn follow_others(sessions: &Weak<Sessions>, watch: Watch, shutdown: &CancellationToken) {
    let mut seen = None;
    for round in 0_u64.. {
        if shutdown.is_cancelled() {
            return;
        }
        let Some(open) = sessions.upgrade().map(|sessions| sessions.all_open()) else { return };
        let version = Some(watch.version());
        let news = version != seen;
        seen = version;
        let (mut orphans, mut deleted) = (Vec::new(), Vec::new());
        let mut foreign = false;
        if let Some(sessions) = sessions.upgrade() {
            let commits = sessions.log.commits();
            foreign = commits.receiver_count() > 0;
            if news && foreign {
                commits.send_modify(|count| *count += 1);
            }
        }
        for session in open {
            // Held while it catches up: whoever takes the session meanwhile, and then writes to its log, waits.
            match session.owner.try_lock() {
                Ok(owner) if owner.is_some() => continue,
                Ok(_nobody) => {
                    if news && let Err(error) = session.log.catch_up() {
                        tracing::warn!(session = %session.log.id, error = %error, "following another process's session");
                    }
                    if round % limits::FOREIGN_ORPHANS == 0 && session.log.state(|state| state.turn.is_some()) {
                        orphans.push(session.clone());
                    }
                    if session.log.state(|state| state.deleted) {
                        deleted.push(session.clone());
                    }
                }
                // Somebody just tries to take it: it is looked at again.
                Err(_) => seen = None,
            }
            foreign = true;
        }
        for session in orphans {
            // Where its owner is gone, what that one left open is closed.
            if let Err(error) = unless_busy(session.close_orphan().await) {
                tracing::warn!(session = %session.log.id, error = %error, "closing what another process left");
            }
        }
        if let Some(sessions) = sessions.upgrade() {
            for session in deleted {
                sessions.let_go(&session).await;
            }
        }
        if !foreign {
            return;
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(limits::FOREIGN_POLL) => {}
        }
    }
}
