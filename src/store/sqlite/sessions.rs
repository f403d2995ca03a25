//! Session rows: the metadata that can be read without reading events.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::types::ToSqlOutput;
use rusqlite::{OptionalExtension, Params, Row, Transaction, TransactionBehavior, params};

use super::database::SqliteStore;
use super::events::insert_event;
use super::migrations::{EVENT_TYPE, MESSAGE_ID};
use crate::error::Result;
use crate::event::{Event, MESSAGE_COMPLETED, MESSAGE_QUEUED, MESSAGES_REPLACED};
use crate::id::{Seq, SessionId, TurnId};
use crate::limits;
use crate::store::rows::{ActivityColumns, SessionFilter, SessionPage, SessionRow, TakeOutcome};

const COLUMNS: &str =
    "key, id, generation, head, cwd, directories, title, created_ms, updated_ms, turn, waiting, summary, parent, archived";

fn session(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let directories: String = row.get(5)?;
    Ok(SessionRow {
        key: row.get(0)?,
        id: row.get::<_, String>(1)?.into(),
        generation: row.get(2)?,
        head: row.get::<_, i64>(3)? as Seq,
        cwd: PathBuf::from(row.get::<_, String>(4)?),
        additional_directories: serde_json::from_str(&directories).unwrap_or_default(),
        title: row.get(6)?,
        created_ms: row.get::<_, i64>(7)? as u64,
        updated_ms: row.get::<_, i64>(8)? as u64,
        activity: ActivityColumns {
            turn: row.get::<_, Option<String>>(9)?.map(TurnId::from),
            waiting: row.get::<_, i64>(10)? as usize,
            summary: row.get(11)?,
        },
        parent: row.get::<_, Option<String>>(12)?.map(SessionId::from),
        archived: row.get(13)?,
        owner: None,
    })
}

