//! Reads and changes the table of workspaces.

use std::path::PathBuf;

use rusqlite::{OptionalExtension, Row, params};
use serde_json::{Map, Value};

use super::database::SqliteStore;
use crate::error::Result;
use crate::store::rows::{WorkspaceRow, WorkspaceState};

const INSERTED: &str = "id, name, repository, path, branch, made_branch, base, base_commit, state, created_ms";
const SELECTED: &str = "id, name, repository, path, branch, made_branch, base, base_commit, state, created_ms, metadata";

fn workspace(row: &Row<'_>) -> rusqlite::Result<WorkspaceRow> {
    let state: String = row.get(8)?;
    let path = |index| row.get::<_, String>(index).map(PathBuf::from);
    Ok(WorkspaceRow {
        id: row.get(0)?,
        name: row.get(1)?,
        repository: path(2)?,
        path: path(3)?,
        branch: row.get(4)?,
        made_branch: row.get(5)?,
        base: row.get(6)?,
        base_commit: row.get(7)?,
        state: WorkspaceState::from_id(&state),
        created_ms: row.get::<_, i64>(9)? as u64,
        metadata: object(&row.get::<_, String>(10)?),
    })
}

/// Parses an object that the store contains as text. Invalid text becomes an empty object.
fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

impl SqliteStore {
    /// Adds a workspace without metadata. Returns false if its id exists.
    pub(in crate::store) fn insert_workspace(&self, row: &WorkspaceRow) -> Result<bool> {
        self.run("adding a workspace to", |db| {
            let mut insert = db.prepare_cached(&format!(
                "INSERT INTO workspaces ({INSERTED}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING"
            ))?;
            let (repository, path) = (row.repository.to_string_lossy(), row.path.to_string_lossy());
            let (state, created_ms) = (row.state.id(), row.created_ms as i64);
            let values = params![
                row.id,
                row.name,
                repository,
                path,
                row.branch,
                row.made_branch,
                row.base,
                row.base_commit,
                state,
                created_ms
            ];
            insert.execute(values).map(|inserted| inserted > 0)
        })
    }

    /// Lists up to `limit` workspaces, the newest first.
    pub(in crate::store) fn workspaces(&self, limit: usize) -> Result<Vec<WorkspaceRow>> {
        self.run("listing workspaces of", |db| {
            let sql = format!("SELECT {SELECTED} FROM workspaces ORDER BY created_ms DESC, id LIMIT ?1");
            db.prepare_cached(&sql)?.query_map([limit as i64], workspace)?.collect()
        })
    }

    pub(in crate::store) fn workspace(&self, id: &str) -> Result<Option<WorkspaceRow>> {
        self.run("looking up a workspace in", |db| {
            let mut select = db.prepare_cached(&format!("SELECT {SELECTED} FROM workspaces WHERE id = ?1"))?;
            select.query_row([id], workspace).optional()
        })
    }

    pub(in crate::store) fn set_workspace_state(&self, id: &str, state: WorkspaceState) -> Result<()> {
        self.run("updating a workspace in", |db| {
            db.prepare_cached("UPDATE workspaces SET state = ?2 WHERE id = ?1")?.execute([id, state.id()]).map(drop)
        })
    }

    /// Merges `change` into the metadata of a workspace (RFC 7396: null removes a value). Returns
    /// all metadata. `None` if it would be larger than `limit` bytes, or if there is no workspace
    /// `id`.
    pub(in crate::store) fn change_workspace_metadata(
        &self,
        id: &str,
        change: &Map<String, Value>,
        limit: usize,
    ) -> Result<Option<Map<String, Value>>> {
        let change = Value::Object(change.clone()).to_string();
        self.run("updating a workspace in", |db| {
            // Without a transaction, a failed commit would be no error: the row is returned before.
            let transaction = db.unchecked_transaction()?;
            let update = "UPDATE workspaces SET metadata = json_patch(metadata, ?2)
                          WHERE id = ?1 AND octet_length(json_patch(metadata, ?2)) <= ?3 RETURNING metadata";
            let values = params![id, change, limit as i64];
            let changed = transaction.prepare_cached(update)?.query_row(values, |row| row.get::<_, String>(0)).optional()?;
            transaction.commit()?;
            Ok(changed.map(|text| object(&text)))
        })
    }

    pub(in crate::store) fn remove_workspace(&self, id: &str) -> Result<()> {
        self.run("removing a workspace from", |db| {
            db.prepare_cached("DELETE FROM workspaces WHERE id = ?1")?.execute([id]).map(drop)
        })
    }
}
