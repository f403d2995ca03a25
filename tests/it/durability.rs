//! Durability: killed processes, two processes on one data directory, logs without deltas.

mod artifacts;
mod earlier_stores;
mod first_start;
mod full_disk;
mod lists;
mod locked_store;
mod lost_log;
mod newer_events;
mod owners;
mod read_only;
mod store;

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use harness::log::{assert_gap_free, types};
use harness::{Home, Random, random_cases, session_updates, text};

/// Returns the text of each message in a log, from its completion or from its deltas.
fn messages(log: &[Value]) -> HashMap<String, String> {
    let mut messages: HashMap<String, String> = HashMap::new();
    for body in log.iter().map(|event| &event["body"]) {
        let id = || body["messageId"].as_str().unwrap().to_string();
        match body["type"].as_str().unwrap() {
            "message.delta" => {
                let said = messages.entry(id()).or_default();
                assert_eq!(body["offset"], json!(said.len()), "a piece is missing: {body}");
                said.push_str(body["text"].as_str().unwrap());
            }
            "message.completed" => {
                let whole: String = body["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect();
                let pieces = messages.insert(id(), whole.clone()).unwrap_or_default();
                assert!(whole.starts_with(&pieces), "{whole:?} is not what was streamed: {pieces:?}");
            }
            _ => {}
        }
    }
    messages
}

/// Asserts that all shown updates are in the log.
fn assert_kept(shown: &[Value], log: &[Value]) {
    let messages = messages(log);
    let mut said: HashMap<&str, String> = HashMap::new();
    let in_log = |kind: &str, update: &Value| {
        let fits = |body: &Value| body["type"] == kind && body["toolCallId"] == update["toolCallId"];
        assert!(log.iter().any(|event| fits(&event["body"])), "shown, and not in the log: {update}");
    };
    for update in shown {
        match update["sessionUpdate"].as_str().unwrap() {
            "tool_call" => in_log("tool.started", update),
            "tool_call_update" if update["status"] == "completed" => in_log("tool.completed", update),
            "tool_call_update" => in_log("tool.updated", update),
            kind if kind.ends_with("_chunk") => {
                let id = update["messageId"].as_str().unwrap();
                said.entry(id).or_default().push_str(update["content"]["text"].as_str().unwrap());
            }
            _ => {}
        }
    }
    for (id, said) in said {
        let kept = messages.get(id).map_or("", String::as_str);
        assert!(kept.starts_with(&said), "shown {said:?}, kept {kept:?}");
    }
}

/// Kills an agent after `moment`, during a turn with streams and a running command, and reopens its
/// session. Returns the state at the kill.
async fn killed(home: &Home, model: &str, next: &str, moment: Duration) -> &'static str {
    let mut agent = home.start(&["--model", model, "--mode", "auto"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(home).await;
    agent.prompt(&session, "go").await;
    // Reads until `moment`; the turn does not end before.
    let reading = async { while agent.frame().await.is_some() {} };
    tokio::time::timeout(moment, reading).await.expect_err("it ended by itself");
    let shown = session_updates(&agent.kill().await, &session);

    let log = home.log(&session).await;
    assert_gap_free(&log);
    assert_kept(&shown, &log);
    let began = types(&log).contains(&"turn.started");
    let running = log.iter().filter(|event| event["body"]["type"] == "tool.started").count()
        - log.iter().filter(|event| event["body"]["type"] == "tool.completed").count();

    let mut agent = home.start(&["--model", next, "--mode", "auto"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.load(home, &session).await;
    let (stop, updates) = agent.turn(&session, "go on").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "went on"));
    agent.finish().await;
    let after = home.log(&session).await;
    assert_gap_free(&after);
    assert_eq!(after[..log.len()], log, "what was written has changed");
    let closed: Vec<&Value> =
        after[log.len()..].iter().take_while(|event| event["body"]["type"] != "turn.started").map(|event| &event["body"]).collect();
    assert_eq!(closed.last().map(|body| &body["type"]), began.then_some(&json!("turn.interrupted")), "{closed:?}");
    let failed =
        closed.iter().filter(|body| body["type"] == "tool.completed" && body["status"] == "failed" && body["effect"] == "unknown");
    assert_eq!(failed.count(), running, "{closed:?}");
    let count = |kind: &str| types(&after).iter().filter(|one| **one == kind).count();
    assert_eq!(count("step.started"), count("step.completed"), "{closed:?}");
    match (began, running) {
        (false, _) => "before the turn",
        (true, 0) => "while it streamed",
        (true, _) => "with a tool running",
    }
}

/// A quarter of the kills, of which four tests run in parallel.
async fn kill_at_random_moments() {
    let home = Home::new();
    let busy = json!([
        {"thinking": "I think äöü.", "text": "Streaming some text, é after é, for a while.", "chunk_chars": 2, "delay_ms": 1, "tool_calls": [
            {"name": "bash", "input": {"command": "echo out; sleep 60"}},
            {"name": "write", "input": {"file_path": "a.txt", "content": "x"}},
            {"name": "bash", "input": {"command": "sleep 60"}},
        ]},
    ]);
    let (model, next) = (home.script(busy), home.script(json!([{"expect": "go", "text": "went on"}])));
    let mut random = Random::new();
    let mut moments: HashMap<&str, usize> = HashMap::new();
    for _ in 0..random_cases("kills", 25) {
        let moment = Duration::from_micros(random.below(90_000));
        *moments.entry(killed(&home, &model, &next, moment).await).or_default() += 1;
    }
    eprintln!("{moments:?}");
}

#[tokio::test]
async fn session_survives_kill_at_any_moment_1() {
    kill_at_random_moments().await;
}

#[tokio::test]
async fn session_survives_kill_at_any_moment_2() {
    kill_at_random_moments().await;
}

#[tokio::test]
async fn session_survives_kill_at_any_moment_3() {
    kill_at_random_moments().await;
}

#[tokio::test]
async fn session_survives_kill_at_any_moment_4() {
    kill_at_random_moments().await;
}
