//! Event rows. The [`Writer`] appends them; every connection can read them.

use rusqlite::{Connection, OptionalExtension, Row, Rows, params};

use super::database::{SqliteStore, Writer, failure};
use super::migrations::EVENT_TYPE;
use crate::error::Result;
use crate::event::{Body, Event, MESSAGE_COMPLETED};
use crate::id::{MessageId, Seq, SessionId};
use crate::store::rows::{ActivityColumns, Append, CommitOutcome, Cursor, StoredEvent, indexed_message};

/// Maximum size of a page of events, in bytes. A page ends with the event that exceeds the limit.
const PAGE_BYTES_MAX: usize = 4 << 20;

impl SqliteStore {
    /// Commits all appends in one transaction; if `durable` is true, the transaction is synced to
    /// disk before this function returns.
    pub(in crate::store) fn commit(&self, appends: &[Append], durable: bool) -> Result<Vec<CommitOutcome>> {
        let mut writer = self.writer.lock();
        let writer = match &mut *writer {
            Some(writer) => writer,
            none => none.insert(Writer { db: self.connect()?, full: false }),
        };
        writer.commit(appends, durable)
    }

    /// Returns a page of events with a seq above `after`, in order. The page has at most `limit`
    /// events, and ends with the event that brings its size above [`PAGE_BYTES_MAX`].
    pub(in crate::store) fn events(
        &self,
        session: &SessionId,
        key: i64,
        after: Seq,
        limit: usize,
        deltas: bool,
    ) -> Result<Vec<Event>> {
        self.run("reading events from", |db| {
            let sql = if deltas {
                "SELECT seq, turn, at_ms, body FROM events WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
            } else {
                "SELECT seq, turn, at_ms, body FROM events INDEXED BY facts \
                 WHERE session = ?1 AND seq > ?2 AND delta = 0 ORDER BY seq LIMIT ?3"
            };
            let mut select = db.prepare_cached(sql)?;
            page(select.query(params![key, after as i64, limit as i64])?, |row| event(session, row))
        })
    }

    /// Returns a page of the `message.completed` events of a session that match all patterns.
    pub(in crate::store) fn messages_like(
        &self,
        session: &SessionId,
        key: i64,
        patterns: &[String],
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>> {
        self.run("searching messages in", |db| {
            let mut select = db.prepare_cached(&format!(
                "SELECT seq, turn, at_ms, body FROM events INDEXED BY facts \
                 WHERE session = ?1 AND seq > ?2 AND delta = 0 AND {EVENT_TYPE} = '{MESSAGE_COMPLETED}' \
                 AND NOT EXISTS (SELECT 1 FROM json_each(?4) WHERE body NOT LIKE value) ORDER BY seq LIMIT ?3"
            ))?;
            let patterns = serde_json::Value::from(patterns.to_vec()).to_string();
            page(select.query(params![key, after as i64, limit as i64, patterns])?, |row| event(session, row))
        })
    }

    /// Returns a page of the events of all sessions after the cursor `after`, in commit order. The
    /// limits of [`SqliteStore::events`] apply.
    pub(in crate::store) fn events_of_all(&self, after: Cursor, limit: usize) -> Result<Vec<StoredEvent>> {
        self.run("reading events from", |db| {
            let mut select = db.prepare_cached(
                "SELECT e.seq, e.turn, e.at_ms, e.body, e.id, s.id, s.cwd FROM events e JOIN sessions s ON s.key = e.session \
                 WHERE e.id > ?1 ORDER BY e.id LIMIT ?2",
            )?;
            page(select.query(params![after.number() as i64, limit as i64])?, |row| {
                let (session, cwd): (String, String) = (row.get(5)?, row.get(6)?);
                let event = event(&session.into(), row)?;
                Ok(StoredEvent { cursor: Cursor::from_number(row.get::<_, i64>(4)? as u64), cwd: cwd.into(), event })
            })
        })
    }

    /// Returns the cursor of the last event ever written.
    pub(in crate::store) fn last_event(&self) -> Result<Cursor> {
        self.run("reading the last event of", |db| {
            let mut select = db.prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'events'")?;
            let last: Option<i64> = select.query_row([], |row| row.get(0)).optional()?;
            Ok(Cursor::from_number(last.unwrap_or(0) as u64))
        })
    }

    /// Returns the seq of the event after `after` that a call of another process appended.
    pub(in crate::store) fn event_of_call(&self, key: i64, after: Seq, call: &MessageId) -> Result<Option<Seq>> {
        self.run("reading events from", |db| {
            let mut select = db.prepare_cached("SELECT seq FROM events WHERE session = ?1 AND seq > ?2 AND call = ?3")?;
            let seq: Option<i64> = select.query_row(params![key, after as i64, call.as_str()], |row| row.get(0)).optional()?;
            Ok(seq.map(|seq| seq as Seq))
        })
    }

    /// Deletes a session's deltas ([`Body::is_delta`]) before seq `before`, and returns their
    /// number. The events that repeat their content, such as `message.completed`, are kept.
    pub(in crate::store) fn prune_deltas(&self, key: i64, before: Seq) -> Result<usize> {
        self.run("pruning", |db| {
            let mut delete = db.prepare_cached("DELETE FROM events WHERE session = ?1 AND seq < ?2 AND delta = 1")?;
            delete.execute(params![key, before as i64])
        })
    }
}

/// Reads rows, with the body of an event in column 3, until the page is full.
pub(super) fn page<T>(mut rows: Rows<'_>, read: impl Fn(&Row<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<Vec<T>> {
    let (mut events, mut bytes) = (Vec::new(), 0);
    while bytes <= PAGE_BYTES_MAX
        && let Some(row) = rows.next()?
    {
        events.push(read(row)?);
        bytes += row.get_ref(3)?.as_bytes()?.len();
    }
    Ok(events)
}

fn event(session: &SessionId, row: &Row<'_>) -> rusqlite::Result<Event> {
    let body: &str = row.get_ref(3)?.as_str()?;
    let (body, signature) = Body::parse_stored(body)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error)))?;
    Ok(Event {
        session_id: session.clone(),
        seq: row.get::<_, i64>(0)? as Seq,
        turn_id: row.get_ref(1)?.as_str_or_null()?.map(Into::into),
        at_ms: row.get::<_, i64>(2)? as u64,
        body,
        signature,
    })
}

