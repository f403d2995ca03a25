//! Content of prompts: supported blocks reach the model, other blocks are refused.

use serde_json::{Value, json};

use harness::{Home, text};

async fn check(block: Value, reaches: &str) {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"expect": reaches, "text": "seen"}]), &[]).await;
    let prompt = json!([{"type": "text", "text": "look"}, block]);
    let answer = agent.request("session/prompt", json!({"sessionId": session, "prompt": prompt})).await;
    assert_eq!(answer.as_ref().map(|answer| answer["stopReason"].as_str()), Ok(Some("end_turn")), "{block}");
    let replayed = agent.load(&home, &session).await;
    let said: Vec<&Value> =
        replayed.iter().filter(|update| update["sessionUpdate"] == "user_message_chunk").map(|update| &update["content"]).collect();
    assert_eq!(said, [&json!({"type": "text", "text": "look"}), &block], "as it is replayed");
    agent.finish().await;
}

#[tokio::test]
async fn prompt_content_reaches_the_model() {
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";
    let cases = [
        (json!({"type": "text", "text": "ünïcödé ✓ \u{1f600}"}), "ünïcödé ✓ \u{1f600}"),
        (
            json!({"type": "resource", "resource": {"uri": "file:///x/notes.md", "mimeType": "text/markdown", "text": "remember the milk"}}),
            "remember the milk",
        ),
        (json!({"type": "resource", "resource": {"uri": "file:///x/notes.md", "text": "no type"}}), "file:///x/notes.md"),
        (json!({"type": "resource_link", "uri": "file:///x/main.rs", "name": "main.rs"}), "file:///x/main.rs"),
        (
            json!({"type": "resource_link", "uri": "file:///x", "name": "x", "mimeType": "a/b", "description": "what it is"}),
            "what it is",
        ),
        (json!({"type": "image", "mimeType": "image/png", "data": pixel}), "image/png"),
    ];
    for (block, reaches) in cases {
        check(block, reaches).await;
    }
}

#[tokio::test]
async fn unsupported_content_is_named_in_the_error() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    let cases = [
        (json!({"type": "resource", "resource": {"uri": "file:///x", "mimeType": "application/zip", "blob": "AAAA"}}), "prompt[1]"),
        (json!({"type": "image"}), "prompt[1]"),
        (json!({"type": "smell"}), "prompt[1]"),
        (json!("text"), "prompt[1]"),
    ];
    for (block, word) in cases {
        let prompt = json!([{"type": "text", "text": "look"}, block]);
        let error = agent.request("session/prompt", json!({"sessionId": session, "prompt": prompt})).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{block}: {error}");
        assert!(error["message"].as_str().unwrap().contains(word), "{block}: {error}");
    }
    // The refused prompts leave no events in the session.
    assert_eq!(home.log(&session).await.len(), 1);
    agent.finish().await;
}

#[tokio::test]
async fn model_sees_the_whole_conversation() {
    let home = Home::new();
    home.put("AGENTS.md", "Always whistle.\n");
    home.put("a.txt", "the content of a\n");
    let steps = json!([
        {"expect": "Always whistle.", "text": "first answer", "tool_calls": [{"name": "read", "input": {"file_path": "a.txt"}}]},
        {"expect": "the content of a", "text": "I read it"},
        {"expect": "I read it", "text": "remembered"},
        {"expect": "Study this repository", "text": "studied"},
    ]);
    let (mut agent, session) = home.session(steps, &[]).await;
    for (prompt, said) in [("one", "first answerI read it"), ("two", "remembered"), ("/init shortly", "studied")] {
        let (_, updates) = agent.turn(&session, prompt).await;
        assert_eq!(text(&updates, "agent_message_chunk"), said);
    }
    agent.finish().await;
}

#[tokio::test]
async fn session_new_accepts_nuncio_settings_in_meta() {
    let home = Home::new();
    let model = home.script(json!([{"expect": "You are a parrot.", "text": "squawk"}]));
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let ours = json!({"model": model, "mode": "plan", "thinking": "low", "systemPrompt": "You are a parrot.", "title": "A parrot"});
    let made = agent.call("session/new", json!({"cwd": home.work(), "_meta": {"nuncio": ours}})).await;
    let session = made["sessionId"].as_str().unwrap().to_string();
    assert_eq!(made["modes"]["currentModeId"], "plan");
    let (_, updates) = agent.turn(&session, "speak").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "squawk");
    let listed = agent.call("session/list", json!({})).await;
    assert_eq!(listed["sessions"][0]["title"], "A parrot");
    let error = agent.request("session/new", json!({"cwd": home.work(), "_meta": {"nuncio": {"modell": "x"}}})).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("modell"), "{error}");
    agent.finish().await;
}
