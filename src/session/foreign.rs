//! Sessions that other processes own and this process reads: polling for their new events.

use std::sync::{Arc, Weak};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::sessions::{Sessions, ignore_busy};
use crate::error::Result;
use crate::id::{Seq, SessionId};
use crate::limits;
use crate::store::Watch;

impl Sessions {
    /// Waits for an event after `cursor` in a session that is no longer open in this process.
    /// Returns an error if the session was deleted.
    pub async fn beyond(&self, id: &SessionId, cursor: Seq) -> Result<()> {
        let mut commits = self.log.commits().subscribe();
        self.foreign.notify_one();
        while self.row(id)?.head <= cursor {
            // Cannot fail: `self.log` holds the sender.
            let _ = commits.changed().await;
        }
        Ok(())
    }
}

/// Polls for events of other processes while one of their sessions is open here or a client follows
/// all sessions.
pub(super) async fn watch_external_writers(sessions: Weak<Sessions>, opened: Arc<Notify>, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = opened.notified() => {}
        }
        let Some(watch) = sessions.upgrade().map(|sessions| sessions.store.watch()) else { return };
        match watch {
            Ok(watch) => poll_external_writers(&sessions, watch, &shutdown).await,
            Err(error) => tracing::warn!(error = %error, "reading a session of another process failed"),
        }
    }
}

/// Polls until no session of another process is open and no client follows all sessions.
async fn poll_external_writers(sessions: &Weak<Sessions>, watch: Watch, shutdown: &CancellationToken) {
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
            // Held during `catch_up`, so that taking ownership, and with it writing, waits.
            match session.owner.try_lock() {
                Ok(owner) if owner.is_some() => continue,
                Ok(_unowned) => {
                    if news && let Err(error) = session.log.catch_up() {
                        tracing::warn!(session = %session.log.id, error = %error, "reading a session of another process failed");
                    }
                    if round % limits::FOREIGN_ORPHANS == 0 && session.log.state(|state| state.turn.is_some()) {
                        orphans.push(session.clone());
                    }
                    if session.log.state(|state| state.deleted) {
                        deleted.push(session.clone());
                    }
                }
                // Ownership is being taken: read the session in the next round.
                Err(_) => seen = None,
            }
            foreign = true;
        }
        for session in orphans {
            // If the owner has ended, close the turn and the calls it left open.
            if let Err(error) = ignore_busy(session.close_orphan().await) {
                tracing::warn!(session = %session.log.id, error = %error, "closing the open turn of another process failed");
            }
        }
        if let Some(sessions) = sessions.upgrade() {
            for session in deleted {
                sessions.remove_open(&session).await;
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
