//! A session whose log is lost while a turn runs, as if another process had taken the session.

use serde_json::{Value, json};

use harness::Home;

/// Makes the store refuse the events of the session's owner.
fn take_away(home: &Home, session: &str) {
    let changed = home.sql(&format!("UPDATE sessions SET generation = generation + 1 WHERE id = '{session}' RETURNING id"));
    assert_eq!(changed, [session]);
}

#[tokio::test]
async fn settings_changed_while_the_log_is_lost_do_not_continue_the_turn() {
    let changes: [(&str, Value); 3] = [
        ("session/set_mode", json!({"modeId": "plan"})),
        ("_nuncio/session/configure", json!({"title": "New"})),
        ("_nuncio/session/replace_messages", json!({"messages": []})),
    ];
    for (method, params) in changes {
        let home = Home::new();
        // The command survives the signal that asks it to end, so that the turn ends late.
        let command = "trap '' TERM; echo ready; while :; do sleep 0.1; done";
        let call = json!({"tool_calls": [{"name": "bash", "input": {"command": command}}]});
        let (mut agent, session) = home.session(json!([call, {"text": "back"}]), &["--mode", "auto"]).await;
        let prompt = agent.prompt(&session, "go").await;
        agent.until("output", |frame| frame.to_string().contains("ready")).await;
        take_away(&home, &session);
        // Both calls succeed if the turn has ended already, which takes seconds.
        if let Err(error) = agent.request("session/set_mode", json!({"sessionId": session, "modeId": "ask"})).await {
            assert!(error["message"].as_str().unwrap().contains("taken over"), "{error}");
        }
        let mut params = params;
        params["sessionId"] = json!(session);
        let _ = agent.request(method, params).await;
        let answer = agent.answer(&prompt).await;
        assert!(answer.is_err(), "{method}: {answer:?}");
        let (stop, _) = agent.turn(&session, "again").await;
        assert_eq!(stop, "end_turn", "{method}");
        agent.finish().await;
        let log = home.log(&session).await;
        harness::log::assert_gap_free(&log);
        let mut open = None;
        for event in &log {
            let (turn, kind) = (event["turnId"].as_str(), event["body"]["type"].as_str().unwrap());
            match kind {
                "turn.started" => open = turn,
                _ => assert_eq!(turn.filter(|turn| Some(*turn) != open), None, "{method}: {event} follows its turn"),
            }
            if kind.starts_with("turn.") && kind != "turn.started" {
                open = None;
            }
        }
    }
}

/// A backup that is restored while nuncio runs has an older end of the session's events.
#[tokio::test]
async fn events_are_refused_if_the_stored_ones_end_elsewhere() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "one"}, {"text": "two"}, {"text": "three"}]), &[]).await;
    agent.turn(&session, "go").await;
    let kept = home.log(&session).await.len();
    agent.turn(&session, "go on").await;
    home.sql(&format!("DELETE FROM events WHERE seq > {kept}; UPDATE sessions SET head = {kept}"));
    let refused =
        agent.request("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "again"}]})).await;
    let message = refused.unwrap_err()["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&format!("the stored events of session {session} end with {kept}, not with")), "{message}");
    let _ = agent.request("session/close", json!({"sessionId": session})).await;
    agent.call("session/resume", json!({"sessionId": session, "cwd": home.work(), "mcpServers": []})).await;
    assert_eq!(agent.turn(&session, "again").await.0, "end_turn");
    agent.finish().await;
    harness::log::assert_gap_free(&home.log(&session).await);
}
