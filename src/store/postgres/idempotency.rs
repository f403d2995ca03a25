//! Idempotency keys.

use super::PostgresStore;
use super::events::text;
use super::failure::Columns;
use crate::error::Result;
use crate::store::rows::{IDEMPOTENCY_KEPT, IDEMPOTENCY_KEYS_MAX, IdempotencyRecord};

impl PostgresStore {
    /// Claims a key. Also deletes expired keys, and the oldest keys in excess of the limit.
    pub(in crate::store) async fn claim_key(
        &self,
        principal: &str,
        key: &str,
        asked: &[u8],
        at_ms: u64,
    ) -> Result<Option<IdempotencyRecord>> {
        let doing = "claiming a key in";
        let oldest = at_ms.saturating_sub(IDEMPOTENCY_KEPT.as_millis() as u64) as i64;
        let expire =
            "DELETE FROM answers WHERE at_ms < $1 OR at_ms < (SELECT at_ms FROM answers ORDER BY at_ms DESC LIMIT 1 OFFSET $2)";
        self.rows(doing, expire, &[&oldest, &(IDEMPOTENCY_KEYS_MAX as i64)]).await?;
        let (principal, key) = (text(principal), text(key));
        let insert =
            "INSERT INTO answers (principal, key, asked, at_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING 1";
        if self.row(doing, insert, &[&principal, &key, &asked, &(at_ms as i64)]).await?.is_some() {
            return Ok(None);
        }
        let row =
            self.row(doing, "SELECT asked, answer FROM answers WHERE principal = $1 AND key = $2", &[&principal, &key]).await?;
        row.map(|row| Ok(IdempotencyRecord { asked: row.column(0)?, text: row.column(1)? })).transpose()
    }

    /// Stores the response for a claimed key, or deletes the key without a response.
    pub(in crate::store) async fn finish_key(&self, principal: &str, key: &str, response: Option<&str>) -> Result<()> {
        let doing = "storing a response in";
        let (principal, key) = (text(principal), text(key));
        match response {
            Some(response) => {
                let sql = "UPDATE answers SET answer = $3 WHERE principal = $1 AND key = $2";
                self.rows(doing, sql, &[&principal, &key, &response]).await
            }
            None => self.rows(doing, "DELETE FROM answers WHERE principal = $1 AND key = $2", &[&principal, &key]).await,
        }
        .map(drop)
    }
}
