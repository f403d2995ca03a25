//! The three forms of a prompt, and keys that make a repeated request the same one.

use serde_json::{Value, json};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use crate::harness::{Ask, Home, Server, Shown, bounded};

/// Of one session: how many turns were begun.
async fn turns(home: &Home, session: &str) -> usize {
    home.log(session).await.iter().filter(|event| event["body"]["type"] == "turn.started").count()
}

fn kinds(shown: &[Shown]) -> Vec<&str> {
    let mut kinds: Vec<&str> = shown.iter().map(Shown::kind).collect();
    kinds.dedup();
    kinds
}

fn left(ask: Ask) -> Ask {
    ask.header("prefer", "respond-async")
}

fn watched(ask: Ask) -> Ask {
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
async fn a_prompt_has_three_forms() {
    let (home, server, session) = started().await;
    assert_eq!(server.prompt(&session, "a").expect(200).await, json!({"stopReason": "end_turn"}));

    let answer = left(server.prompt(&session, "b")).send().await;
    assert_eq!((answer.status, answer.header("preference-applied")), (202, Some("respond-async")), "{answer:?}");
    let turn = answer.json()["turnId"].clone();
    assert_eq!(answer.json(), json!({"turnId": turn}));
    let events = server.get(&format!("/v1/sessions/{session}/events?turn={}", turn.as_str().unwrap())).events().await;
    let of_turn = { events }.until("turn.completed").await;

    let mut events = watched(server.prompt(&session, "c")).events().await;
    assert_eq!(events.head.header("cache-control"), Some("no-cache"));
    let shown = events.rest().await;
    for (shown, said) in [(&of_turn, "second"), (&shown, "third")] {
        let expected =
            ["turn.started", "message.completed", "message.delta", "usage.updated", "message.completed", "turn.completed"];
        assert_eq!(kinds(shown), expected);
        let whole = shown.iter().rev().find(|shown| shown.kind() == "message.completed").unwrap();
        assert_eq!(whole.event["body"]["parts"][0]["text"], said);
        assert!(shown.iter().all(|one| one.event["turnId"] == shown[0].event["turnId"]), "{shown:#?}");
    }
    assert_eq!(turns(&home, &session).await, 3);
    server.stop().await;
}

#[tokio::test]
async fn a_model_that_fails_is_told_in_all_forms() {
    let home = Home::new();
    let server =
        home.serve_script(json!([{"expect": "never said"}, {"expect": "never said"}, {"expect": "never said"}]), &[]).await;
    let session = server.new_session(&home).await;
    let answer = server.prompt(&session, "a").send().await;
    assert_eq!(answer.error(), (502, "model_error".into()));
    let turn = left(server.prompt(&session, "b")).expect(202).await["turnId"].as_str().unwrap().to_string();
    let mut events = server.get(&format!("/v1/sessions/{session}/events?turn={turn}")).events().await;
    assert_eq!(events.until("turn.failed").await.last().unwrap().event["body"]["code"], "model_error");
    let shown = watched(server.prompt(&session, "c")).events().await.rest().await;
    assert_eq!(shown.last().unwrap().kind(), "turn.failed");
    server.stop().await;
}

/// A client that goes away ends nothing, whichever form it chose.
#[tokio::test]
async fn hanging_up_ends_nothing() {
    let home = Home::new();
    let steps: Vec<Value> =
        (0..3).map(|_| json!({"text": "abcdefghijklmnopqrstuvwxyz", "chunk_chars": 1, "delay_ms": 2})).collect();
    let server = home.serve_script(json!(steps), &[]).await;
    let session = server.new_session(&home).await;
    let mut reader = server.follow(&session).events().await;
    for form in [|ask| ask, left, watched] {
        let connection = form(server.prompt(&session, "go")).open().await;
        reader.until("message.delta").await;
        drop(connection);
        reader.until("turn.completed").await;
    }
    assert_eq!(turns(&home, &session).await, 3);
    server.stop().await;
}

/// Closing a session is done to its end, also when nobody waits for it any more.
#[tokio::test]
async fn what_was_asked_is_done_without_its_client() {
    let home = Home::new();
    let command = "mkfifo told; trap 'echo asked > told' TERM; echo ready; while true; do sleep 60 & wait; done";
    let stubborn = json!({"name": "bash", "input": {"command": command}});
    let server = home.serve_script(json!([{"tool_calls": [stubborn]}]), &["--mode", "auto"]).await;
    let session = server.new_session(&home).await;
    let mut reader = server.follow(&session).events().await;
    server.begin(&session, "go").await;
    while !reader.until("tool.updated").await.last().unwrap().event["body"].to_string().contains("ready") {}
    // It waits for the command, which takes its time to end.
    let mut told = pipe::OpenOptions::new().read_write(true).open_receiver(home.work().join("told")).unwrap();
    let closing = server.ask("POST", &format!("/v1/sessions/{session}/close")).open().await;
    bounded("the close", told.read_u8()).await.unwrap();
    drop(closing);
    reader.until("session.closed").await;
    server.ask("POST", &format!("/v1/sessions/{session}/resume")).expect(200).await;
    server.stop().await;
}

#[tokio::test]
async fn a_key_makes_one_session() {
    let (home, server, _) = started().await;
    let new = |key: &str, title: &str| server.post("/v1/sessions", &json!({"title": title})).header("idempotency-key", key);
    let count = async || server.get("/v1/sessions").expect(200).await["sessions"].as_array().unwrap().len();
    let before = count().await;
    let first = new("k", "x").send().await;
    let again = new("k", "x").send().await;
    assert_eq!((again.status, again.json()), (first.status, first.json()));
    assert_eq!(count().await, before + 1);
    assert_eq!(new("k", "y").send().await.error(), (400, "invalid_params".into()));
    // Another route is another request, another principal's key is another key.
    let other = server.prompt(first.json()["sessionId"].as_str().unwrap(), "x").header("idempotency-key", "k");
    assert_eq!(other.send().await.error(), (400, "invalid_params".into()));
    let token = home.run(&["token", "new", "other"], "").await.stdout.trim().to_string();
    let others = server.with(&token).post("/v1/sessions", &json!({"title": "x"})).header("idempotency-key", "k");
    assert_ne!(others.expect(201).await["sessionId"], first.json()["sessionId"]);
    // What failed was nothing.
    let wrong = server.post("/v1/sessions", &json!({"cwd": home.work().join("no")})).header("idempotency-key", "f");
    assert_eq!(wrong.send().await.error(), (400, "invalid_params".into()));
    new("f", "x").expect(201).await;
    // Many at once are one.
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
        let asked = server.with(token).post("/v1/sessions", &json!({"title": "x"})).header("idempotency-key", "k");
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
async fn a_key_makes_one_turn() {
    let (home, server, session) = started().await;
    let prompt = |text: &str| left(server.prompt(&session, text)).header("idempotency-key", "k");
    let all = futures_util::future::join_all((0..16).map(|_| async { prompt("a").expect(202).await })).await;
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    assert_eq!(prompt("b").send().await.error(), (400, "invalid_params".into()));
    // The other forms tell what came of that same turn.
    let waited = prompt("a").without("prefer").expect(200).await;
    assert_eq!(waited, json!({"stopReason": "end_turn"}));
    let shown = watched(prompt("a").without("prefer")).events().await.rest().await;
    assert_eq!((&shown[0].event["turnId"], shown.last().unwrap().kind()), (&all[0]["turnId"], "turn.completed"));
    assert_eq!(turns(&home, &session).await, 1);
    server.stop().await;
}

/// The key of a request that was refused is free again.
#[tokio::test]
async fn a_refused_prompt_leaves_its_key() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "slow ".repeat(10_000), "chunk_chars": 1, "delay_ms": 5}]), &[]).await;
    let session = server.new_session(&home).await;
    let first = server.begin(&session, "a").await;
    let mine = left(server.prompt(&session, "b")).header("idempotency-key", "k");
    assert_eq!(mine.send().await.error(), (409, "session_busy".into()));
    server.post(&format!("/v1/sessions/{session}/cancel"), &json!({})).expect(200).await;
    server.follow(&session).events().await.until("turn.cancelled").await;
    let second = mine.expect(202).await["turnId"].clone();
    assert_ne!(second, json!(first));
    assert_eq!(mine.expect(202).await["turnId"], second);
    server.stop().await;
}

