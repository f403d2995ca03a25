//! Events stored by a newer version: every output contains them unchanged, and the session stays
//! usable.

use serde_json::{Value, json};

use harness::{Home, literal};

/// Appends an event with this body to the only session of a store.
fn append(home: &Home, body: &str) {
    home.sql(&format!(
        "UPDATE sessions SET head = head + 1;
         INSERT INTO events (session, seq, turn, at_ms, delta, body) SELECT key, head, NULL, 1, '0', {} FROM sessions",
        literal(body)
    ));
}

#[tokio::test]
async fn unknown_event_is_passed_on_unchanged() {
    let body = r#"{"type":"tea.served","cups":3,"big":123456789012345678901234567890,"note":{"z":1,"a":[null,1.50]}}"#;
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "first answer"}]), &[]).await;
    agent.turn(&session, "first").await;
    agent.finish().await;
    append(&home, body);
    let expected: Value = serde_json::from_str(body).unwrap();

    let printed = home.run(&["sessions", "show", &session, "--json"], "").await;
    assert!(printed.stdout.contains(body), "{}", printed.stdout);
    let exported = home.run(&["sessions", "export", &session], "").await;
    assert_eq!(exported.code, 0, "{exported:?}");

    let model = json!([{"expect": "first answer", "text": "second answer"}]);
    let server = home.serve_script(model, &[]).await;
    let history = server.follow(&session).events().await.history().await;
    let served: Vec<&Value> =
        history.iter().map(|shown| &shown.event["body"]).filter(|body| body["type"] == "tea.served").collect();
    assert_eq!(served, [&expected]);
    server
        .post(&format!("/v1/sessions/{session}/prompt"), &json!({"prompt": [{"type": "text", "text": "go on"}]}))
        .expect(200)
        .await;
    server.stop().await;
    assert!(home.log(&session).await.iter().any(|event| event["body"] == expected));
}