impl SqliteStore {
    pub(in crate::store) fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        self.run("looking up a session in", |db| {
            let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"))?;
            select.query_row([id.as_str()], session).optional()
        })
    }

    /// Returns up to `limit` ids of sessions that start with `prefix`, newest first.
    pub(in crate::store) fn session_ids(&self, prefix: &str, limit: usize) -> Result<Vec<SessionId>> {
        self.run("looking up sessions in", |db| {
            let mut select =
                db.prepare_cached("SELECT id FROM sessions WHERE head > 0 AND instr(id, ?1) = 1 ORDER BY key DESC LIMIT ?2")?;
            let rows = select.query_map(params![prefix, limit as i64], |row| row.get::<_, String>(0))?;
            rows.map(|id| id.map(SessionId::from)).collect()
        })
    }

    /// Creates a session owned by this process, in generation 1.
    pub(in crate::store) fn create_session(&self, id: &SessionId, cwd: &Path, at_ms: u64) -> Result<SessionRow> {
        let sql = "INSERT INTO sessions (id, owner, cwd, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?4)";
        self.run("creating a session in", |db| {
            db.prepare_cached(sql)?.execute(params![id.as_str(), std::process::id(), cwd.to_string_lossy(), at_ms as i64])?;
            Ok(SessionRow::new(db.last_insert_rowid(), id, cwd, at_ms))
        })
    }

    /// Creates a session with a copy of the events of session `parent` up to seq `until`, page by
    /// page.
    pub(in crate::store) fn fork_session(&self, parent: i64, created: &Event, until: Seq) -> Result<SessionRow> {
        let insert = "INSERT INTO sessions (id, owner, cwd, directories, title, created_ms, updated_ms) \
                      SELECT ?1, ?2, cwd, directories, title, ?3, ?3 FROM sessions WHERE key = ?4";
        let left_out = format!(
            "WITH facts AS (SELECT seq, {EVENT_TYPE} AS type, {MESSAGE_ID} AS message FROM events \
                            WHERE session = ?1 AND delta = 0 AND seq <= ?2) \
             SELECT q.seq FROM facts q WHERE q.type = ?3 AND NOT EXISTS ( \
               SELECT 1 FROM facts c WHERE c.seq > q.seq AND c.type = ?4 AND c.message = q.message)"
        );
        let page = "SELECT seq, turn, at_ms, body, event_type, message_id FROM events INDEXED BY facts \
                    WHERE session = ?1 AND seq > ?2 AND seq <= ?3 AND delta = 0 ORDER BY seq LIMIT ?4";
        let copy = "INSERT INTO events (session, seq, turn, at_ms, delta, body, event_type, message_id) \
                    VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7)";
        self.run("forking a session in", |db| {
            let mut waiting = db.prepare(&left_out)?;
            let of = params![parent, until as i64, MESSAGE_QUEUED, MESSAGE_COMPLETED];
            let waiting: HashSet<i64> = waiting.query_map(of, |row| row.get(0))?.collect::<Result<_, _>>()?;
            db.execute(insert, params![created.session_id.as_str(), std::process::id(), created.at_ms as i64, parent])?;
            let key = db.last_insert_rowid();
            insert_event(db, key, created, None)?;
            let (mut after, mut head) = (1, 1);
            loop {
                let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
                let mut select = db.prepare_cached(page)?;
                let mut rows = select.query(params![parent, after, until as i64, limits::PAGE_EVENTS as i64])?;
                let mut copied = 0;
                while let Some(row) = rows.next()? {
                    copied += 1;
                    after = row.get(0)?;
                    if !waiting.contains(&after) {
                        head += 1;
                        let column = |index| row.get_ref(index).map(ToSqlOutput::Borrowed);
                        let (turn, at_ms, body, kind, message) = (column(1)?, column(2)?, column(3)?, column(4)?, column(5)?);
                        db.prepare_cached(copy)?.execute(params![key, head, turn, at_ms, body, kind, message])?;
                    }
                }
                drop(rows);
                transaction.commit()?;
                if copied < limits::PAGE_EVENTS {
                    break;
                }
            }
            db.execute("UPDATE sessions SET head = ?1 WHERE key = ?2", params![head, key])?;
            db.query_row(&format!("SELECT {COLUMNS} FROM sessions WHERE key = ?1"), [key], session)
        })
    }

    /// Makes this process, which holds the lock of the session, its owner.
    pub(in crate::store) fn take_session(&self, key: i64) -> Result<TakeOutcome> {
        self.run("taking a session in", |db| {
            // Without a transaction, a failed commit, for example on a full disk, would be no
            // error: the row is returned before.
            let transaction = db.unchecked_transaction()?;
            let generation = transaction
                .prepare_cached("UPDATE sessions SET generation = generation + 1, owner = ?2 WHERE key = ?1 RETURNING generation")?
                .query_row(params![key, std::process::id()], |row| row.get(0))?;
            transaction.commit().map(|()| TakeOutcome::Taken(generation))
        })
    }

    /// Removes a session and all of its events except the last.
    pub(in crate::store) fn delete_session(&self, key: i64) -> Result<()> {
        self.run("deleting a session from", |db| {
            let transaction = db.unchecked_transaction()?;
            let last = "SELECT max(seq) FROM events WHERE session = ?1";
            transaction.execute(&format!("DELETE FROM events WHERE session = ?1 AND seq < ({last})"), [key])?;
            transaction.execute("UPDATE sessions SET head = 0, title = NULL, summary = NULL WHERE key = ?1", [key])?;
            transaction.commit()
        })
    }

    /// Removes the remains of sessions that were deleted before `before_ms`, and sessions without
    /// events that were last updated before that time.
    pub(in crate::store) fn forget_deleted(&self, before_ms: u64) -> Result<()> {
        self.run("removing deleted sessions from", |db| {
            let gone = "SELECT key FROM sessions WHERE head = 0 AND updated_ms < ?1";
            db.execute(&format!("DELETE FROM events WHERE session IN ({gone})"), [before_ms as i64])?;
            db.execute("DELETE FROM sessions WHERE head = 0 AND updated_ms < ?1", [before_ms as i64]).map(drop)
        })
    }

    /// Lists the sessions that the end of a SELECT statement selects.
    fn list(&self, selection: &str, parameters: impl Params) -> Result<Vec<SessionRow>> {
        self.run("listing sessions of", |db| {
            let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions {selection}"))?;
            let rows = select.query_map(parameters, session)?;
            rows.collect()
        })
    }

    /// Lists up to `limit` rows with a key above `after`, in the order of the keys.
    pub(in crate::store) fn session_rows(&self, after: i64, limit: usize) -> Result<Vec<SessionRow>> {
        self.list("WHERE key > ?1 ORDER BY key LIMIT ?2", [after, limit as i64])
    }

    /// Lists up to `limit` sessions with an open permission request, most recently updated first.
    /// The owner of a session may have died since.
    pub(in crate::store) fn waiting_sessions(&self, limit: usize) -> Result<Vec<SessionRow>> {
        self.list("WHERE waiting > 0 AND head > 0 ORDER BY updated_ms DESC LIMIT ?1", [limit as i64])
    }

    /// Lists up to `limit` child sessions of a session, oldest first.
    pub(in crate::store) fn children(&self, parent: &SessionId, limit: usize) -> Result<Vec<SessionRow>> {
        let selection = "INDEXED BY sessions_children WHERE parent = ?1 AND head > 0 ORDER BY key LIMIT ?2";
        self.list(selection, params![parent.as_str(), limit as i64])
    }

    /// Lists up to `limit` sessions with a directory that is `directory` or below it, most recently
    /// updated first.
    pub(in crate::store) fn sessions_in(&self, directory: &Path, limit: usize) -> Result<Vec<SessionRow>> {
        let selection = "WHERE head > 0 AND (instr(cwd || '/', ?1 || '/') = 1 OR EXISTS ( \
                           SELECT 1 FROM json_each(directories) WHERE instr(value || '/', ?1 || '/') = 1)) \
                         ORDER BY updated_ms DESC LIMIT ?2";
        self.list(selection, params![directory.to_string_lossy(), limit as i64])
    }

    /// Lists up to `limit` sessions of `filter` that have events, after position `after`, most
    /// recently updated first.
    pub(in crate::store) fn sessions(
        &self,
        filter: SessionFilter<'_>,
        after: Option<(u64, i64)>,
        limit: usize,
    ) -> Result<SessionPage> {
        let SessionFilter { cwd, children, empty, archived } = filter;
        let (updated_ms, key) = after.unwrap_or((i64::MAX as u64, i64::MAX));
        // The first message follows a few events after the creation of the session.
        let selection = format!(
            "WHERE head > 0 AND (updated_ms, key) < (?1, ?2) AND (?3 IS NULL OR cwd = ?3) \
             AND (?5 OR parent IS NULL) AND (?6 IS NULL OR archived = ?6) AND (?7 OR EXISTS ( \
               SELECT 1 FROM events INDEXED BY facts WHERE session = sessions.key AND delta = 0 \
               AND {EVENT_TYPE} IN ('{MESSAGE_COMPLETED}', '{MESSAGE_QUEUED}', '{MESSAGES_REPLACED}'))) \
             ORDER BY updated_ms DESC, key DESC LIMIT ?4"
        );
        let cwd = cwd.map(|cwd| cwd.to_string_lossy());
        let selected = params![updated_ms as i64, key, cwd, limit as i64 + 1, children, archived, empty];
        let mut sessions = self.list(&selection, selected)?;
        let more = sessions.len() > limit;
        sessions.truncate(limit);
        let next = sessions.last().filter(|_| more).map(|last| (last.updated_ms, last.key));
        Ok(SessionPage { sessions, next })
    }

    /// Archives a session or returns it to the list. Returns false if the session does not exist.
    pub(in crate::store) fn set_archived(&self, id: &SessionId, archived: bool) -> Result<bool> {
        self.run("archiving a session in", |db| {
            let mut update = db.prepare_cached("UPDATE sessions SET archived = ?2 WHERE id = ?1 AND head > 0")?;
            update.execute(params![id.as_str(), archived]).map(|changed| changed > 0)
        })
    }
}
