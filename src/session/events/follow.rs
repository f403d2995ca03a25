//! Follows a session's log with a cursor and a watch channel that reports new events.

use std::sync::Arc;

use tokio::sync::watch;

use super::log::SessionLog;
use crate::error::Result;
use crate::event::Event;
use crate::id::Seq;
use crate::limits;

impl SessionLog {
    /// Follows the events after `after`: history first, then live events.
    pub fn follow(self: &Arc<Self>, after: Seq) -> Follow {
        Follow { log: self.clone(), cursor: after, head: self.head.subscribe() }
    }
}

/// A cursor in a session's log. A slow follower falls behind and does not hold up the writer.
pub struct Follow {
    log: Arc<SessionLog>,
    cursor: Seq,
    head: watch::Receiver<Seq>,
}

impl Follow {
    /// Returns the seq of the last event that was read.
    pub(crate) fn cursor(&self) -> Seq {
        self.cursor
    }

    /// Moves the cursor, so that reading continues after `cursor`.
    pub(crate) fn seek(&mut self, cursor: Seq) {
        self.cursor = cursor;
    }

    /// Returns the next events without waiting for new ones; empty if the cursor is at the head.
    pub(crate) async fn read(&mut self) -> Result<Vec<Arc<Event>>> {
        let head = self.log.head();
        let events = self.log.page(self.cursor, limits::PAGE_EVENTS, true).await?;
        self.read_to(&events, head);
        Ok(events)
    }

    /// Advances the cursor past `events`, or to `head` if the events up to it were removed, as in a
    /// deleted session.
    fn read_to(&mut self, events: &[Arc<Event>], head: Seq) {
        self.cursor = events.last().map_or(self.cursor.max(head), |last| last.seq);
    }

    /// Waits until there is an event after the cursor.
    pub(crate) async fn moved(&mut self) {
        let cursor = self.cursor;
        // Cannot fail: `self.log` holds the sender.
        let _ = self.head.wait_for(|head| *head > cursor).await;
    }

    /// Waits for the next events and returns them.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event>>> {
        loop {
            let events = self.read().await?;
            if !events.is_empty() {
                return Ok(events);
            }
            self.moved().await;
        }
    }
}