#[tokio::test]
async fn a_key_outlives_its_server() {
    let home = Home::new();
    let slow = json!([{"text": "slow ".repeat(10_000), "chunk_chars": 1, "delay_ms": 5}]);
    let server = home.serve_script(slow.clone(), &[]).await;
    let session = server.new_session(&home).await;
    let key = |ask: Ask| ask.header("idempotency-key", "k");
    let first = key(left(server.prompt(&session, "a"))).expect(202).await;
    server.follow(&session).events().await.until("message.delta").await;
    server.kill().await;

    let server = home.serve_script(slow, &[]).await;
    assert_eq!(key(left(server.prompt(&session, "a"))).expect(202).await, first);
    assert_eq!(key(server.prompt(&session, "a")).send().await.error(), (499, "cancelled".into()));
    let shown = key(watched(server.prompt(&session, "a"))).events().await.rest().await;
    assert_eq!((&shown[0].event["turnId"], shown.last().unwrap().kind()), (&first["turnId"], "turn.interrupted"));
    assert_eq!(key(server.prompt(&session, "b")).send().await.error(), (400, "invalid_params".into()));
    server.stop().await;
    assert_eq!(turns(&home, &session).await, 1);
}

/// Whoever hangs up at any moment, and asks again under the same key, gets the one answer.
#[tokio::test]
async fn a_key_outlives_its_client() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    for round in 0..50 {
        let new = server.post("/v1/sessions", &json!({"title": "x"})).header("idempotency-key", &format!("s{round}"));
        drop(new.open().await);
        let session = new.expect(201).await["sessionId"].as_str().unwrap().to_string();
        server.post(&format!("/v1/sessions/{session}/close"), &json!({})).expect(200).await;
        let prompt = left(server.prompt(&session, "a")).header("idempotency-key", &format!("p{round}"));
        drop(prompt.open().await);
        prompt.expect(202).await;
        server.prompt(&session, "a").header("idempotency-key", &format!("p{round}")).expect(200).await;
        assert_eq!(turns(&home, &session).await, 1, "round {round}");
    }
    server.stop().await;
}
