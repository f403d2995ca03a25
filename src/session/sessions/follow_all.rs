//! The events of all sessions as one stream, in commit order, with its own cursor.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::Result;
use crate::limits;
use crate::session::sessions::Sessions;
use crate::store::{Cursor, Store, StoredEvent};

/// Minimum pause between two event reads for a client that follows all sessions.
const FOLLOW_ALL_PAUSE: Duration = Duration::from_millis(10);

/// A cursor in the events of all sessions, including those that other processes own.
pub(crate) struct FollowAll {
    store: Store,
    cursor: Cursor,
    commits: watch::Receiver<u64>,
    read: Instant,
}

impl Sessions {
    /// Follows the events after the cursor `after`: history first, then live events.
    pub(crate) fn follow_all(&self, after: Cursor) -> FollowAll {
        let commits = self.log.commits().subscribe();
        self.external.notify_one();
        FollowAll { store: self.store.clone(), cursor: after, commits, read: Instant::now() }
    }

    /// Counts the commits of all processes, while a client follows all sessions.
    pub(crate) fn commits(&self) -> watch::Receiver<u64> {
        self.log.commits().subscribe()
    }

    /// Returns the cursor of the last event in the store.
    pub(crate) async fn head_of_all(&self) -> Result<Cursor> {
        self.store.last_event().await
    }
}

impl FollowAll {
    /// Returns the cursor of the last event that was read.
    pub(crate) fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Returns the next events without waiting for new ones; empty if the cursor is at the end.
    pub(crate) async fn read(&mut self) -> Result<Vec<StoredEvent>> {
        self.commits.mark_unchanged();
        self.read = Instant::now();
        let events = self.store.events_of_all(self.cursor, limits::PAGE_EVENTS).await?;
        self.cursor = events.last().map_or(self.cursor, |last| last.cursor);
        Ok(events)
    }

    /// Waits until an event was committed after the last [`FollowAll::read`], and at least
    /// [`FOLLOW_ALL_PAUSE`] has passed since that read. The pause lets one read cover many
    /// commits.
    pub(crate) async fn moved(&mut self) {
        // The channel closes only when the log is dropped. No commit can follow, so wait forever.
        if self.commits.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep_until(self.read + FOLLOW_ALL_PAUSE).await;
    }
}
