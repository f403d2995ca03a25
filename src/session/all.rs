//! All sessions' events as one stream, with a cursor of its own: the order in which they were committed.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::sessions::Sessions;
use crate::error::{Error, Result};
use crate::limits;
use crate::store::{Placed, Store};

/// A cursor in the events of all sessions, of this process and of others.
pub struct FollowAll {
    store: Arc<Store>,
    cursor: u64,
    commits: watch::Receiver<u64>,
    read: Instant,
}

impl Sessions {
    /// Events after the cursor `after`, history first, then live.
    pub fn follow_all(&self, after: u64) -> FollowAll {
        let commits = self.log.commits().subscribe();
        self.foreign.notify_one();
        FollowAll { store: self.store.clone(), cursor: after, commits, read: Instant::now() }
    }

    /// Cursor of the last event of all.
    pub fn head_of_all(&self) -> Result<u64> {
        self.store.last_event()
    }
}

impl FollowAll {
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The next events, without waiting for them: none when the cursor is at the end.
    pub async fn read(&mut self) -> Result<Vec<Placed>> {
        self.commits.mark_unchanged();
        self.read = Instant::now();
        let (store, after) = (self.store.clone(), self.cursor);
        let page = tokio::task::spawn_blocking(move || store.events_of_all(after, limits::PAGE_EVENTS)).await;
        let events = page.map_err(|_| Error::internal("reading events panicked"))??;
        self.cursor = events.last().map_or(self.cursor, |last| last.cursor);
        Ok(events)
    }

    /// Waits until there may be something new since the last [`FollowAll::read`], and a little: many commits are read at once.
    pub async fn moved(&mut self) {
        // The sender lives as long as the log does.
        if self.commits.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep_until(self.read + limits::FOLLOW_ALL_PAUSE).await;
    }
}
