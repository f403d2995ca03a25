//! The extension methods (`_nuncio/…`) over ACP; the other interfaces serve the same methods.

mod composer;
mod files;
mod fork;
mod jobs;
mod message;
mod permission;
mod settings;
mod status;
mod step;
mod tool_call;
mod view;

use serde_json::{Value, json};

use harness::{Agent, Home, literal};

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
    let row = home.sql("SELECT key, head FROM sessions").remove(0);
    let (key, head) = row.split_once('|').unwrap();
    let head: i64 = head.parse().unwrap();
    let row = |number: i64| {
        let message = number % every == 0;
        let body = if message {
            json!({"type": "message.completed", "messageId": format!("msg_{number}"), "role": "assistant", "parts": []})
        } else {
            json!({"type": "message.delta", "messageId": "msg_x", "role": "assistant", "offset": 0, "text": "x".repeat(100)})
        };
        format!("({key}, {}, 1, '{}', {})", head + number, u8::from(!message), literal(&body.to_string()))
    };
    let mut statements = "BEGIN;".to_owned();
    for first in (1..=count).step_by(1000) {
        let rows: Vec<String> = (first..=count.min(first + 999)).map(row).collect();
        statements += &format!("INSERT INTO events (session, seq, at_ms, delta, body) VALUES {};", rows.join(","));
    }
    home.sql(&format!("{statements} UPDATE sessions SET head = {}; COMMIT", head + count));
}
