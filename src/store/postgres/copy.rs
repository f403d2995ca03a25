//! Rows as copies of a store read and write them.

use std::borrow::Cow;

use serde_json::json;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::events::text;
use super::failure::Columns;
use crate::error::{Error, Result};
use crate::id::{Seq, SessionId, TurnId};
use crate::store::rows::{AnswerRow, Cursor, EventRow, IdempotencyRecord, SessionRow, StoreTotals};

/// Inserts the row of a session, or replaces the one with its key.
const PUT_SESSION: &str = "INSERT INTO sessions (key, id, generation, head, cwd, directories, title, created_ms, updated_ms, updated_s, \
       turn, waiting, summary, parent, archived) OVERRIDING SYSTEM VALUE \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::bigint, $9::bigint / 1000, $10, $11, $12, $13, $14) \
     ON CONFLICT (key) DO UPDATE SET id = excluded.id, generation = excluded.generation, head = excluded.head, \
       cwd = excluded.cwd, directories = excluded.directories, title = excluded.title, created_ms = excluded.created_ms, \
       updated_ms = excluded.updated_ms, updated_s = excluded.updated_s, turn = excluded.turn, waiting = excluded.waiting, \
       summary = excluded.summary, parent = excluded.parent, archived = excluded.archived";

/// Returns a column of texts of events.
pub(super) fn texts(events: &[EventRow], column: fn(&EventRow) -> &Option<String>) -> Vec<Option<Cow<'_, str>>> {
    events.iter().map(|event| column(event).as_deref().map(text)).collect()
}

/// Returns a column of numbers of events.
pub(super) fn numbers(events: &[EventRow], column: fn(&EventRow) -> i64) -> Vec<i64> {
    events.iter().map(column).collect()
}

