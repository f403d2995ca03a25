//! Polls for new events in sessions that other processes own and this process reads.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Kind, Result};
use crate::id::{Seq, SessionId};
use crate::session::open::Session;
use crate::session::open::owned_session::unless_busy;
use crate::session::sessions::Sessions;
use crate::store::{Wakeup, Wakeups};

/// Interval of the checks that the owner of a running turn is alive.
const ORPHANS_CHECKED: Duration = Duration::from_secs(1);

impl Sessions {
    /// Waits for an event after `cursor` in a session that is no longer open in this process.
    /// Returns an error if the session was deleted.
    pub(crate) async fn beyond(&self, id: &SessionId, cursor: Seq) -> Result<()> {
        let mut commits = self.log.commits().subscribe();
        self.external.notify_one();
        while self.row(id).await?.head <= cursor {
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
                let Some(store) = sessions.upgrade().map(|sessions| sessions.store.clone()) else { return };
                match store.wakeups().await {
                    Ok(wakeups) => poll(&sessions, wakeups, &shutdown).await,
                    Err(error) => tracing::warn!(error = %error, "reading a session of another process failed"),
                }
            }
        });
    }
}

/// Polls until no session of another process is open and no client follows all sessions.
async fn poll(sessions: &Weak<Sessions>, mut wakeups: Wakeups, shutdown: &CancellationToken) {
    let (mut repeat, mut failed, mut orphans_checked) = (false, false, None::<Instant>);
    loop {
        let wakeup = tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            wakeup = wakeups.next() => wakeup,
        };
        let Some(sessions) = sessions.upgrade() else { return };
        let wakeup = if repeat { Wakeup::Unknown } else { wakeup };
        let changed = wakeup != Wakeup::Unchanged;
        let followed = sessions.log.commits().receiver_count() > 0;
        if changed && followed {
            sessions.log.commits().send_modify(|count| *count += 1);
        }
        let find_orphans = orphans_checked.is_none_or(|checked| checked.elapsed() >= ORPHANS_CHECKED);
        orphans_checked = if find_orphans { Some(Instant::now()) } else { orphans_checked };
        let external = External::read(sessions.all_open(), &wakeup, find_orphans).await;
        repeat = external.incomplete;
        if let Some(error) = external.failure.as_ref().filter(|_| !failed) {
            tracing::warn!(%error, "reading sessions of other processes failed");
        }
        failed = external.failure.is_some();
        let open = external.open;
        for session in &external.answerable {
            sessions.start_registration(session).await;
        }
        external.close(&sessions).await;
        drop(sessions);
        if !followed && !open {
            return;
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
    /// True if sessions must be read again in the next round: reading failed, or this process is
    /// acquiring or releasing one of them.
    incomplete: bool,
    /// Why reading a session failed.
    failure: Option<Error>,
    /// Sessions with an open turn, whose owner may have died.
    orphans: Vec<Session>,
    deleted: Vec<Session>,
}

impl External {
    /// Reads the new events of those `sessions` that this process does not own.
    async fn read(sessions: Vec<Session>, wakeup: &Wakeup, find_orphans: bool) -> External {
        let mut external = External::default();
        for session in sessions {
            // The lock is held during `catch_up`, so that this process can take ownership, and thus
            // write, only afterwards.
            match session.ownership.try_lock() {
                Ok(lock) if lock.is_some() => continue,
                Ok(_unowned) => {
                    external.open = true;
                    if wakeup.may_concern(session.log.key)
                        && let Err(error) = session.log.catch_up(Seq::MAX).await
                    {
                        external.incomplete = true;
                        let unreachable = error.kind == Kind::StoreUnavailable;
                        external.failure = Some(error);
                        if unreachable {
                            break;
                        }
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
                Err(_) => (external.open, external.incomplete) = (true, true),
            }
        }
        external
    }

    /// Ends the turns of dead owners, and closes deleted sessions.
    async fn close(self, sessions: &Sessions) {
        for session in self.orphans {
            if let Err(error) = unless_busy(session.close_orphan().await) {
                tracing::warn!(session = %session.log.id, error = %error, "closing the open turn of another process failed");
            }
        }
        for session in self.deleted {
            sessions.remove_open(&session).await;
            // Another node cannot remove the files of this one.
            if sessions.store.has_nodes()
                && let Err(error) = sessions.remove_files(&session.log.id).await
            {
                tracing::warn!(session = %session.log.id, %error, "removing the files of a deleted session failed");
            }
        }
    }
}
