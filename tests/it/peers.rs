//! Every session from every process: a call on a session that another process owns has the same
//! result and the same events as a call in the owner.

mod access_control;
mod cases;
mod chaos;
mod commands;
mod compare;
mod hostile;
mod interrupted_calls;
mod lost_generation;
mod matrix;
mod order;
mod owner_kill;
mod peer;
mod permissions;
mod status;
mod unsaved_buffers;

use std::path::PathBuf;

use serde_json::{Value, json};

use harness::{Agent, Home};

/// A step whose command creates the file `started` and waits for [`release`]. It needs the mode
/// `auto`.
fn waits() -> Value {
    json!({"tool_calls": [{"name": "bash", "input": {"command": "touch started; cat pipe", "timeout_ms": 60_000}}]})
}

fn says(text: &str) -> Value {
    json!({"text": text, "chunk_chars": 1000})
}

/// An answer that takes minutes, in small pieces.
fn endless() -> Value {
    json!({"text": "word ".repeat(5000), "chunk_chars": 5, "delay_ms": 20})
}

/// A home whose work directory has the named pipe that [`waits`] reads.
fn home() -> Home {
    let home = Home::new();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, home.work().join("pipe"), mode).unwrap();
    home
}

/// Ends the command of [`waits`]. Waits until the command reads.
async fn release(home: &Home) {
    let pipe = home.work().join("pipe");
    let written = tokio::task::spawn_blocking(move || std::fs::write(pipe, "released\n"));
    harness::bounded("a reader of the pipe", written).await.unwrap().unwrap();
}

/// Starts `nuncio acp` and initializes it. Permission requests stay open.
async fn editor(home: &Home, model: &str, flags: &[&str]) -> Agent {
    let mut agent = home.start(&[&["--model", model], flags].concat()).await;
    agent.otherwise = harness::Reply::Never;
    agent.may_cross = true;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

fn message(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "parts": [{"type": "text", "text": text}]})
}

fn kind(event: &Value) -> &str {
    event["body"]["type"].as_str().unwrap()
}

/// The types of events, in order.
fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(kind).collect()
}

fn ends_turn(event: &Value) -> bool {
    ["turn.completed", "turn.failed", "turn.cancelled", "turn.interrupted"].contains(&kind(event))
}

/// Asserts that sequence numbers have no gap and that each turn has exactly one end.
fn assert_complete(log: &[Value]) {
    let seqs: Vec<u64> = log.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let turns = |fits: &dyn Fn(&Value) -> bool| -> Vec<String> {
        let mut turns: Vec<String> = log.iter().filter(|event| fits(event)).map(|event| event["turnId"].to_string()).collect();
        turns.sort();
        turns
    };
    assert_eq!(turns(&|event| kind(event) == "turn.started"), turns(&ends_turn), "turns without exactly one end");
}

/// The local sockets of a home.
fn sockets(home: &Home) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home.data().join("run")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|extension| extension == "sock")).collect()
}
