//! Shutdown of a server: drain time for turns, end of streams, answers to waiting clients.

use rustix::process::Signal;
use serde_json::{Value, json};

use harness::{Connection, Events, Home, Server, bounded};

/// Steps of a turn that runs a command until a line is written to the FIFO `go`.
fn steps_until_go(home: &Home) -> Value {
    rustix::fs::mknodat(rustix::fs::CWD, home.work().join("go"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let command = json!({"name": "bash", "input": {"command": "echo ready; read line < go; echo $line"}});
    json!([{"tool_calls": [command]}, {"text": "done"}])
}

/// A server with one running turn, the connection that waits for the turn, and a stream of the
/// session.
async fn serve_running_turn(home: &Home, drain_s: u64) -> (Server, String, Connection, Events) {
    home.config(&format!("[http]\ndrain_s = {drain_s}\n"));
    let server = home.serve_script(steps_until_go(home), &["--mode", "auto"]).await;
    let session = server.new_session(home).await;
    let mut events = server.follow(&session).events().await;
    let waiting = server.prompt(&session, "go").open().await;
    while !events.until("tool.updated").await.last().unwrap().event["body"].to_string().contains("ready") {}
    (server, session, waiting, events)
}

/// Asserts that a running turn completes after `signal`, and that no new turn starts.
async fn assert_turn_completes_after(signal: Signal) {
    let home = Home::new();
    let (server, session, mut waiting, mut events) = serve_running_turn(&home, 60).await;
    let mut all = server.get("/v1/events").events().await;
    all.history().await;
    let other = server.new_session(&home).await;
    // This connection is opened before the signal, because the server accepts no connection after
    // the signal.
    let mut late = Connection::open(server.address).await.unwrap();
    server.get("/health").over(&mut late).await;
    assert_eq!(server.get("/ready").without("authorization").over(&mut late).await.json(), json!({"status": "ok"}));
    server.signal(signal);
    // The server closes the listener when the shutdown starts.
    while server.get("/health").try_send().await.is_ok() {}
    let answer = server.prompt(&other, "more").over(&mut late).await;
    assert_eq!(answer.error(), (503, "overloaded".into()));
    assert_eq!(answer.header("retry-after"), Some("1"));
    let ready = server.get("/ready").without("authorization").over(&mut late).await;
    assert_eq!((ready.status, &ready.json()["error"]["details"]["reason"]), (503, &json!("draining")));
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
async fn running_turn_completes_after_sigterm() {
    assert_turn_completes_after(Signal::TERM).await;
}

#[tokio::test]
async fn running_turn_completes_after_sigint() {
    assert_turn_completes_after(Signal::INT).await;
}

/// With `drain_s = 0`, a signal cancels the turn and its command.
#[tokio::test]
async fn shutdown_without_drain_time_cancels_turn() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = Home::new();
        let (server, session, mut waiting, mut events) = serve_running_turn(&home, 0).await;
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

/// The server stops despite many running turns and clients that do not read their data, which
/// exceeds every buffer.
#[tokio::test]
async fn clients_that_do_not_read_do_not_delay_shutdown() {
    let home = Home::new();
    // A compaction would use a step of the script.
    home.config("[http]\ndrain_s = 0\n[context]\ncompact_at = 0\n");
    let words = |word: &str, count: u32| (0..count).map(|number| format!("{word} {number} ")).collect::<String>();
    let much = json!({"text": words("many", 70_000), "chunk_chars": 10_000});
    let slow = json!({"text": words("slow", 50_000), "chunk_chars": 1, "delay_ms": 5});
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
