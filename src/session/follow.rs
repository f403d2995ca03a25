//! Following a session's log: a cursor, and a watch that tells when there is more.

use std::sync::Arc;

use tokio::sync::watch;

use super::log::SessionLog;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::Seq;
use crate::limits;

impl SessionLog {
    /// Events after `after`, history first, then live.
    pub fn follow(self: &Arc<Self>, after: Seq) -> Follow {
        Follow { log: self.clone(), cursor: after, head: self.head.subscribe() }
    }
}

/// A cursor in a session's log. Dropping it costs nothing; a slow one is merely late.
pub struct Follow {
    log: Arc<SessionLog>,
    cursor: Seq,
    head: watch::Receiver<Seq>,
}

impl Follow {
    pub fn log(&self) -> &Arc<SessionLog> {
        &self.log
    }

    pub fn cursor(&self) -> Seq {
        self.cursor
    }

    /// Goes on after `cursor`.
    pub fn seek(&mut self, cursor: Seq) {
        self.cursor = cursor;
    }

    /// The next events, without waiting: none when the cursor is at the head.
    pub fn ready(&mut self) -> Result<Vec<Arc<Event>>> {
        let head = self.log.head();
        let events = self.log.page(self.cursor, limits::PAGE_EVENTS, true)?;
        self.read_to(&events, head);
        Ok(events)
    }

    /// The same; what has to come from the disk is read on a thread that may wait for it.
    pub async fn read(&mut self) -> Result<Vec<Arc<Event>>> {
        let head = self.log.head();
        let events = match self.log.tail_after(self.cursor, limits::PAGE_EVENTS) {
            Some(events) => events,
            None => {
                let (log, after) = (self.log.clone(), self.cursor);
                let page = tokio::task::spawn_blocking(move || log.page(after, limits::PAGE_EVENTS, true)).await;
                page.map_err(|_| Error::internal("reading events panicked"))??
            }
        };
        self.read_to(&events, head);
        Ok(events)
    }

    /// What was there up to `head` and is not any more, as in a session that was deleted, is not waited for.
    fn read_to(&mut self, events: &[Arc<Event>], head: Seq) {
        self.cursor = events.last().map_or(self.cursor.max(head), |last| last.seq);
    }

    /// Waits until there is something after the cursor.
    pub async fn moved(&mut self) {
        let cursor = self.cursor;
        // The sender lives in the log that we hold.
        let _ = self.head.wait_for(|head| *head > cursor).await;
    }

    /// The next events; waits for them.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event>>> {
        loop {
            let events = self.ready()?;
            if !events.is_empty() {
                return Ok(events);
            }
            self.moved().await;
        }
    }
}
