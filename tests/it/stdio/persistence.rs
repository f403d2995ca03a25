//! Persistence of sessions: a temporarily locked store, live output, events of newer versions.

use std::time::Duration;

use serde_json::{Value, json};

use harness::peak_kib;
use harness::{Home, LIMIT, bounded, literal, text, tool};

#[tokio::test]
async fn store_locked_too_long_fails_only_one_prompt() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "one"}, {"text": "two"}, {"text": "three"}]), &[]).await;
    assert_eq!(agent.turn(&session, "first").await.0, "end_turn");
    let lock = home.store().lock();
    let id = agent.prompt(&session, "second").await;
    let error = tokio::time::timeout(LIMIT, agent.answer(&id)).await.expect("an answer").unwrap_err();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32001), &json!("overloaded")), "{error}");
    drop(lock);
    let (stop, updates) = agent.turn(&session, "third").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").is_empty()), ("end_turn", false));
    agent.finish().await;
    let log = home.log(&session).await;
    let seqs: Vec<u64> = log.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let replayed: Vec<&Value> = log.iter().filter(|event| event["body"]["role"] == "user").collect();
    assert!(replayed.last().unwrap().to_string().contains("third"), "{replayed:?}");
}

#[tokio::test]
async fn live_output_of_command_is_removed_after_close() {
    let home = Home::new();
    let command = "for i in $(seq 25); do seq 4000; sleep 0.12; done";
    let call = json!({"tool_calls": [{"name": "bash", "input": {"command": command}}]});
    let (mut agent, session) = home.session(json!([call, {"text": "so it is"}]), &["--mode", "auto"]).await;
    let (_, live) = agent.turn(&session, "go").await;
    let shown = live.iter().filter(|update| update["status"].is_null() && update["content"].is_array()).count();
    assert!(shown > 3, "{shown} pieces of live output");
    agent.call("session/close", json!({"sessionId": session})).await;
    let log = home.log(&session).await;
    let bytes: usize = log.iter().map(|event| event.to_string().len()).sum();
    let left = log.iter().filter(|event| event["body"]["type"] == "tool.updated" && event["body"]["content"].is_array()).count();
    assert_eq!(left, 0, "pieces of live output left, in a log of {bytes} bytes");
    // The output for the model and the output for display: 50 KiB each.
    assert!(bytes < 160 << 10, "{bytes} bytes");
    // The replayed call has the whole output.
    let replayed = agent.load(&home, &session).await;
    assert_eq!(tool(&replayed, 0)["content"], tool(&live, 0)["content"]);
    agent.finish().await;
}

#[tokio::test]
async fn unknown_event_is_ignored() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "said before"}]), &[]).await;
    agent.turn(&session, "first").await;
    agent.finish().await;
    let body = json!({"type": "weather.changed", "wind": {"from": "north"}}).to_string();
    home.sql(&format!(
        "INSERT INTO events (session, seq, turn, at_ms, delta, body)
         SELECT key, head + 1, NULL, 1, '0', {} FROM sessions WHERE id = '{session}';
         UPDATE sessions SET head = head + 1 WHERE id = '{session}'",
        literal(&body)
    ));

    let shown = home.run(&["sessions", "show", &session], "").await;
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.stdout.contains("said before"), "{shown:?}");
    let mut agent = home.start(&["--model", &home.script(json!([{"expect": "said before", "text": "said after"}]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let replayed = agent.load(&home, &session).await;
    assert_eq!(text(&replayed, "agent_message_chunk"), "said before");
    let (_, updates) = agent.turn(&session, "second").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "said after");
    agent.finish().await;
    let again = home.run(&["sessions", "show", &session, "--json"], "").await;
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stdout.contains("said after"), "{again:?}");
}

#[tokio::test]
async fn session_that_failed_to_start_is_not_listed() {
    let home = Home::new();
    home.put("broken/.nuncio/config.toml", "modell = \"x\"\n");
    home.put("worse/.nuncio/config.toml", "this is no TOML\n");
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    for name in ["broken", "worse"] {
        let error = agent.request("session/new", json!({"cwd": home.work().join(name), "mcpServers": []})).await.unwrap_err();
        assert!(error["message"].as_str().unwrap().contains("config.toml"), "{name}: {error}");
        let listed = agent.call("session/list", json!({"_meta": {"nuncio": {"empty": true}}})).await;
        assert_eq!(listed["sessions"], json!([]), "{name}");
    }
    // The agent continues.
    let session = agent.new_session(&home).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
    assert_eq!(home.run(&["sessions", "list"], "").await.stdout.lines().count(), 1);
}

#[tokio::test]
async fn command_is_shown_as_typed_and_expanded_for_the_model() {
    let home = Home::new();
    let steps = json!([{"expect": "Study this repository", "text": "studied"}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    let (_, live) = agent.turn(&session, "/init be short").await;
    assert_eq!(text(&live, "agent_message_chunk"), "studied");
    agent.finish().await;

    let mut agent =
        home.start(&["--model", &home.script(json!([{"expect": "Study this repository", "text": "still known"}]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let replayed = agent.load(&home, &session).await;
    let listed = agent.call("session/list", json!({})).await;
    let (_, updates) = agent.turn(&session, "and now?").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "still known");
    agent.finish().await;
    let said = text(&replayed, "user_message_chunk");
    assert_eq!((said.as_str(), &listed["sessions"][0]["title"]), ("/init be short", &json!("/init be short")));
}

#[tokio::test]
async fn requests_of_client_that_does_not_read_do_not_accumulate() {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    const REQUESTS: usize = 40_000;
    let home = Home::new();
    let mut child = home.spawn(&["acp", "--model", &home.script(json!([]))]);
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut writing = tokio::spawn(async move {
        let method = "no/such/".repeat(200);
        for id in 0..REQUESTS {
            let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}).to_string() + "\n";
            stdin.write_all(line.as_bytes()).await.unwrap();
        }
    });
    // The agent accepts all requests, or stops reading until the client reads.
    let written = tokio::time::timeout(Duration::from_secs(4), &mut writing).await;
    let peak = peak_kib(child.id().unwrap());
    assert!(peak < 100 << 10, "{peak} KiB with a client that reads nothing; all was taken: {}", written.is_ok());
    let mut lines = BufReader::new(stdout).lines();
    let mut answers = vec![0; REQUESTS];
    while let Some(line) = bounded("an answer", lines.next_line()).await.unwrap() {
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["error"]["code"].as_i64().map(|code| [-32601, -32001].contains(&code)), Some(true), "{answer}");
        answers[answer["id"].as_u64().unwrap() as usize] += 1;
    }
    assert!(answers.iter().all(|count| *count == 1), "{} without an answer", answers.iter().filter(|count| **count == 0).count());
    let status = bounded("the exit", child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn session_with_unreadable_settings_can_be_loaded_and_deleted() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "before"}, {"text": "after"}]), &[]).await;
    agent.turn(&session, "go").await;
    agent.call("session/close", json!({"sessionId": session})).await;
    home.put(".nuncio/config.toml", "this is no TOML");
    let replayed = agent.load(&home, &session).await;
    assert_eq!(text(&replayed, "agent_message_chunk"), "before");
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go on"}]});
    let error = agent.request("session/prompt", prompt).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("config.toml"), "{error}");
    agent.call("session/delete", json!({"sessionId": session})).await;
    agent.finish().await;
}
