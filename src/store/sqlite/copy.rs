//! Rows as copies of a store read and write them.

use rusqlite::{Transaction, TransactionBehavior, params};
use serde_json::json;

use super::database::SqliteStore;
use super::events::page;
use super::migrations::{EVENT_TYPE, MESSAGE_ID};
use crate::error::Result;
use crate::id::{Seq, SessionId, TurnId};
use crate::store::rows::{AnswerRow, Cursor, EventRow, IdempotencyRecord, SessionRow, StoreTotals};

impl SqliteStore {
    pub(in crate::store) fn totals(&self) -> Result<StoreTotals> {
        let sql = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM events), (SELECT count(*) FROM workspaces), \
                   (SELECT count(*) FROM answers), (SELECT coalesce(max(key), 0) FROM sessions)";
        self.run("counting the rows of", |db| {
            db.query_row(sql, [], |row| {
                let count = |index| row.get::<_, i64>(index).map(|count| count as u64);
                Ok(StoreTotals {
                    sessions: count(0)?,
                    events: count(1)?,
                    workspaces: count(2)?,
                    answers: count(3)?,
                    last_key: row.get(4)?,
                })
            })
        })
    }

    /// Returns a page of the events of a session.
    pub(in crate::store) fn event_rows(&self, key: i64, after: Seq, limit: usize) -> Result<Vec<EventRow>> {
        let sql = format!(
            "SELECT id, seq, turn, body, at_ms, delta, {EVENT_TYPE}, \
               CASE WHEN {EVENT_TYPE} IN ('message.queued', 'message.completed') THEN {MESSAGE_ID} END, call \
             FROM events WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
        );
        self.run("reading events from", |db| {
            let mut select = db.prepare_cached(&sql)?;
            page(select.query(params![key, after as i64, limit as i64])?, |row| {
                Ok(EventRow {
                    id: row.get(0)?,
                    seq: row.get::<_, i64>(1)? as Seq,
                    turn: row.get(2)?,
                    body: row.get(3)?,
                    at_ms: row.get(4)?,
                    delta: row.get(5)?,
                    kind: row.get(6)?,
                    message: row.get(7)?,
                    call: row.get(8)?,
                })
            })
        })
    }

    /// Lists stored responses after a principal and a key.
    pub(in crate::store) fn answer_rows(&self, after: (&str, &str), limit: usize) -> Result<Vec<AnswerRow>> {
        let sql = "SELECT principal, key, asked, answer, at_ms FROM answers WHERE (principal, key) > (?1, ?2) \
                   ORDER BY principal, key LIMIT ?3";
        self.run("reading responses from", |db| {
            let mut select = db.prepare_cached(sql)?;
            let rows = select.query_map(params![after.0, after.1, limit as i64], |row| {
                let record = IdempotencyRecord { asked: row.get(2)?, text: row.get(3)? };
                Ok(AnswerRow { principal: row.get(0)?, key: row.get(1)?, record, at_ms: row.get(4)? })
            })?;
            rows.collect()
        })
    }

    /// Inserts the row of a session, or replaces the one with its key.
    pub(in crate::store) fn put_session(&self, row: &SessionRow) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO sessions (key, id, generation, head, cwd, directories, title, created_ms, updated_ms, \
                     turn, waiting, summary, parent, archived) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        self.run("writing a session to", |db| {
            let values = params![
                row.key,
                row.id.as_str(),
                row.generation,
                row.head as i64,
                row.cwd.to_string_lossy(),
                json!(row.additional_directories).to_string(),
                row.title,
                row.created_ms as i64,
                row.updated_ms as i64,
                row.activity.turn.as_ref().map(TurnId::as_str),
                row.activity.waiting as i64,
                row.activity.summary,
                row.parent.as_ref().map(SessionId::as_str),
                row.archived
            ];
            db.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    /// Inserts events of a session in one transaction.
    pub(in crate::store) fn put_events(&self, key: i64, events: &[EventRow]) -> Result<()> {
        let sql = "INSERT INTO events (id, session, seq, turn, at_ms, delta, event_type, message_id, call, body) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        self.run("writing events to", |db| {
            let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            let mut insert = db.prepare_cached(sql)?;
            for EventRow { id, seq, turn, at_ms, delta, kind, message, call, body } in events {
                insert.execute(params![id, key, *seq as i64, turn, at_ms, delta, kind, message, call, body])?;
            }
            transaction.commit()
        })
    }

    /// Inserts stored responses, or replaces those with their keys.
    pub(in crate::store) fn put_answers(&self, rows: &[AnswerRow]) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO answers (principal, key, asked, answer, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.run("writing responses to", |db| {
            let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            let mut insert = db.prepare_cached(sql)?;
            for AnswerRow { principal, key, record, at_ms } in rows {
                insert.execute(params![principal, key, record.asked, record.text, at_ms])?;
            }
            transaction.commit()
        })
    }

    /// Reserves the numbers of rows up to these.
    pub(in crate::store) fn reserve_numbers(&self, key: i64, event: Cursor) -> Result<()> {
        self.run("reserving numbers in", |db| {
            for (table, number) in [("sessions", key), ("events", event.number() as i64)] {
                let raised = db.execute("UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1", params![table, number])?;
                if raised == 0 {
                    db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", params![table, number])?;
                }
            }
            Ok(())
        })
    }

    /// Writes the WAL file into the database, and syncs both.
    pub(in crate::store) fn sync(&self) -> Result<()> {
        self.run("syncing", |db| db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
    }
}
