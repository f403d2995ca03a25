//! Reads and writes the table of session files. The text of `sessions.id` selects the session.

use super::PostgresStore;
use super::events::text;
use super::failure::Columns;
use crate::error::Result;
use crate::id::SessionId;
use crate::store::rows::StoredFile;

impl PostgresStore {
    pub(in crate::store) async fn files(&self, session: &SessionId) -> Result<Vec<StoredFile>> {
        let sql =
            "SELECT f.path, octet_length(f.content)::bigint FROM files f JOIN sessions s ON s.key = f.session WHERE s.id = $1";
        let rows = self.rows("listing files of", sql, &[&text(session.as_str())]).await?;
        rows.iter().map(|row| Ok(StoredFile { path: row.column(0)?, size: row.column::<i64>(1)? as u64 })).collect()
    }

    pub(in crate::store) async fn file(&self, session: &SessionId, path: &str) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT f.content FROM files f JOIN sessions s ON s.key = f.session WHERE s.id = $1 AND f.path = $2";
        let row = self.row("reading a file of", sql, &[&text(session.as_str()), &text(path)]).await?;
        row.map(|row| row.column(0)).transpose()
    }

    /// Writes a file of a session that exists. A file with this path is kept unless `replace` is
    /// set. Returns false if it was kept, or if the session does not exist.
    pub(in crate::store) async fn put_file(&self, session: &SessionId, path: &str, content: &[u8], replace: bool) -> Result<bool> {
        let sql = "INSERT INTO files (session, path, content) SELECT key, $2, $3 FROM sessions WHERE id = $1 AND head > 0 \
                   ON CONFLICT (session, path) DO UPDATE SET content = excluded.content WHERE $4 RETURNING 1";
        let (id, path) = (text(session.as_str()), text(path));
        Ok(self.row("writing a file to", sql, &[&id, &path, &content, &replace]).await?.is_some())
    }

    pub(in crate::store) async fn remove_files(&self, session: &SessionId, paths: &[String]) -> Result<()> {
        let sql = "DELETE FROM files WHERE session = (SELECT key FROM sessions WHERE id = $1) AND path = ANY($2)";
        self.rows("removing files from", sql, &[&text(session.as_str()), &paths]).await.map(drop)
    }

    /// Removes the files in `directory` of all sessions without events since `before_ms`.
    pub(in crate::store) async fn remove_old_files(&self, directory: &str, before_ms: u64) -> Result<()> {
        let sql = "DELETE FROM files f USING sessions s WHERE s.key = f.session AND s.updated_ms < $1 AND starts_with(f.path, $2)";
        self.rows("removing old files from", sql, &[&(before_ms as i64), &format!("{directory}/")]).await.map(drop)
    }
}
