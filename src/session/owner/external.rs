//! Polls for new events in sessions that other processes own and this process reads.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::Result;
use crate::id::{Seq, SessionId};
use crate::session::open::Session;
use crate::session::sessions::{Sessions, ignore_busy};
use crate::store::ChangeWatch;

/// Interval at which a followed session is polled for events that another process wrote.
const EXTERNAL_POLL: Duration = Duration::from_millis(50);
/// Number of polls ([`EXTERNAL_POLL`]) between two checks that the owner of a running turn is
/// alive.
const EXTERNAL_ORPHANS: u64 = 20;

impl Sessions {
    /// Waits for an event after `cursor` in a session that is no longer open in this process.
    /// Returns an error if the session was deleted.
    pub(crate) async fn beyond(&self, id: &SessionId, cursor: Seq) -> Result<()> {
        let mut commits = self.log.commits().subscribe();
        self.external.notify_one();
        while self.row(id)?.head <= cursor {
            // Cannot fail: `self.log` holds the sender.
            let _ = commits.changed().await;
        }
        Ok(())
    }

    /// Starts a task that polls for events written by other processes. It polls while one of their
    /// sessions is open in this process, or while a client follows all sessions. It ends at
    /// shutdown.
    pub(in crate::session) fn watch_external_writers(self: &Arc<Self>) {
        let (sessions, opened, shutdown) = (Arc::downgrade(self), self.external.clone(), self.shutdown.clone());
        self.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = opened.notified() => {}
                }
                let Some(watch) = sessions.upgrade().map(|sessions| sessions.store.watch()) else { return };
                match watch {
                    Ok(watch) => poll(&sessions, watch, &shutdown).await,
                    Err(error) => tracing::warn!(error = %error, "reading a session of another process failed"),
                }
            }
        });
    }
}

/// Polls until no session of another process is open and no client follows all sessions.
async fn poll(sessions: &Weak<Sessions>, watch: ChangeWatch, shutdown: &CancellationToken) {
    let mut seen = None;
    for round in 0_u64.. {
        if shutdown.is_cancelled() {
            return;
        }
        let Some(sessions) = sessions.upgrade() else { return };
        let version = Some(watch.version());
        let changed = version != seen;
        let followed = sessions.log.commits().receiver_count() > 0;
        if changed && followed {
            sessions.log.commits().send_modify(|count| *count += 1);
        }
        let external = External::read(sessions.all_open(), changed, round % EXTERNAL_ORPHANS == 0);
        // While a session is being acquired, read it again in the next round.
        seen = if external.acquiring { None } else { version };
        let open = external.open;
        for session in &external.answerable {
            sessions.start_registration(session);
        }
        external.close(&sessions).await;
        drop(sessions);
        if !followed && !open {
            return;
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(EXTERNAL_POLL) => {}
        }
    }
}

/// The open sessions of other processes that one poll found.
#[derive(Default)]
struct External {
    /// True if there is at least one such session.
    open: bool,
    /// Sessions with a client in this process that can answer permission requests.
    answerable: Vec<Session>,
    /// True if this process is acquiring or releasing one of the sessions.
    acquiring: bool,
    /// Sessions with an open turn, whose owner may have died.
    orphans: Vec<Session>,
    deleted: Vec<Session>,
}

impl External {
    /// Reads the new events of those `sessions` that this process does not own.
    fn read(sessions: Vec<Session>, changed: bool, find_orphans: bool) -> External {
        let mut external = External::default();
        for session in sessions {
            // The lock is held during `catch_up`, so that this process can take ownership, and thus
            // write, only afterwards.
            match session.ownership.try_lock() {
                Ok(lock) if lock.is_some() => continue,
                Ok(_unowned) => {
                    if changed && let Err(error) = session.log.catch_up(Seq::MAX) {
                        tracing::warn!(session = %session.log.id, error = %error, "reading a session of another process failed");
                    }
                    if find_orphans && session.log.state(|state| state.turn.is_some()) {
                        external.orphans.push(session.clone());
                    }
                    if session.log.state(|state| state.deleted) {
                        external.deleted.push(session.clone());
                    } else if session.broker.has_responders() {
                        external.answerable.push(session.clone());
                    }
                }
                Err(_) => external.acquiring = true,
            }
            external.open = true;
        }
        external
    }

    /// Ends the turns of dead owners, and closes deleted sessions.
    async fn close(self, sessions: &Sessions) {
        for session in self.orphans {
            if let Err(error) = ignore_busy(session.close_orphan().await) {
                tracing::warn!(session = %session.log.id, error = %error, "closing the open turn of another process failed");
            }
        }
        for session in self.deleted {
            sessions.remove_open(&session).await;
        }
    }
}
