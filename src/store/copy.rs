//! Copies a store into another one.
//!
//! All rows keep their numbers, and with them their order and the cursors of clients. The sessions
//! are copied one after the other, each event after the one before it. The row of a session has the
//! head 0, which hides it from lists, until all of its events are there. An interrupted copy is
//! therefore a store with a part of the sessions, and the events that it has tell where the next
//! copy continues.

use std::collections::HashMap;

use ring::digest::{Context, SHA256};

use super::interface::Store;
use super::rows::{Cursor, EventRow, SessionRow, StoreTotals};
use crate::error::{Error, Kind, Result};
use crate::id::{Seq, SessionId};

/// Maximum number of events that are written in one transaction.
const EVENTS: usize = 1000;
/// Maximum number of other rows that are read at once.
const ROWS: usize = 200;
/// A limit that selects all rows of a table that is always small.
const ALL: usize = usize::MAX / 2;

/// The result of a copy. Both stores have the rows of `totals`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyReport {
    pub totals: StoreTotals,
    /// Number of rows that the copy has written, without those of events.
    pub written_rows: u64,
    /// Number of events that the copy has written.
    pub written_events: u64,
}

/// Copies all rows of `from` that `to` does not have yet, and verifies that both have the same
/// rows. No other process may use the stores. Fails without a change if `to` has rows that `from`
/// does not have. `progress` receives the number of copied events and the number of all events.
pub(crate) async fn copy(from: &Store, to: &Store, progress: impl FnMut(u64, u64) + Send) -> Result<CopyReport> {
    let (totals, last_event) = (from.totals().await?, from.last_event().await?);
    let mut copy = StoreCopy { from, to, totals, written_rows: 0, written_events: 0, progress };
    let held = copy.check_sessions().await?;
    copy.check_workspaces().await?;
    to.reserve_numbers(totals.last_key, last_event).await?;
    copy.copy_sessions(&held).await?;
    copy.copy_workspaces().await?;
    copy.copy_answers().await?;
    to.sync().await?;
    copy.verify(last_event).await?;
    Ok(CopyReport { totals, written_rows: copy.written_rows, written_events: copy.written_events })
}

/// The part of a session that the target of a copy has.
struct CopiedSession {
    last_event: Seq,
    /// True if the row is the one of the source.
    same_row: bool,
}

/// The events of a session up to a seq.
#[derive(Debug, PartialEq)]
struct EventSummary {
    count: u64,
    last: Seq,
    /// SHA-256 of the columns.
    digest: Vec<u8>,
}

/// A copy that runs.
struct StoreCopy<'a, P> {
    from: &'a Store,
    to: &'a Store,
    /// The rows of the source.
    totals: StoreTotals,
    written_rows: u64,
    written_events: u64,
    progress: P,
}