impl Writer {
    fn commit(&mut self, appends: &[Append], durable: bool) -> Result<Vec<CommitOutcome>> {
        self.write(appends, durable).map_err(|error| {
            // Roll back, so that the next commit starts a new transaction.
            if !self.db.is_autocommit() {
                let _ = self.db.execute_batch("ROLLBACK");
            }
            failure("writing events", error)
        })
    }

    fn write(&mut self, appends: &[Append], durable: bool) -> rusqlite::Result<Vec<CommitOutcome>> {
        if self.full != durable {
            self.db.execute_batch(if durable { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" })?;
            self.full = durable;
        }
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let outcomes = appends.iter().map(|append| append_to(&self.db, append)).collect::<rusqlite::Result<_>>()?;
        self.db.prepare_cached("COMMIT")?.execute([])?;
        Ok(outcomes)
    }
}

/// A statement that raises the head of a session, if the generation ?2 still owns it and its head
/// is ?3.
macro_rules! fence {
    ($set:literal) => {
        concat!("UPDATE sessions SET head = ?4", $set, " WHERE key = ?1 AND generation = ?2 AND head = ?3")
    };
}

/// Appends the events if the append's generation still owns the session, and the stored events end
/// directly before them.
fn append_to(db: &Connection, append: &Append) -> rusqlite::Result<CommitOutcome> {
    let (Some(first), Some(last)) = (append.events.first(), append.events.last()) else { return Ok(CommitOutcome::Written) };
    let (before, head, at_ms) = (first.seq as i64 - 1, last.seq as i64, append.listed_ms.map(|at_ms| at_ms as i64));
    // A column that is set is written to its index, too, even if its value is the same.
    let updated = match (&append.activity, at_ms) {
        (None, None) => db.prepare_cached(fence!(""))?.execute(params![append.key, append.generation, before, head])?,
        (None, Some(at_ms)) => {
            db.prepare_cached(fence!(", updated_ms = ?5"))?.execute(params![append.key, append.generation, before, head, at_ms])?
        }
        (Some(ActivityColumns { turn, waiting, summary }), at_ms) => {
            let fence = fence!(", updated_ms = coalesce(?5, updated_ms), turn = ?6, waiting = ?7, summary = ?8");
            let (turn, waiting) = (turn.as_ref().map(|turn| turn.as_str()), *waiting as i64);
            let values = params![append.key, append.generation, before, head, at_ms, turn, waiting, summary];
            db.prepare_cached(fence)?.execute(values)?
        }
    };
    if updated == 0 {
        let stored = "SELECT head FROM sessions WHERE key = ?1 AND generation = ?2";
        let head = db.prepare_cached(stored)?.query_row([append.key, append.generation], |row| row.get::<_, i64>(0)).optional()?;
        return Ok(head.map_or(CommitOutcome::Fenced, |head| CommitOutcome::Behind(head as Seq)));
    }
    for event in &append.events {
        let call = append.calls.iter().find(|(seq, _)| *seq == event.seq).map(|(_, call)| call);
        insert_event(db, append.key, event, call)?;
        if let Body::SessionCreated { parent: Some(parent), .. } = &event.body {
            db.prepare_cached("UPDATE sessions SET parent = ?1 WHERE key = ?2")?
                .execute(params![parent.call.session_id.as_str(), append.key])?;
        }
        if let Some(change) = event.body.session_change() {
            let directories = change.additional_directories.as_ref().map(|list| serde_json::json!(list).to_string());
            db.prepare_cached(
                "UPDATE sessions SET title = coalesce(?1, title), cwd = coalesce(?2, cwd), directories = coalesce(?3, directories) WHERE key = ?4",
            )?
            .execute(params![change.title, change.cwd.as_ref().map(|cwd| cwd.to_string_lossy()), directories, append.key])?;
        }
    }
    Ok(CommitOutcome::Written)
}

/// Inserts an event of the session with rowid `key`. `call` is the call of another process that
/// appended it.
pub(super) fn insert_event(db: &Connection, key: i64, event: &Event, call: Option<&MessageId>) -> rusqlite::Result<()> {
    let body = event.stored().map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let turn = event.turn_id.as_ref().map(|turn| turn.as_str());
    let sql = "INSERT INTO events (session, seq, turn, at_ms, delta, body, call, event_type, message_id) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let (call, message) = (call.map(MessageId::as_str), indexed_message(&event.body).map(MessageId::as_str));
    let (kind, delta, at_ms) = (event.body.name(), event.body.is_delta(), event.at_ms as i64);
    db.prepare_cached(sql)?.execute(params![key, event.seq as i64, turn, at_ms, delta, body, call, kind, message]).map(drop)
}
