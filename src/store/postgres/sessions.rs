//! Session rows.

use std::path::{Path, PathBuf};

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::events::text;
use super::failure::Columns;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::{Seq, SessionId, TurnId};
use crate::limits;
use crate::store::rows::{ActivityColumns, SessionFilter, SessionPage, SessionRow};

/// Begins a SELECT statement with the columns that [`session`] reads.
macro_rules! select_sessions {
    ($rest:literal) => {
        concat!(
            "SELECT key, id, generation, head, cwd, directories, title, created_ms, updated_ms, turn, waiting, summary, parent, archived, ",
            "CASE WHEN ending_generation IS DISTINCT FROM generation AND (turn IS NULL OR active_generation = generation) THEN owner END ",
            "FROM sessions ",
            $rest
        )
    };
}
pub(super) use select_sessions;

/// Converts a row of `select_sessions!`.
pub(super) fn session(row: &Row) -> Result<SessionRow> {
    let title: Option<&str> = row.column(6)?;
    Ok(SessionRow {
        key: row.column(0)?,
        id: row.column::<&str>(1)?.into(),
        generation: row.column(2)?,
        head: row.column::<i64>(3)? as Seq,
        cwd: PathBuf::from(row.column::<&str>(4)?),
        additional_directories: serde_json::from_str(row.column(5)?).unwrap_or_default(),
        title: title.and_then(|title| serde_json::from_str(title).ok()),
        created_ms: row.column::<i64>(7)? as u64,
        updated_ms: row.column::<i64>(8)? as u64,
        activity: ActivityColumns {
            turn: row.column::<Option<&str>>(9)?.map(TurnId::from),
            waiting: row.column::<i64>(10)? as usize,
            summary: row.column(11)?,
        },
        parent: row.column::<Option<&str>>(12)?.map(SessionId::from),
        archived: row.column(13)?,
        owner: row.column(14)?,
    })
}

impl PostgresStore {
    async fn list(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<SessionRow>> {
        self.rows("listing sessions of", sql, params).await?.iter().map(session).collect()
    }

    pub(in crate::store) async fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        let sql = select_sessions!("WHERE id = $1");
        self.row("looking up a session in", sql, &[&text(id.as_str())]).await?.as_ref().map(session).transpose()
    }

    /// Returns up to `limit` ids of sessions that start with `prefix`, newest first.
    pub(in crate::store) async fn session_ids(&self, prefix: &str, limit: usize) -> Result<Vec<SessionId>> {
        let sql = "SELECT id FROM sessions WHERE head > 0 AND starts_with(id, $1) ORDER BY key DESC LIMIT $2";
        let rows = self.rows("looking up sessions in", sql, &[&text(prefix), &(limit as i64)]).await?;
        rows.iter().map(|row| Ok(row.column::<&str>(0)?.into())).collect()
    }

    pub(in crate::store) async fn sessions(
        &self,
        filter: SessionFilter<'_>,
        after: Option<(u64, i64)>,
        limit: usize,
    ) -> Result<SessionPage> {
        let SessionFilter { cwd, children, empty, archived } = filter;
        let (updated_ms, key) =
            after.map_or((i64::MAX, i64::MAX), |(updated, key)| (i64::try_from(updated).unwrap_or(i64::MAX), key));
        let cwd = cwd.map(|cwd| text(&cwd.to_string_lossy()).into_owned());
        // The first message follows a few events after the creation of the session. A join would
        // read those of all sessions.
        let sql = select_sessions!(
            "WHERE head > 0 AND (updated_s, updated_ms, key) < ($1::bigint / 1000, $1::bigint, $2::bigint) AND ($3::text IS NULL OR cwd = $3) \
             AND ($5 OR parent IS NULL) AND ($6::boolean IS NULL OR archived = $6) AND ($7 OR coalesce(( \
               SELECT true FROM events e WHERE e.session = sessions.key AND NOT e.delta \
               AND e.kind IN ('message.completed', 'message.queued', 'messages.replaced') LIMIT 1), false)) \
             ORDER BY updated_s DESC, updated_ms DESC, key DESC LIMIT $4"
        );
        let params: [&(dyn ToSql + Sync); 7] = [&updated_ms, &key, &cwd, &(limit as i64 + 1), &children, &archived, &empty];
        let mut sessions = self.list(sql, &params).await?;
        let more = sessions.len() > limit;
        sessions.truncate(limit);
        let next = sessions.last().filter(|_| more).map(|last| (last.updated_ms, last.key));
        Ok(SessionPage { sessions, next })
    }

