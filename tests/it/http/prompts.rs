//! Prompts that wait, respond asynchronously or stream, and idempotency keys.

use std::time::Duration;

use serde_json::{Value, json};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use harness::{Ask, Home, Server, StreamEvent};

/// Number of turns started in a session.
async fn turns(home: &Home, session: &str) -> usize {
    home.log(session).await.iter().filter(|event| event["body"]["type"] == "turn.started").count()
}

fn kinds(shown: &[StreamEvent]) -> Vec<&str> {
    let mut kinds: Vec<&str> = shown.iter().map(StreamEvent::kind).collect();
    kinds.dedup();
    kinds
}

fn respond_async(ask: Ask) -> Ask {
    ask.header("prefer", "respond-async")
}

fn as_stream(ask: Ask) -> Ask {
    ask.header("accept", "text/event-stream")
}

async fn started() -> (Home, Server, String) {
    let home = Home::new();
    let text = |text: &str| json!({"text": text, "chunk_chars": 2});
    let server = home.serve_script(json!([text("first"), text("second"), text("third")]), &[]).await;
    let session = server.new_session(&home).await;
    (home, server, session)
}

#[tokio::test]
async fn prompt_may_be_a_text() {
    let (home, server, session) = started().await;
    let path = format!("/v1/sessions/{session}/prompt");
    assert_eq!(server.post(&path, &json!({"prompt": "a\nb"})).expect(200).await, json!({"stopReason": "end_turn"}));
    for refused in [json!(""), json!(" \n"), json!(7), json!({"text": "a"}), json!(["a"]), json!(null)] {
        let answer = server.post(&path, &json!({ "prompt": refused })).send().await;
        assert_eq!(answer.status, 400, "{refused}: {}", answer.body);
    }
    server.stop().await;
    let log = home.log(&session).await;
    let parts: Vec<&Value> =
        log.iter().filter(|event| event["body"]["role"] == "user").map(|event| &event["body"]["parts"]).collect();
    assert_eq!(parts, [&json!([{"type": "text", "text": "a\nb"}])]);
}

#[tokio::test]
async fn prompt_waits_responds_async_or_streams() {
    let (home, server, session) = started().await;
    assert_eq!(server.prompt(&session, "a").expect(200).await, json!({"stopReason": "end_turn"}));

    let answer = respond_async(server.prompt(&session, "b")).send().await;
    assert_eq!((answer.status, answer.header("preference-applied")), (202, Some("respond-async")), "{answer:?}");
    let turn = answer.json()["turnId"].clone();
    assert_eq!(answer.json(), json!({"turnId": turn}));
    let events = server.get(&format!("/v1/sessions/{session}/events?turn={}", turn.as_str().unwrap())).events().await;
    let of_turn = { events }.until("turn.completed").await;

    let mut events = as_stream(server.prompt(&session, "c")).events().await;
    assert_eq!(events.head.header("cache-control"), Some("no-cache"));
    let shown = events.rest().await;
    for (shown, said) in [(&of_turn, "second"), (&shown, "third")] {
        let expected = [
            "turn.started",
            "message.completed",
            "step.started",
            "message.delta",
            "usage.updated",
            "message.completed",
            "step.completed",
            "turn.completed",
        ];
        assert_eq!(kinds(shown), expected);
        let whole = shown.iter().rev().find(|shown| shown.kind() == "message.completed").unwrap();
        assert_eq!(whole.event["body"]["parts"][0]["text"], said);
        assert!(shown.iter().all(|one| one.event["turnId"] == shown[0].event["turnId"]), "{shown:#?}");
    }
    assert_eq!(turns(&home, &session).await, 3);
    server.stop().await;
}

#[tokio::test]
async fn model_error_is_reported_in_every_form_of_prompt() {
    let home = Home::new();
    let server =
        home.serve_script(json!([{"expect": "never said"}, {"expect": "never said"}, {"expect": "never said"}]), &[]).await;
    let session = server.new_session(&home).await;
    let answer = server.prompt(&session, "a").send().await;
    assert_eq!(answer.error(), (502, "model_error".into()));
    let turn = respond_async(server.prompt(&session, "b")).expect(202).await["turnId"].as_str().unwrap().to_string();
    let mut events = server.get(&format!("/v1/sessions/{session}/events?turn={turn}")).events().await;
    assert_eq!(events.until("turn.failed").await.last().unwrap().event["body"]["code"], "model_error");
    let shown = as_stream(server.prompt(&session, "c")).events().await.rest().await;
    assert_eq!(shown.last().unwrap().kind(), "turn.failed");
    server.stop().await;
}

