//! A store locked by another process, for seconds and for longer than the retries of a write.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fcntl_lock};
use serde_json::{Value, json};

use harness::log::{assert_gap_free, types};
use harness::{Home, notices, text};

/// A read lock on all of `nuncio.db-shm`. Any process of the user can take the lock, and it blocks
/// all writers.
struct ReadLock(File);

async fn lock(home: &Home) -> ReadLock {
    let path = home.data().join("nuncio.db-shm");
    tokio::task::spawn_blocking(move || {
        let file = File::open(path).unwrap();
        fcntl_lock(&file, FlockOperation::LockShared).unwrap();
        ReadLock(file)
    })
    .await
    .unwrap()
}

impl ReadLock {
    fn release(self) {
        fcntl_lock(&self.0, FlockOperation::Unlock).unwrap();
    }
}

/// A step that streams for three seconds.
fn talking() -> Value {
    json!({"text": "said while it was locked ".repeat(12), "chunk_chars": 2, "delay_ms": 20})
}

#[tokio::test]
async fn store_locked_for_seconds_loses_nothing() {
    needs_sqlite!("locks nuncio.db-shm");
    let home = Home::new();
    let model = home.script(json!([talking(), {"text": "and on"}]));
    let mut agent = home.start(&["--model", &model]).await;
    let capabilities = json!({ "session": { "notices": {} } });
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = agent.new_session(&home).await;
    let id = agent.prompt(&session, "go").await;
    agent.until_update("agent_message_chunk").await;
    let locked = lock(&home).await;
    // Longer than the wait of one write.
    let ended = agent.answer(&id);
    tokio::time::timeout(harness::limits::STORE_BUSY + Duration::from_secs(2), ended).await.expect_err("it waits for the store");
    locked.release();
    assert_eq!(agent.answer(&id).await.expect("nothing was lost")["stopReason"], "end_turn");
    let shown = agent.updates(&session);
    assert_eq!(text(&shown, "agent_message_chunk"), talking()["text"].as_str().unwrap());
    let (stop, updates) = agent.turn(&session, "and?").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "and on"));
    let notices = notices(&agent.updates(&session)).join("\n");
    assert!(notices.contains("locked"), "{notices}");
    agent.finish().await;
    assert_gap_free(&home.log(&session).await);
}

#[tokio::test]
async fn turn_fails_if_store_stays_locked_and_session_recovers() {
    needs_sqlite!("locks nuncio.db-shm");
    let home = Home::new();
    let long = json!({"text": "word ".repeat(10_000), "chunk_chars": 1, "delay_ms": 20});
    let model = home.script(json!([long, {"text": "back again"}]));
    let (mut agent, bridge) = home.start_with_bridge(&["--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(&home).await;
    let other = agent.new_session(&home).await;
    let mut events = bridge.follow(&session).events().await;
    let id = agent.prompt(&session, "go").await;
    agent.until_update("agent_message_chunk").await;
    let asked = Instant::now();
    let locked = lock(&home).await;
    // The model streams for minutes: the turn ends because its log cannot be written.
    let error = agent.answer(&id).await.unwrap_err();
    assert_eq!(error["data"]["code"], "overloaded", "{error}");
    assert!(asked.elapsed() >= harness::limits::STORE_LOCKED_MAX, "too soon: {error}");
    locked.release();
    // Open events are closed without a request; then every session is usable.
    let seen = events.until("turn.failed").await;
    assert_eq!(seen.last().unwrap().event["body"]["code"], "overloaded");
    let (stop, updates) = agent.turn(&session, "and?").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "back again"));
    let id = agent.prompt(&other, "and you?").await;
    agent.until_update("agent_message_chunk").await;
    agent.notify("session/cancel", json!({"sessionId": other})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    drop(events);
    agent.finish().await;
    let log = home.log(&session).await;
    assert_gap_free(&log);
    let ends: Vec<&str> = types(&log).into_iter().filter(|kind| kind.starts_with("turn.") && *kind != "turn.started").collect();
    assert_eq!(ends, ["turn.failed", "turn.completed"]);
}
