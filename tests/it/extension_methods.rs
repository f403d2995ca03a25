//! The extension methods (`_nuncio/…`) over ACP; the other interfaces serve the same methods.

mod composer;
mod files;
mod fork;
mod message;
mod permission;
mod status;
mod step;
mod tool_call;
mod view;

use serde_json::{Value, json};

use crate::harness::{Agent, Home};

/// Asserts that each call fails with its error code and a message with its word.
async fn refused(agent: &mut Agent, cases: &[(&str, Value, i64, &str)]) {
    for (method, params, code, word) in cases {
        let error = agent.request(method, params.clone()).await.expect_err(&format!("{method} {params}"));
        let message = error["message"].as_str().unwrap();
        assert!(error["code"] == *code && message.contains(word), "{method} {params}: {error} does not say {word:?}");
    }
}

/// Writes `count` events directly into the database. Every `every`-th event is a completed message,
/// the other events are deltas.
pub fn fill(home: &Home, count: i64, every: i64) {
    let mut db = rusqlite::Connection::open(home.data().join("nuncio.db")).unwrap();
    let all = db.transaction().unwrap();
    let (key, head): (i64, i64) =
        all.query_row("SELECT key, head FROM sessions", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    {
        let sql = "INSERT INTO events (session, seq, at_ms, delta, body) VALUES (?1, ?2, 1, ?3, ?4)";
        let mut insert = all.prepare(sql).unwrap();
        for number in 1..=count {
            let message = number % every == 0;
            let body = if message {
                json!({"type": "message.completed", "messageId": format!("msg_{number}"), "role": "assistant", "parts": []})
            } else {
                json!({"type": "message.delta", "messageId": "msg_x", "role": "assistant", "offset": 0, "text": "x".repeat(100)})
            };
            insert.execute(rusqlite::params![key, head + number, !message, body.to_string()]).unwrap();
        }
    }
    all.execute("UPDATE sessions SET head = ?1", [head + count]).unwrap();
    all.commit().unwrap();
}
