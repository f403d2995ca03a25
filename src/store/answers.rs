//! Rows of requests that came with a key of their own, and of what was answered.

use rusqlite::{OptionalExtension, params};

use super::Store;
use crate::error::Result;
use crate::limits;

/// What is known of a key.
pub struct Answer {
    /// A digest of what was asked under it.
    pub asked: Vec<u8>,
    /// None: it was never answered.
    pub text: Option<String>,
}

impl Store {
    /// Takes a key that nobody used; else tells what is known of it. Forgets the old ones.
    pub fn claim_key(&self, principal: &str, key: &str, asked: &[u8], at_ms: u64) -> Result<Option<Answer>> {
        let oldest = at_ms.saturating_sub(limits::IDEMPOTENCY_KEPT.as_millis() as u64);
        self.with("claiming a key in", |db| {
            db.prepare_cached(
                "DELETE FROM answers WHERE at_ms < ?1 OR at_ms < (SELECT at_ms FROM answers ORDER BY at_ms DESC LIMIT 1 OFFSET ?2)",
            )?
            .execute(params![oldest as i64, limits::IDEMPOTENCY_KEYS_MAX as i64])?;
            let mut insert = db.prepare_cached(
                "INSERT INTO answers (principal, key, asked, at_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?;
            if insert.execute(params![principal, key, asked, at_ms as i64])? > 0 {
                return Ok(None);
            }
            let mut select = db.prepare_cached("SELECT asked, answer FROM answers WHERE principal = ?1 AND key = ?2")?;
            select.query_row([principal, key], |row| Ok(Answer { asked: row.get(0)?, text: row.get(1)? })).optional()
        })
    }

    pub fn keep_answer(&self, principal: &str, key: &str, text: &str) -> Result<()> {
        self.with("keeping an answer in", |db| {
            let mut update = db.prepare_cached("UPDATE answers SET answer = ?3 WHERE principal = ?1 AND key = ?2")?;
            update.execute([principal, key, text]).map(drop)
        })
    }

    pub fn forget_key(&self, principal: &str, key: &str) -> Result<()> {
        self.with("forgetting a key in", |db| {
            db.prepare_cached("DELETE FROM answers WHERE principal = ?1 AND key = ?2")?.execute([principal, key]).map(drop)
        })
    }
}