    /// Lists up to `limit` rows with a key above `after`, without their owners, in the order of the
    /// keys.
    pub(in crate::store) async fn session_rows(&self, after: i64, limit: usize) -> Result<Vec<SessionRow>> {
        let rows = self.list(select_sessions!("WHERE key > $1 ORDER BY key LIMIT $2"), &[&after, &(limit as i64)]).await?;
        Ok(rows.into_iter().map(|row| SessionRow { owner: None, ..row }).collect())
    }

    /// Lists up to `limit` sessions with an open permission request.
    pub(in crate::store) async fn waiting_sessions(&self, limit: usize) -> Result<Vec<SessionRow>> {
        let sql = select_sessions!("WHERE waiting > 0 AND head > 0 ORDER BY updated_ms DESC LIMIT $1");
        self.list(sql, &[&(limit as i64)]).await
    }

    /// Lists up to `limit` child sessions, oldest first.
    pub(in crate::store) async fn children(&self, parent: &SessionId, limit: usize) -> Result<Vec<SessionRow>> {
        let sql = select_sessions!("WHERE parent = $1 AND head > 0 ORDER BY key LIMIT $2");
        self.list(sql, &[&text(parent.as_str()), &i64::try_from(limit).unwrap_or(i64::MAX)]).await
    }

    /// Lists up to `limit` sessions with a directory that is `directory` or below it.
    pub(in crate::store) async fn sessions_in(&self, directory: &Path, limit: usize) -> Result<Vec<SessionRow>> {
        let sql = select_sessions!(
            "WHERE head > 0 AND (starts_with(cwd || '/', $1 || '/') OR EXISTS ( \
               SELECT FROM json_array_elements_text(directories::json) AS d(path) WHERE starts_with(d.path || '/', $1 || '/'))) \
             ORDER BY updated_ms DESC LIMIT $2"
        );
        self.list(sql, &[&text(&directory.to_string_lossy()), &(limit as i64)]).await
    }

    /// Creates a session owned by this process, in generation 1.
    pub(in crate::store) async fn create_session(&self, id: &SessionId, cwd: &Path, at_ms: u64) -> Result<SessionRow> {
        let sql = "INSERT INTO sessions (id, owner, cwd, created_ms, updated_ms, updated_s) VALUES ($1, $2, $3, $4::bigint, $4::bigint, $4::bigint / 1000) \
                   RETURNING key";
        let cwd_text = cwd.to_string_lossy();
        let params: [&(dyn ToSql + Sync); 4] = [&id.as_str(), &self.incarnation(), &text(&cwd_text), &(at_ms as i64)];
        let row = self.row("creating a session in", sql, &params).await?;
        let key = row.ok_or_else(|| Error::internal("a new session has no row"))?.column(0)?;
        Ok(SessionRow::new(key, id, cwd, at_ms))
    }

