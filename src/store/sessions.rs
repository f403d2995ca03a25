//! Rows of sessions: what can be said of one without reading its events.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, Row, params};

use super::Store;
use crate::error::Result;
use crate::id::{Seq, SessionId};

#[derive(Clone, Debug)]
pub struct SessionRow {
    /// Rowid; events refer to it.
    pub key: i64,
    pub id: SessionId,
    pub generation: i64,
    /// Process id of whoever took it last.
    pub owner: Option<u32>,
    pub head: Seq,
    pub cwd: PathBuf,
    pub additional_directories: Vec<PathBuf>,
    pub title: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub created_ms: u64,
    pub updated_ms: u64,
}

/// A page of sessions, most recently updated first. `next` continues after the last of them.
pub struct SessionPage {
    pub sessions: Vec<SessionRow>,
    pub next: Option<(u64, i64)>,
}

const COLUMNS: &str = "key, id, generation, owner, head, cwd, directories, title, created_ms, updated_ms";

fn session(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let directories: String = row.get(6)?;
    Ok(SessionRow {
        key: row.get(0)?,
        id: row.get::<_, String>(1)?.into(),
        generation: row.get(2)?,
        owner: row.get(3)?,
        head: row.get::<_, i64>(4)? as Seq,
        cwd: PathBuf::from(row.get::<_, String>(5)?),
        additional_directories: serde_json::from_str(&directories).unwrap_or_default(),
        title: row.get(7)?,
        created_ms: row.get::<_, i64>(8)? as u64,
        updated_ms: row.get::<_, i64>(9)? as u64,
    })
}

impl Store {
    pub fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        self.with("looking up a session in", |db| {
            let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"))?;
            select.query_row([id.as_str()], session).optional()
        })
    }

    /// A new row, owned by process `owner` in generation 1.
    pub fn create_session(&self, id: &SessionId, cwd: &Path, owner: u32, at_ms: u64) -> Result<SessionRow> {
        let sql = "INSERT INTO sessions (id, owner, cwd, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?4)";
        self.with("creating a session in", |db| {
            db.prepare_cached(sql)?.execute(params![id.as_str(), owner, cwd.to_string_lossy(), at_ms as i64])?;
            Ok(SessionRow {
                key: db.last_insert_rowid(),
                id: id.clone(),
                generation: 1,
                owner: Some(owner),
                head: 0,
                cwd: cwd.into(),
                additional_directories: Vec::new(),
                title: None,
                created_ms: at_ms,
                updated_ms: at_ms,
            })
        })
    }

    /// Gives the session to process `owner`: from here on, appends of the generation before are refused.
    pub fn take_session(&self, key: i64, owner: u32) -> Result<i64> {
        self.with("taking a session in", |db| {
            let mut update = db.prepare_cached(
                "UPDATE sessions SET generation = generation + 1, owner = ?2 WHERE key = ?1 RETURNING generation",
            )?;
            update.query_row(params![key, owner], |row| row.get(0))
        })
    }

    /// Removes a session and all of its events.
    pub fn delete_session(&self, key: i64) -> Result<()> {
        self.with("deleting a session from", |db| {
            let transaction = db.unchecked_transaction()?;
            transaction.execute("DELETE FROM events WHERE session = ?1", [key])?;
            transaction.execute("DELETE FROM sessions WHERE key = ?1", [key])?;
            transaction.commit()
        })
    }

    /// Up to `limit` sessions that have at least one event, after the place `after`, most recently updated first; only those of `cwd`, if given.
    pub fn sessions(&self, cwd: Option<&Path>, after: Option<(u64, i64)>, limit: usize) -> Result<SessionPage> {
        let (updated_ms, key) = after.unwrap_or((i64::MAX as u64, i64::MAX));
        let mut sessions: Vec<SessionRow> = self.with("listing sessions of", |db| {
            let mut select = db.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM sessions WHERE head > 0 AND (updated_ms, key) < (?1, ?2) AND (?3 IS NULL OR cwd = ?3) \
                 ORDER BY updated_ms DESC, key DESC LIMIT ?4"
            ))?;
            let cwd = cwd.map(|cwd| cwd.to_string_lossy());
            let rows = select.query_map(params![updated_ms as i64, key, cwd, limit as i64 + 1], session)?;
            rows.collect()
        })?;
        let more = sessions.len() > limit;
        sessions.truncate(limit);
        let next = sessions.last().filter(|_| more).map(|last| (last.updated_ms, last.key));
        Ok(SessionPage { sessions, next })
    }
}
