//! Idempotency-Key (IETF draft-ietf-httpapi-idempotency-key-header): a repeated request with the
//! same key receives the stored response and is not executed again, even after a restart.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use axum::extract::Request;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest as sha256};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::auth::token;
use crate::api::{App, Client, TurnStart};
use crate::error::{Error, Kind, Result};
use crate::session::clock::now_ms;
use crate::store::IdempotencyRecord;

const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum StoredResult {
    Json { status: u16, body: Value },
    Turn(TurnStart),
}

/// An idempotency key, scoped to a token: a new token with the name of a revoked token has its own
/// keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct IdempotencyKey {
    principal: String,
    key: String,
}

/// Keys of running requests. A repeated request waits for the first one.
#[derive(Default)]
pub(crate) struct Idempotency {
    running: Mutex<HashMap<IdempotencyKey, Weak<tokio::sync::Mutex<()>>>>,
}

/// Returns the key of a POST request. `None` for other HTTP methods, or if the header is missing.
pub(crate) fn key(request: &Request, client: &Client) -> Result<Option<IdempotencyKey>> {
    let Some(given) = request.headers().get("idempotency-key").filter(|_| request.method() == "POST") else { return Ok(None) };
    let key = given.to_str().unwrap_or("");
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_CHARS_MAX || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        let most = IDEMPOTENCY_KEY_CHARS_MAX;
        return Err(Error::invalid_params(format!("Idempotency-Key: must be 1 to {most} visible ASCII characters")));
    }
    let token = sha256(&SHA256, token(request.headers()).unwrap_or("").as_bytes());
    let token: String = token.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(IdempotencyKey { principal: format!("{} {token}", client.principal), key: key.into() }))
}

impl Idempotency {
    /// Runs the work and stores its result, or returns the stored result of the first request.
    /// Failures are not stored, so a request with the same key can be retried.
    pub(crate) async fn outcome(
        &self,
        app: &App,
        key: IdempotencyKey,
        method: &str,
        params: &Value,
        work: impl Future<Output = Result<StoredResult>>,
    ) -> Result<StoredResult> {
        let request = sha256(&SHA256, format!("{method} {params}").as_bytes());
        let turn = self.turn(&key);
        let _turn = turn.lock().await;
        let store = app.sessions().await?.store();
        if let Some(answer) = store.claim_key(&key.principal, &key.key, request.as_ref(), now_ms()).await? {
            return repeated(answer, request.as_ref());
        }
        let outcome = work.await;
        match &outcome {
            Ok(outcome) => {
                let text = serde_json::to_string(outcome).map_err(|error| Error::internal(error.to_string()))?;
                store.finish_key(&key.principal, &key.key, Some(&text)).await?;
            }
            Err(_) => store.finish_key(&key.principal, &key.key, None).await?,
        }
        outcome
    }

    fn turn(&self, key: &IdempotencyKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut running = self.running.lock();
        if let Some(turn) = running.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        running.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        running.insert(key.clone(), Arc::downgrade(&turn));
        turn
    }
}

fn repeated(answer: IdempotencyRecord, request: &[u8]) -> Result<StoredResult> {
    if answer.asked != request {
        return Err(Error::invalid_params("Idempotency-Key: already used for a different request"));
    }
    let Some(text) = answer.text else {
        return Err(Error::new(Kind::Cancelled, "the first request with this key was interrupted")
            .hint("the session's events show its outcome; to retry, use another key"));
    };
    serde_json::from_str(&text).map_err(|error| Error::internal(format!("reading a stored response: {error}")))
}