/// A disconnect of the client does not end the turn, in any form of the prompt.
#[tokio::test]
async fn client_disconnect_does_not_end_turn() {
    let home = Home::new();
    let steps: Vec<Value> =
        (0..3).map(|_| json!({"text": "abcdefghijklmnopqrstuvwxyz", "chunk_chars": 1, "delay_ms": 2})).collect();
    let server = home.serve_script(json!(steps), &[]).await;
    let session = server.new_session(&home).await;
    let mut reader = server.follow(&session).events().await;
    for form in [|ask| ask, respond_async, as_stream] {
        let connection = form(server.prompt(&session, "go")).open().await;
        reader.until("message.delta").await;
        drop(connection);
        reader.until("turn.completed").await;
    }
    assert_eq!(turns(&home, &session).await, 3);
    server.stop().await;
}

/// The server completes the close of a session after the client disconnects.
#[tokio::test]
async fn close_completes_after_client_disconnects() {
    let home = Home::new();
    let command = "mkfifo told; trap 'echo asked > told' TERM; echo ready; while true; do sleep 60 & wait; done";
    let stubborn = json!({"name": "bash", "input": {"command": command}});
    let server = home.serve_script(json!([{"tool_calls": [stubborn]}]), &["--mode", "auto"]).await;
    let session = server.new_session(&home).await;
    let mut reader = server.follow(&session).events().await;
    server.begin(&session, "go").await;
    while !reader.until("tool.updated").await.last().unwrap().event["body"].to_string().contains("ready") {}
    // The close waits for the command, which does not end on SIGTERM.
    let mut told = pipe::OpenOptions::new().read_write(true).open_receiver(home.work().join("told")).unwrap();
    let closing = server.ask("POST", &format!("/v1/sessions/{session}/close")).open().await;
    // On a slow machine the command may be killed before it reports the signal.
    let _ = tokio::time::timeout(Duration::from_secs(2), told.read_u8()).await;
    drop(closing);
    reader.until("session.closed").await;
    server.ask("POST", &format!("/v1/sessions/{session}/resume")).expect(200).await;
    server.stop().await;
}

