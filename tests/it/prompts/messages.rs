//! Messages between clients.

use serde_json::json;

use harness::Home;

#[tokio::test]
async fn custom_message_is_stored_and_not_sent_to_the_model() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "one"}, {"text": "two", "expect": "a hidden word"}]), &[]).await;
    let session = server.new_session(&home).await;
    server.prompt(&session, "go").expect(200).await;
    let messages = format!("/v1/sessions/{session}/messages");
    let custom = json!({"role": "custom", "customType": "build", "details": {"ok": true},
        "parts": [{"type": "text", "text": "a hidden word"}]});
    let sent = server.post(&messages, &custom).expect(202).await;
    assert!(sent["turnId"].is_null(), "{sent}");
    let failed = server.prompt(&session, "again").send().await;
    assert_eq!(failed.error().0, 502, "the model must not see the message");
    let listed = server.get(&messages).expect(200).await;
    let found = listed["messages"].as_array().unwrap().iter().find(|message| message["role"] == "custom").unwrap();
    assert_eq!((&found["customType"], &found["details"]), (&json!("build"), &json!({"ok": true})), "{found}");
    let events = server.follow(&session).events().await.history().await;
    assert!(events.iter().any(|event| event.event["body"]["customType"] == "build"));
    for wrong in [
        json!({"role": "custom", "parts": [{"type": "text", "text": "x"}]}),
        json!({"role": "user", "customType": "build", "parts": [{"type": "text", "text": "x"}]}),
    ] {
        assert_eq!(server.post(&messages, &wrong).send().await.error().0, 400, "{wrong}");
    }
    server.stop().await;
}

#[tokio::test]
async fn replaced_messages_are_what_the_model_sees() {
    let home = Home::new();
    let steps =
        json!([{"text": "one"}, {"text": "two", "expect": "We work on the parser."}, {"text": "three", "expect": "a first word"}]);
    let server = home.serve_script(steps, &[]).await;
    let session = server.new_session(&home).await;
    server.prompt(&session, "a first word").expect(200).await;
    let path = format!("/v1/sessions/{session}/messages");
    let text = |role: &str, text: &str| json!({"role": role, "parts": [{"type": "text", "text": text}]});
    let messages = json!({"messages": [text("user", "We work on the parser."), text("assistant", "Yes.")]});
    server.ask("PUT", &path).json(&messages).expect(200).await;
    server.prompt(&session, "go").expect(200).await;
    assert_eq!(server.prompt(&session, "go").send().await.error().0, 502, "the first message must be gone");
    let listed = server.get(&path).expect(200).await;
    assert!(listed.to_string().contains("a first word"), "the log keeps it: {listed}");
    let wrong = [
        json!([text("assistant", "Yes.")]),
        json!([text("user", "a"), text("thought", "b")]),
        json!([text("user", "a"), text("assistant", " ")]),
        json!([text("user", "a"), {"role": "assistant", "parts": [{"type": "image", "mimeType": "image/png", "data": ""}]}]),
        json!([{"role": "user", "parts": []}]),
    ];
    for messages in wrong {
        let answer = server.ask("PUT", &path).json(&json!({ "messages": messages })).send().await;
        assert_eq!(answer.error().0, 400, "{messages}");
    }
    server.stop().await;
}

#[tokio::test]
async fn configured_tools_and_prompt_apply_to_the_next_turn() {
    let home = Home::new();
    let list = json!({"name": "list", "input": {}});
    let steps = json!([{"tool_calls": [list]}, {"text": "one", "expect": "Be a pirate."}, {"tool_calls": [list]}, {"text": "two"}]);
    let server = home.serve_script(steps, &[]).await;
    let session = server.new_session(&home).await;
    let path = format!("/v1/sessions/{session}");
    let change = json!({"title": "T", "systemPrompt": "Be a pirate.", "tools": ["read", "git_*"]});
    server.ask("PATCH", &path).json(&change).expect(200).await;
    assert_eq!(server.get(&path).expect(200).await["title"], "T");
    server.prompt(&session, "go").expect(200).await;
    server.ask("PATCH", &path).json(&json!({"tools": null, "systemPrompt": null})).expect(200).await;
    server.prompt(&session, "go").expect(200).await;
    let events = server.follow(&session).events().await.history().await;
    let ended = events.iter().filter(|event| event.kind() == "tool.completed");
    let statuses: Vec<_> = ended.map(|event| event.event["body"]["status"].clone()).collect();
    assert_eq!(statuses, ["failed", "completed"]);
    for wrong in [json!({}), json!({"tools": ["[" ]}), json!({"model": "x"})] {
        assert_eq!(server.ask("PATCH", &path).json(&wrong).send().await.error().0, 400, "{wrong}");
    }
    server.stop().await;
}

#[tokio::test]
async fn busy_session_is_not_changed() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "long", "chunk_chars": 1, "delay_ms": 60_000}]), &[]).await;
    let session = server.new_session(&home).await;
    server.begin(&session, "go").await;
    let path = format!("/v1/sessions/{session}");
    let refused = server.ask("PATCH", &path).json(&json!({"title": "T"})).send().await;
    assert_eq!(refused.error(), (409, "session_busy".into()));
    let refused = server.ask("PUT", &format!("{path}/messages")).json(&json!({"messages": []})).send().await;
    assert_eq!(refused.error(), (409, "session_busy".into()));
    server.stop().await;
}

/// A client receives the messages of the user that are added between turns, although it receives no
/// copy of its own prompts.
#[tokio::test]
async fn message_between_turns_is_shown_to_the_client_of_the_last_turn() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "one"}]), &[]).await;
    agent.turn(&session, "go").await;
    let parts = json!([{"type": "text", "text": "by the way"}]);
    agent.call("_nuncio/session/message", json!({"sessionId": session, "parts": parts, "autoRun": false})).await;
    agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
    assert_eq!(harness::text(&agent.updates(&session), "user_message_chunk"), "by the way");
    agent.finish().await;
}