impl PostgresStore {
    pub(in crate::store) async fn totals(&self) -> Result<StoreTotals> {
        let sql = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM events), (SELECT count(*) FROM workspaces), \
                   (SELECT count(*) FROM answers), (SELECT coalesce(max(key), 0) FROM sessions)";
        let row = self.row("counting the rows of", sql, &[]).await?.ok_or_else(|| Error::internal("a count has no row"))?;
        let count = |index: usize| row.column::<i64>(index).map(|count| count as u64);
        Ok(StoreTotals {
            sessions: count(0)?,
            events: count(1)?,
            workspaces: count(2)?,
            answers: count(3)?,
            last_key: row.column(4)?,
        })
    }

    /// Returns a page of the events of a session.
    pub(in crate::store) async fn event_rows(&self, key: i64, after: Seq, limit: usize) -> Result<Vec<EventRow>> {
        let sql = "SELECT id, seq, turn, at_ms, delta, kind, message, call, body FROM ( \
                     SELECT *, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS size_before FROM events \
                     WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3 \
                   ) AS page WHERE size_before <= 4194304 ORDER BY seq";
        let rows = self.rows("reading events from", sql, &[&key, &(after as i64), &(limit as i64)]).await?;
        let event = |row: &tokio_postgres::Row| {
            Ok(EventRow {
                id: row.column(0)?,
                seq: row.column::<i64>(1)? as Seq,
                turn: row.column(2)?,
                at_ms: row.column(3)?,
                delta: row.column(4)?,
                kind: row.column(5)?,
                message: row.column(6)?,
                call: row.column(7)?,
                body: row.column(8)?,
            })
        };
        rows.iter().map(event).collect()
    }

    /// Lists stored responses after a principal and a key, in the order of their bytes.
    pub(in crate::store) async fn answer_rows(&self, after: (&str, &str), limit: usize) -> Result<Vec<AnswerRow>> {
        let sql = "SELECT principal, key, asked, answer, at_ms FROM answers \
                   WHERE (principal COLLATE \"C\", key COLLATE \"C\") > ($1, $2) \
                   ORDER BY principal COLLATE \"C\", key COLLATE \"C\" LIMIT $3";
        let rows = self.rows("reading responses from", sql, &[&text(after.0), &text(after.1), &(limit as i64)]).await?;
        let answer = |row: &tokio_postgres::Row| {
            let record = IdempotencyRecord { asked: row.column(2)?, text: row.column(3)? };
            Ok(AnswerRow { principal: row.column(0)?, key: row.column(1)?, record, at_ms: row.column(4)? })
        };
        rows.iter().map(answer).collect()
    }

    /// Inserts the row of a session, or replaces the one with its key.
    pub(in crate::store) async fn put_session(&self, row: &SessionRow) -> Result<()> {
        let params: [&(dyn ToSql + Sync); 14] = [
            &row.key,
            &row.id.as_str(),
            &row.generation,
            &(row.head as i64),
            &row.cwd.to_string_lossy(),
            &json!(row.additional_directories).to_string(),
            &row.title.as_ref().map(|title| json!(title).to_string()),
            &(row.created_ms as i64),
            &(row.updated_ms as i64),
            &row.activity.turn.as_ref().map(TurnId::as_str),
            &(row.activity.waiting as i64),
            &row.activity.summary,
            &row.parent.as_ref().map(SessionId::as_str),
            &row.archived,
        ];
        self.rows("writing a session to", PUT_SESSION, &params).await.map(drop)
    }

    pub(in crate::store) async fn put_events(&self, key: i64, events: &[EventRow]) -> Result<()> {
        let sql = "INSERT INTO events (id, session, seq, turn, at_ms, delta, kind, message, call, body) \
                   SELECT e.id, $1::bigint, e.seq, e.turn, e.at_ms, e.delta, e.kind, e.message, e.call, e.body FROM unnest( \
                     $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::boolean[], $7::text[], $8::text[], $9::text[], \
                     $10::text[]) AS e(id, seq, turn, at_ms, delta, kind, message, call, body)";
        let params: [&(dyn ToSql + Sync); 10] = [
            &key,
            &numbers(events, |event| event.id),
            &numbers(events, |event| event.seq as i64),
            &texts(events, |event| &event.turn),
            &numbers(events, |event| event.at_ms),
            &events.iter().map(|event| event.delta).collect::<Vec<_>>(),
            &texts(events, |event| &event.kind),
            &texts(events, |event| &event.message),
            &texts(events, |event| &event.call),
            &events.iter().map(|event| event.body.as_str()).collect::<Vec<_>>(),
        ];
        self.rows("writing events to", sql, &params).await.map(drop)
    }

    /// Inserts stored responses, or replaces those with their keys.
    pub(in crate::store) async fn put_answers(&self, rows: &[AnswerRow]) -> Result<()> {
        let sql = "INSERT INTO answers (principal, key, asked, answer, at_ms) \
                   SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::bigint[]) \
                   ON CONFLICT (principal, key) DO UPDATE SET asked = excluded.asked, answer = excluded.answer, at_ms = excluded.at_ms";
        let params: [&(dyn ToSql + Sync); 5] = [
            &rows.iter().map(|row| row.principal.as_str()).collect::<Vec<_>>(),
            &rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(),
            &rows.iter().map(|row| row.record.asked.as_slice()).collect::<Vec<_>>(),
            &rows.iter().map(|row| row.record.text.as_deref()).collect::<Vec<_>>(),
            &rows.iter().map(|row| row.at_ms).collect::<Vec<_>>(),
        ];
        self.rows("writing responses to", sql, &params).await.map(drop)
    }

    /// Reserves the numbers of rows up to these.
    pub(in crate::store) async fn reserve_numbers(&self, key: i64, event: Cursor) -> Result<()> {
        let sql = "SELECT setval(s.name, s.number) FROM (VALUES \
                     (pg_get_serial_sequence('sessions', 'key')::regclass, $1::bigint), \
                     (pg_get_serial_sequence('events', 'id')::regclass, $2::bigint)) AS s(name, number) \
                   WHERE s.number > coalesce(pg_sequence_last_value(s.name), 0)";
        self.rows("reserving numbers in", sql, &[&key, &(event.number() as i64)]).await.map(drop)
    }
}
