//! Idempotency keys: for each request that carried a key, a digest of the request and the recorded
//! response.

use rusqlite::{OptionalExtension, params};

use super::database::SqliteStore;
use crate::error::Result;
use crate::store::rows::{IDEMPOTENCY_KEPT, IDEMPOTENCY_KEYS_MAX, IdempotencyRecord};

impl SqliteStore {
    /// Claims a key. Returns `None` if the key was unused, otherwise the key's record. Also deletes
    /// expired keys, and the oldest keys in excess of [`IDEMPOTENCY_KEYS_MAX`].
    pub(in crate::store) fn claim_key(
        &self,
        principal: &str,
        key: &str,
        asked: &[u8],
        at_ms: u64,
    ) -> Result<Option<IdempotencyRecord>> {
        let oldest = at_ms.saturating_sub(IDEMPOTENCY_KEPT.as_millis() as u64);
        self.run("claiming a key in", |db| {
            db.prepare_cached(
                "DELETE FROM answers WHERE at_ms < ?1 OR at_ms < (SELECT at_ms FROM answers ORDER BY at_ms DESC LIMIT 1 OFFSET ?2)",
            )?
            .execute(params![oldest as i64, IDEMPOTENCY_KEYS_MAX as i64])?;
            let mut insert = db.prepare_cached(
                "INSERT INTO answers (principal, key, asked, at_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?;
            if insert.execute(params![principal, key, asked, at_ms as i64])? > 0 {
                return Ok(None);
            }
            let mut select = db.prepare_cached("SELECT asked, answer FROM answers WHERE principal = ?1 AND key = ?2")?;
            select.query_row([principal, key], |row| Ok(IdempotencyRecord { asked: row.get(0)?, text: row.get(1)? })).optional()
        })
    }

    /// Stores the response for a claimed key, or deletes the key without a response.
    pub(in crate::store) fn finish_key(&self, principal: &str, key: &str, response: Option<&str>) -> Result<()> {
        self.run("storing a response in", |db| {
            match response {
                Some(text) => db
                    .prepare_cached("UPDATE answers SET answer = ?3 WHERE principal = ?1 AND key = ?2")?
                    .execute([principal, key, text]),
                None => db.prepare_cached("DELETE FROM answers WHERE principal = ?1 AND key = ?2")?.execute([principal, key]),
            }
            .map(drop)
        })
    }
}
