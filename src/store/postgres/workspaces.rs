//! Reads and changes the table of workspaces.

use serde_json::{Map, Value};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::events::text;
use super::failure::Columns;
use crate::error::Result;
use crate::store::rows::{WorkspaceRow, WorkspaceState};

/// Begins a SELECT statement with the columns that [`workspace`] reads.
macro_rules! select_workspaces {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, repository, path, branch, made_branch, base, base_commit, state, created_ms, metadata FROM workspaces ",
            $rest
        )
    };
}

fn workspace(row: &Row) -> Result<WorkspaceRow> {
    Ok(WorkspaceRow {
        id: row.column(0)?,
        name: row.column(1)?,
        repository: row.column::<String>(2)?.into(),
        path: row.column::<String>(3)?.into(),
        branch: row.column(4)?,
        made_branch: row.column(5)?,
        base: row.column(6)?,
        base_commit: row.column(7)?,
        state: WorkspaceState::from_id(row.column(8)?),
        created_ms: row.column::<i64>(9)? as u64,
        metadata: serde_json::from_str(row.column(10)?).unwrap_or_default(),
    })
}

impl PostgresStore {
    /// Adds a workspace without metadata. Returns false if its id exists.
    pub(in crate::store) async fn insert_workspace(&self, row: &WorkspaceRow) -> Result<bool> {
        let sql = "INSERT INTO workspaces (id, name, repository, path, branch, made_branch, base, base_commit, state, created_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING RETURNING 1";
        let (repository, path) = (row.repository.to_string_lossy(), row.path.to_string_lossy());
        let params: [&(dyn ToSql + Sync); 10] = [
            &row.id,
            &row.name,
            &repository,
            &path,
            &row.branch,
            &row.made_branch,
            &row.base,
            &row.base_commit,
            &row.state.id(),
            &(row.created_ms as i64),
        ];
        Ok(self.row("adding a workspace to", sql, &params).await?.is_some())
    }

    /// Lists up to `limit` workspaces, the newest first.
    pub(in crate::store) async fn workspaces(&self, limit: usize) -> Result<Vec<WorkspaceRow>> {
        let sql = select_workspaces!("ORDER BY created_ms DESC, id LIMIT $1");
        self.rows("listing workspaces of", sql, &[&(limit as i64)]).await?.iter().map(workspace).collect()
    }

    pub(in crate::store) async fn workspace(&self, id: &str) -> Result<Option<WorkspaceRow>> {
        let sql = select_workspaces!("WHERE id = $1");
        self.row("looking up a workspace in", sql, &[&text(id)]).await?.as_ref().map(workspace).transpose()
    }

    pub(in crate::store) async fn set_workspace_state(&self, id: &str, state: WorkspaceState) -> Result<()> {
        let sql = "UPDATE workspaces SET state = $2 WHERE id = $1";
        self.rows("updating a workspace in", sql, &[&text(id), &state.id()]).await.map(drop)
    }

    /// Merges `change` into the metadata of a workspace, unless another process changes them in the
    /// meantime: then the merge is repeated.
    pub(in crate::store) async fn change_workspace_metadata(
        &self,
        id: &str,
        change: &Map<String, Value>,
        limit: usize,
    ) -> Result<Option<Map<String, Value>>> {
        let doing = "updating a workspace in";
        let id = text(id);
        loop {
            let Some(row) = self.row(doing, "SELECT metadata FROM workspaces WHERE id = $1", &[&id]).await? else {
                return Ok(None);
            };
            let before: String = row.column(0)?;
            let mut merged = Value::Object(serde_json::from_str(&before).unwrap_or_default());
            merge(&mut merged, change);
            let after = merged.to_string();
            if after.len() > limit {
                return Ok(None);
            }
            let sql = "UPDATE workspaces SET metadata = $2 WHERE id = $1 AND metadata = $3 RETURNING 1";
            if self.row(doing, sql, &[&id, &after, &before]).await?.is_some() {
                return Ok(if let Value::Object(merged) = merged { Some(merged) } else { None });
            }
        }
    }

    pub(in crate::store) async fn remove_workspace(&self, id: &str) -> Result<()> {
        self.rows("removing a workspace from", "DELETE FROM workspaces WHERE id = $1", &[&text(id)]).await.map(drop)
    }
}

/// Merges `change` into `target` (RFC 7396).
fn merge(target: &mut Value, change: &Map<String, Value>) {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, value) in change {
        match value {
            Value::Null => {
                target.shift_remove(name);
            }
            Value::Object(change) => merge(target.entry(name.as_str()).or_insert(Value::Null), change),
            value => {
                target.insert(name.clone(), value.clone());
            }
        }
    }
}