    /// Creates a session with a copy of the events of session `parent`, page by page.
    pub(in crate::store) async fn fork_session(&self, parent: i64, created: &Event, until: Seq) -> Result<SessionRow> {
        let doing = "forking a session in";
        let id = created.session_id.as_str();
        let insert = "INSERT INTO sessions (id, owner, cwd, directories, title, created_ms, updated_ms, updated_s) \
                      SELECT $1::text, $2::bigint, cwd, directories, title, $3::bigint, $3::bigint, $3::bigint / 1000 FROM sessions WHERE key = $4 RETURNING key";
        let inserted = self.row(doing, insert, &[&id, &self.incarnation(), &(created.at_ms as i64), &parent]).await?;
        let key: i64 = inserted.ok_or_else(|| Error::not_found("the session to fork does not exist"))?.column(0)?;
        let first = "WITH ordered AS MATERIALIZED (SELECT pg_advisory_xact_lock(1853187439)) \
                     INSERT INTO events (session, seq, at_ms, delta, kind, body) SELECT $1::bigint, 1, $2::bigint, false, $3::text, $4::text FROM ordered";
        let body = serde_json::to_string(&created.body).map_err(|error| Error::internal(format!("writing events: {error}")))?;
        self.rows(doing, first, &[&key, &(created.at_ms as i64), &created.body.name(), &body]).await?;
        let page = "WITH ordered AS MATERIALIZED (SELECT pg_advisory_xact_lock(1853187439)), page AS ( \
               SELECT q.*, q.kind IS NOT DISTINCT FROM 'message.queued' AND NOT EXISTS ( \
                 SELECT FROM events c WHERE c.session = $1 AND NOT c.delta AND c.seq > q.seq AND c.seq <= $3 \
                 AND c.kind = 'message.completed' AND c.message = q.message) AS left_out \
               FROM events q WHERE q.session = $1 AND q.seq > $2 AND q.seq <= $3 AND NOT q.delta ORDER BY q.seq LIMIT $4 \
             ), inserted AS ( \
               INSERT INTO events (session, seq, turn, at_ms, delta, kind, message, body) \
               SELECT $5::bigint, $6::bigint + row_number() OVER (ORDER BY p.seq), p.turn, p.at_ms, false, p.kind, p.message, p.body \
               FROM ordered, page p WHERE NOT p.left_out ORDER BY p.seq RETURNING seq \
             ) SELECT (SELECT count(*) FROM page), (SELECT max(seq) FROM page), (SELECT max(seq) FROM inserted)";
        let (mut after, mut head) = (1_i64, 1_i64);
        loop {
            let params: [&(dyn ToSql + Sync); 6] = [&parent, &after, &(until as i64), &(limits::PAGE_EVENTS as i64), &key, &head];
            let Some(copied) = self.row(doing, page, &params).await? else { break };
            after = copied.column::<Option<i64>>(1)?.unwrap_or(after);
            head = copied.column::<Option<i64>>(2)?.unwrap_or(head);
            if copied.column::<i64>(0)? < limits::PAGE_EVENTS as i64 {
                break;
            }
        }
        self.rows(doing, "UPDATE sessions SET head = $1 WHERE key = $2", &[&head, &key]).await?;
        let row = self.session(&created.session_id).await?;
        row.ok_or_else(|| Error::not_found(format!("session {id} not found")))
    }

    /// Archives a session or returns it to the list.
    pub(in crate::store) async fn set_archived(&self, id: &SessionId, archived: bool) -> Result<bool> {
        let sql = "UPDATE sessions SET archived = $2 WHERE id = $1 AND head > 0 RETURNING key";
        Ok(self.row("archiving a session in", sql, &[&text(id.as_str()), &archived]).await?.is_some())
    }

    /// Removes a session and all of its events except the last.
    pub(in crate::store) async fn delete_session(&self, key: i64) -> Result<()> {
        let sql = "WITH deleted AS ( \
                     DELETE FROM events WHERE session = $1 AND seq < (SELECT max(seq) FROM events WHERE session = $1) \
                   ), files AS (DELETE FROM files WHERE session = $1) \
                   UPDATE sessions SET head = 0, title = NULL, summary = NULL WHERE key = $1";
        self.rows("deleting a session from", sql, &[&key]).await.map(drop)
    }

    /// Removes the remains of sessions that were deleted before `before_ms`.
    pub(in crate::store) async fn forget_deleted(&self, before_ms: u64) -> Result<()> {
        let sql = "WITH gone AS (DELETE FROM sessions WHERE head = 0 AND updated_ms < $1 RETURNING key), \
                     files AS (DELETE FROM files WHERE session IN (SELECT key FROM gone)) \
                   DELETE FROM events WHERE session IN (SELECT key FROM gone)";
        self.rows("removing deleted sessions from", sql, &[&(before_ms as i64)]).await.map(drop)
    }
}