impl<P: FnMut(u64, u64) + Send> StoreCopy<'_, P> {
    /// Checks that the events of the target are the first ones of the sessions of the source.
    /// Returns the sessions of the target by their keys.
    async fn check_sessions(&self) -> Result<HashMap<i64, CopiedSession>> {
        let (mut held, mut after) = (HashMap::new(), 0);
        loop {
            let rows = self.to.session_rows(after, ROWS).await?;
            let Some(last) = rows.last() else { return Ok(held) };
            after = last.key;
            for row in rows {
                let Some(original) = self.from.session(&row.id).await?.filter(|original| original.key == row.key) else {
                    return Err(self.foreign(format!("session {}", row.id)));
                };
                let events = summarize(self.to, row.key, Seq::MAX).await?;
                if summarize(self.from, row.key, events.last).await? != events {
                    return Err(self.foreign(format!("the events of session {}", row.id)));
                }
                held.insert(
                    row.key,
                    CopiedSession { last_event: events.last, same_row: row == SessionRow { owner: None, ..original } },
                );
            }
        }
    }

    /// Checks that the source has the workspaces of the target.
    async fn check_workspaces(&self) -> Result<()> {
        for row in self.to.workspaces(ALL).await? {
            let original = self.from.workspace(&row.id).await?;
            if original.is_none_or(|original| original.path != row.path) {
                return Err(self.foreign(format!("workspace {}", row.id)));
            }
        }
        Ok(())
    }

    async fn copy_sessions(&mut self, held: &HashMap<i64, CopiedSession>) -> Result<()> {
        let mut after = 0;
        loop {
            let rows = self.from.session_rows(after, ROWS).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.key;
            for row in &rows {
                self.copy_session(row, held.get(&row.key)).await?;
            }
        }
    }

    /// Copies what the target does not have of a session, and compares the copy with the source.
    async fn copy_session(&mut self, row: &SessionRow, held: Option<&CopiedSession>) -> Result<()> {
        let mut after = held.map_or(0, |held| held.last_event);
        if held.is_none() {
            // A hidden row with an old time would be removed ([`Store::forget_deleted`]).
            self.to.put_session(&SessionRow { head: 0, updated_ms: i64::MAX as u64, ..row.clone() }).await?;
        }
        let written_before = self.written_events;
        loop {
            let page = self.from.event_rows(row.key, after, EVENTS).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            self.written_events += page.len() as u64;
            self.to.put_events(row.key, page).await?;
            (self.progress)(self.written_events, self.totals.events);
        }
        if held.is_none_or(|held| !held.same_row) {
            self.to.put_session(row).await?;
            self.written_rows += 1;
        }
        if self.written_events > written_before {
            let (original, copied) =
                tokio::try_join!(summarize(self.from, row.key, Seq::MAX), summarize(self.to, row.key, Seq::MAX))?;
            if original != copied {
                return Err(self.differs("session", row.id.as_str()));
            }
        }
        Ok(())
    }

    async fn copy_workspaces(&mut self) -> Result<()> {
        for row in self.from.workspaces(ALL).await? {
            if self.to.workspace(&row.id).await?.as_ref() == Some(&row) {
                continue;
            }
            self.to.remove_workspace(&row.id).await?;
            self.to.insert_workspace(&row).await?;
            self.to.change_workspace_metadata(&row.id, &row.metadata, ALL).await?;
            self.written_rows += 1;
            if self.to.workspace(&row.id).await?.as_ref() != Some(&row) {
                return Err(self.differs("workspace", &row.id));
            }
        }
        Ok(())
    }

    async fn copy_answers(&mut self) -> Result<()> {
        let mut after = (String::new(), String::new());
        loop {
            let rows = self.from.answer_rows((&after.0, &after.1), ROWS).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            if self.to.answer_rows((&after.0, &after.1), ROWS).await? != rows {
                self.to.put_answers(&rows).await?;
                self.written_rows += rows.len() as u64;
                if self.to.answer_rows((&after.0, &after.1), ROWS).await? != rows {
                    return Err(self.differs("responses after the key", &after.1));
                }
            }
            after = (last.principal.clone(), last.key.clone());
        }
    }

    /// Checks that the source has not changed, and compares the rows of all sessions and the
    /// numbers of rows. All other rows were compared before.
    async fn verify(&self, last_event: Cursor) -> Result<()> {
        if (self.from.totals().await?, self.from.last_event().await?) != (self.totals, last_event) {
            return Err(Error::internal(format!("{} has changed during the copy", self.from.place()))
                .hint("end the processes that use it, then repeat the command"));
        }
        let mut after = 0;
        loop {
            let (originals, copies) = tokio::try_join!(self.from.session_rows(after, ROWS), self.to.session_rows(after, ROWS))?;
            if let Some(different) = first_difference(&originals, &copies) {
                return Err(self.differs("session", different.as_str()));
            }
            let Some(last) = originals.last() else { break };
            after = last.key;
        }
        let copied = self.to.totals().await?;
        if copied != self.totals {
            let (from, to) = (self.from.place(), self.to.place());
            return Err(Error::internal(format!("{from} and {to} differ after the copy: {:?}, {copied:?}", self.totals)));
        }
        Ok(())
    }

    /// Creates the error for a target that has something that the source does not have.
    fn foreign(&self, what: String) -> Error {
        let (from, to) = (self.from.place(), self.to.place());
        Error::new(Kind::InvalidRequest, format!("{to} has {what}, which {from} does not have"))
            .hint("nothing was changed; copy into an empty store, or into one with a part of the same copy")
    }

    /// Creates the error for a row that is not the same after the copy.
    fn differs(&self, what: &str, id: &str) -> Error {
        let (from, to) = (self.from.place(), self.to.place());
        Error::internal(format!("the {what} {id} is not the same in {from} and {to} after the copy"))
            .hint("end the processes that use the stores, empty the second one and repeat the command")
    }
}

/// Returns the first session whose row is not in both lists at the same place.
fn first_difference(originals: &[SessionRow], copies: &[SessionRow]) -> Option<SessionId> {
    let length = originals.len().max(copies.len());
    let different = (0..length).find(|index| originals.get(*index) != copies.get(*index))?;
    originals.get(different).or(copies.get(different)).map(|row| row.id.clone())
}

/// Reads the events of a session up to seq `until`, page by page.
async fn summarize(store: &Store, key: i64, until: Seq) -> Result<EventSummary> {
    let mut digest = Context::new(&SHA256);
    let (mut count, mut last) = (0, 0);
    while last < until {
        let mut page = store.event_rows(key, last, EVENTS).await?;
        page.retain(|event| event.seq <= until);
        let Some(end) = page.last() else { break };
        last = end.seq;
        count += page.len() as u64;
        page.iter().for_each(|event| add(&mut digest, event));
    }
    Ok(EventSummary { count, last, digest: digest.finish().as_ref().to_vec() })
}

/// Adds an event to a digest. Its kind and message repeat parts of the body.
fn add(digest: &mut Context, event: &EventRow) {
    for number in [event.id, event.seq as i64, event.at_ms, i64::from(event.delta)] {
        digest.update(&number.to_le_bytes());
    }
    for id in [&event.turn, &event.call] {
        // PostgreSQL's text cannot contain NUL. The bodies are JSON, which escapes it.
        let id = id.as_ref().map(|id| id.replace('\0', "\u{fffd}"));
        digest.update(&id.as_ref().map_or(u64::MAX, |id| id.len() as u64).to_le_bytes());
        digest.update(id.unwrap_or_default().as_bytes());
    }
    digest.update(&(event.body.len() as u64).to_le_bytes());
    digest.update(event.body.as_bytes());
}
