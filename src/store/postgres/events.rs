//! Reads events.

use std::borrow::Cow;

use tokio_postgres::Row;

use super::PostgresStore;
use super::failure::Columns;
use crate::error::{Error, Result};
use crate::event::{Body, Event};
use crate::id::{MessageId, Seq, SessionId};
use crate::store::rows::{Cursor, StoredEvent};

/// Selects the rows of a condition, in the order of a column, up to a limit. Ends with the row that
/// brings the size of the bodies above 4 MiB.
macro_rules! page_of {
    ($condition:literal, $order:literal) => {
        page_of!($condition, $order, "$3")
    };
    ($condition:literal, $order:literal, $limit:literal) => {
        concat!(
            "SELECT seq, turn, at_ms, body, id, session FROM ( \
               SELECT *, sum(octet_length(body)) OVER (ORDER BY ",
            $order,
            ") - octet_length(body) AS size_before FROM events WHERE ",
            $condition,
            " ORDER BY ",
            $order,
            " LIMIT ",
            $limit,
            ") AS page WHERE size_before <= 4194304 ORDER BY ",
            $order
        )
    };
}

/// Replaces NUL, which PostgreSQL's text cannot contain.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

impl PostgresStore {
    /// Returns a page of the events of a session.
    pub(in crate::store) async fn events(
        &self,
        id: &SessionId,
        key: i64,
        after: Seq,
        limit: usize,
        deltas: bool,
    ) -> Result<Vec<Event>> {
        let sql = if deltas {
            page_of!("session = $1 AND seq > $2", "seq")
        } else {
            page_of!("session = $1 AND seq > $2 AND NOT delta", "seq")
        };
        let rows = self.rows("reading events from", sql, &[&key, &seq(after), &(limit as i64)]).await?;
        rows.iter().map(|row| event(id, row)).collect()
    }

    /// Returns a page of the `message.completed` events of a session that match all patterns.
    pub(in crate::store) async fn messages_like(
        &self,
        id: &SessionId,
        key: i64,
        patterns: &[String],
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>> {
        let sql = page_of!(
            "session = $1 AND seq > $2 AND NOT delta AND kind = 'message.completed' AND body ILIKE ALL ($4::text[])",
            "seq"
        );
        let rows = self.rows("searching messages in", sql, &[&key, &seq(after), &(limit as i64), &patterns]).await?;
        rows.iter().map(|row| event(id, row)).collect()
    }

    /// Returns a page of the events of all sessions, in commit order.
    pub(in crate::store) async fn events_of_all(&self, after: Cursor, limit: usize) -> Result<Vec<StoredEvent>> {
        let sql = concat!(
            "SELECT e.seq, e.turn, e.at_ms, e.body, e.id, s.id, s.cwd FROM (",
            page_of!("id > $1", "id", "$2"),
            ") AS e JOIN sessions s ON s.key = e.session ORDER BY e.id"
        );
        let rows = self.rows("reading events from", sql, &[&seq(after.number()), &(limit as i64)]).await?;
        let stored = |row: &Row| {
            let (session, cwd): (String, String) = (row.column(5)?, row.column(6)?);
            let cursor = Cursor::from_number(row.column::<i64>(4)? as u64);
            Ok(StoredEvent { cursor, cwd: cwd.into(), event: event(&session.into(), row)? })
        };
        rows.iter().map(stored).collect()
    }

    /// Returns the cursor of the last event ever written.
    pub(in crate::store) async fn last_event(&self) -> Result<Cursor> {
        // The lock waits for the commits to which the sequence has given numbers. The last event
        // itself may have been deleted.
        let sql = "WITH ordered AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(1853187439)) \
                   SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('events', 'id')::regclass), 0) FROM ordered";
        let row = self.row("reading the last event of", sql, &[]).await?;
        Ok(Cursor::from_number(row.map_or(Ok(0), |row| row.column::<i64>(0))? as u64))
    }

    /// Returns the seq of the event after `after` that a call of another process appended.
    pub(in crate::store) async fn event_of_call(&self, key: i64, after: Seq, call: &MessageId) -> Result<Option<Seq>> {
        let sql = "SELECT seq FROM events WHERE session = $1 AND seq > $2 AND call = $3";
        let row = self.row("reading events from", sql, &[&key, &seq(after), &text(call.as_str())]).await?;
        row.map(|row| Ok(row.column::<i64>(0)? as Seq)).transpose()
    }

    /// Deletes the deltas of a session before seq `before`.
    pub(in crate::store) async fn prune_deltas(&self, key: i64, before: Seq) -> Result<usize> {
        let sql = "WITH deleted AS (DELETE FROM events WHERE session = $1 AND seq < $2 AND delta RETURNING 1) \
                   SELECT count(*) FROM deleted";
        let row = self.row("pruning", sql, &[&key, &seq(before)]).await?;
        Ok(row.map_or(Ok(0), |row| row.column::<i64>(0))? as usize)
    }
}

/// Converts a seq or a cursor, which clients can set beyond the range of the column.
fn seq(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

fn event(session: &SessionId, row: &Row) -> Result<Event> {
    let (body, signature) =
        Body::parse_stored(row.column(3)?).map_err(|error| Error::internal(format!("reading an event: {error}")))?;
    Ok(Event {
        session_id: session.clone(),
        seq: row.column::<i64>(0)? as Seq,
        turn_id: row.column::<Option<&str>>(1)?.map(Into::into),
        at_ms: row.column::<i64>(2)? as u64,
        body,
        signature,
    })
}