#[tokio::test]
async fn resume_during_a_close_opens_the_session_again() {
    let (home, server, _) = started().await;
    let session = server.new_session(&home).await;
    let ask = async |method: &str| server.ask("POST", &format!("/v1/sessions/{session}/{method}")).send().await;
    for _ in 0..100 {
        let (closed, resumed) = tokio::join!(ask("close"), ask("resume"));
        assert_eq!((closed.status / 100, resumed.status), (2, 200), "{closed:?} {resumed:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn idempotency_key_creates_one_session() {
    let (home, server, _) = started().await;
    let new = |key: &str, title: &str| server.post("/v1/sessions", &json!({"title": title})).header("idempotency-key", key);
    let count = async || server.get("/v1/sessions?empty=true").expect(200).await["sessions"].as_array().unwrap().len();
    let before = count().await;
    let first = new("k", "x").send().await;
    let again = new("k", "x").send().await;
    assert_eq!((again.status, again.json()), (first.status, first.json()));
    assert_eq!(count().await, before + 1);
    assert_eq!(new("k", "y").send().await.error(), (400, "invalid_params".into()));
    // A key used again on another route is an error. Each principal has keys of its own.
    let other = server.prompt(first.json()["sessionId"].as_str().unwrap(), "x").header("idempotency-key", "k");
    assert_eq!(other.send().await.error(), (400, "invalid_params".into()));
    let token = home.run(&["token", "new", "other"], "").await.stdout.trim().to_string();
    let others = server.with_token(&token).post("/v1/sessions", &json!({"title": "x"})).header("idempotency-key", "k");
    assert_ne!(others.expect(201).await["sessionId"], first.json()["sessionId"]);
    // A failed request does not use up its key.
    let wrong = server.post("/v1/sessions", &json!({"cwd": home.work().join("no")})).header("idempotency-key", "f");
    assert_eq!(wrong.send().await.error(), (400, "invalid_params".into()));
    new("f", "x").expect(201).await;
    // Concurrent requests with one key create one session.
    let before = count().await;
    let all = futures_util::future::join_all((0..16).map(|_| async { new("many", "x").expect(201).await })).await;
    assert!(all.iter().all(|one| *one == all[0]));
    assert_eq!(count().await, before + 1);
    server.stop().await;
}

#[tokio::test]
async fn new_token_under_a_revoked_name_does_not_get_the_old_answer() {
    let (home, server, _) = started().await;
    let token = async || home.run(&["token", "new", "ci"], "").await.stdout.trim().to_string();
    let new = async |token: &str| {
        let asked = server.with_token(token).post("/v1/sessions", &json!({"title": "x"})).header("idempotency-key", "k");
        asked.expect(201).await["sessionId"].clone()
    };
    let first = token().await;
    let made = new(&first).await;
    assert_eq!(new(&first).await, made, "the same token repeats its request");
    assert_eq!(home.run(&["token", "revoke", "ci"], "").await.code, 0);
    let second = token().await;
    assert_ne!(new(&second).await, made);
    server.stop().await;
}

#[tokio::test]
async fn idempotency_key_starts_one_turn() {
    let (home, server, session) = started().await;
    let prompt = |text: &str| respond_async(server.prompt(&session, text)).header("idempotency-key", "k");
    let all = futures_util::future::join_all((0..16).map(|_| async { prompt("a").expect(202).await })).await;
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    assert_eq!(prompt("b").send().await.error(), (400, "invalid_params".into()));
    // The other forms of the prompt report the result of the same turn.
    let waited = prompt("a").without("prefer").expect(200).await;
    assert_eq!(waited, json!({"stopReason": "end_turn"}));
    let shown = as_stream(prompt("a").without("prefer")).events().await.rest().await;
    assert_eq!((&shown[0].event["turnId"], shown.last().unwrap().kind()), (&all[0]["turnId"], "turn.completed"));
    assert_eq!(turns(&home, &session).await, 1);
    server.stop().await;
}

/// A refused request does not use up its key.
#[tokio::test]
async fn refused_prompt_does_not_use_up_its_key() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "slow ".repeat(10_000), "chunk_chars": 1, "delay_ms": 5}]), &[]).await;
    let session = server.new_session(&home).await;
    let first = server.begin(&session, "a").await;
    let mine = respond_async(server.prompt(&session, "b")).header("idempotency-key", "k");
    assert_eq!(mine.send().await.error(), (409, "session_busy".into()));
    server.post(&format!("/v1/sessions/{session}/cancel"), &json!({})).expect(200).await;
    server.follow(&session).events().await.until("turn.cancelled").await;
    let second = mine.expect(202).await["turnId"].clone();
    assert_ne!(second, json!(first));
    assert_eq!(mine.expect(202).await["turnId"], second);
    server.stop().await;
}

#[tokio::test]
async fn idempotency_key_survives_server_restart() {
    let home = Home::new();
    let slow = json!([{"text": "slow ".repeat(10_000), "chunk_chars": 1, "delay_ms": 5}]);
    let server = home.serve_script(slow.clone(), &[]).await;
    let session = server.new_session(&home).await;
    let key = |ask: Ask| ask.header("idempotency-key", "k");
    let first = key(respond_async(server.prompt(&session, "a"))).expect(202).await;
    server.follow(&session).events().await.until("message.delta").await;
    server.kill().await;

    let server = home.serve_script(slow, &[]).await;
    assert_eq!(key(respond_async(server.prompt(&session, "a"))).expect(202).await, first);
    assert_eq!(key(server.prompt(&session, "a")).send().await.error(), (499, "cancelled".into()));
    let shown = key(as_stream(server.prompt(&session, "a"))).events().await.rest().await;
    assert_eq!((&shown[0].event["turnId"], shown.last().unwrap().kind()), (&first["turnId"], "turn.interrupted"));
    assert_eq!(key(server.prompt(&session, "b")).send().await.error(), (400, "invalid_params".into()));
    server.stop().await;
    assert_eq!(turns(&home, &session).await, 1);
}

/// A client that disconnects and repeats its request with the same key gets the same result.
#[tokio::test]
async fn idempotency_key_survives_client_disconnect() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    for round in 0..50 {
        let new = server.post("/v1/sessions", &json!({"title": "x"})).header("idempotency-key", &format!("s{round}"));
        drop(new.open().await);
        let session = new.expect(201).await["sessionId"].as_str().unwrap().to_string();
        server.post(&format!("/v1/sessions/{session}/close"), &json!({})).expect(200).await;
        let prompt = respond_async(server.prompt(&session, "a")).header("idempotency-key", &format!("p{round}"));
        drop(prompt.open().await);
        prompt.expect(202).await;
        server.prompt(&session, "a").header("idempotency-key", &format!("p{round}")).expect(200).await;
        assert_eq!(turns(&home, &session).await, 1, "round {round}");
    }
    server.stop().await;
}
