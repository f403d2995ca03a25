//! The end of a server: turns get their time, streams end properly, everybody who waits gets an answer.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Connection, Events, Home, Server, bounded};

/// A turn that ends when the file `go` is there, and has a command running until then.
fn waits(home: &Home) -> Value {
    rustix::fs::mknodat(rustix::fs::CWD, home.work().join("go"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let command = json!({"name": "bash", "input": {"command": "echo ready; read line < go; echo $line"}});
    json!([{"tool_calls": [command]}, {"text": "done"}])
}

/// A server whose one turn runs, with whoever waits for it, and a stream of everything.
async fn busy(home: &Home, drain_s: u64) -> (Server, String, Connection, Events) {
    home.config(&format!("[http]\ndrain_s = {drain_s}\n"));
    let server = home.serve_script(waits(home), &["--mode", "auto"]).await;
    let session = server.new_session(home).await;
    let mut events = server.follow(&session).events().await;
    let waiting = server.prompt(&session, "go").open().await;
    while !events.until("tool.updated").await.last().unwrap().event["body"].to_string().contains("ready") {}
    (server, session, waiting, events)
}

/// In time: the turn is completed, and nothing new begins meanwhile.
async fn in_time(signal: Signal) {
    let home = Home::new();
    let (server, session, mut waiting, mut events) = busy(&home, 60).await;
    let mut all = server.get("/v1/events").events().await;
    all.history().await;
    let other = server.new_session(&home).await;
    // Said before the signal, and on a connection that is there already: nobody new is let in behind it.
    let mut late = Connection::open(server.address).await.unwrap();
    server.get("/health").over(&mut late).await;
    server.signal(signal);
    // The listener is closed when the end has begun.
    while server.get("/health").try_send().await.is_ok() {}
    let answer = server.prompt(&other, "more").over(&mut late).await;
    assert_eq!(answer.error(), (503, "overloaded".into()));
    assert_eq!(answer.header("retry-after"), Some("1"));
    tokio::fs::write(home.work().join("go"), "went\n").await.unwrap();
    let answer = waiting.answer("POST").await;
    assert_eq!((answer.status, answer.json()), (200, json!({"stopReason": "end_turn"})));
    for events in [&mut events, &mut all] {
        let rest = events.rest().await;
        assert!(rest.iter().any(|shown| shown.kind() == "turn.completed"), "{rest:?}");
    }
    server.end().await;
    assert_eq!(home.log(&session).await.last().unwrap()["body"]["type"], "turn.completed");
}

#[tokio::test]
async fn a_turn_gets_its_time_after_sigterm() {
    in_time(Signal::TERM).await;
}

#[tokio::test]
async fn a_turn_gets_its_time_after_sigint() {
    in_time(Signal::INT).await;
}

/// Without time: the turn is cancelled, and its command with it.
#[tokio::test]
async fn without_time_a_turn_is_cancelled() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = Home::new();
        let (server, session, mut waiting, mut events) = busy(&home, 0).await;
        let mut all = server.get("/v1/events").events().await;
        all.history().await;
        server.signal(signal);
        let answer = waiting.answer("POST").await;
        assert_eq!((answer.status, answer.json()), (200, json!({"stopReason": "cancelled"})));
        for events in [&mut events, &mut all] {
            assert_eq!(events.rest().await.last().unwrap().kind(), "turn.cancelled");
        }
        server.end().await;
        assert_eq!(home.log(&session).await.last().unwrap()["body"]["type"], "turn.cancelled");
    }
}

/// Many turns and many readers, some of which read nothing of what is too much for every buffer: the end comes all the same.
#[tokio::test]
async fn nobody_can_hold_it_back() {
    let home = Home::new();
    home.config("[http]\ndrain_s = 0\n");
    let much = json!({"text": "a long text, ".repeat(60_000), "chunk_chars": 10_000});
    let slow = json!({"text": "slow ".repeat(100_000), "chunk_chars": 1, "delay_ms": 5});
    let server = home.serve_script(json!([much, slow]), &[]).await;
    let (mut sleepers, mut readers) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let session = server.new_session(&home).await;
        server.prompt(&session, "much").expect(200).await;
        sleepers.push(server.follow(&session).open_narrow().await);
        sleepers.push(server.get("/v1/events").open_narrow().await);
        let mut reader = server.follow(&session).events().await;
        reader.until("turn.completed").await;
        sleepers.push(server.prompt(&session, "slow").header("accept", "text/event-stream").open_narrow().await);
        reader.until("message.delta").await;
        readers.push(tokio::spawn(async move { reader.rest().await }));
    }
    sleepers.push(Connection::open(server.address).await.unwrap());
    server.signal(Signal::TERM);
    server.end().await;
    for reader in readers {
        assert_eq!(bounded("a reader", reader).await.unwrap().last().unwrap().kind(), "turn.cancelled");
    }
    drop(sleepers);
}
