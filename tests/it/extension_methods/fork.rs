//! Forks: sessions with the history of another session.

use serde_json::{Value, json};

use super::{fill, refused};
use harness::{Agent, Home, Reply, on_postgres, text};

async fn fork(agent: &mut Agent, session: &str, more: Value) -> String {
    let mut params = json!({"sessionId": session});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let forked = agent.call("session/fork", params).await;
    assert_eq!((&forked["modes"]["currentModeId"], forked["configOptions"].is_array()), (&json!("ask"), true), "{forked}");
    forked["sessionId"].as_str().unwrap().into()
}

#[tokio::test]
async fn fork_is_independent_of_parent() {
    let home = Home::new();
    let ask = json!({"tool_calls": [{"name": "bash", "input": {"command": "true"}}]});
    let (mut agent, parent) = home.session(json!([{"text": "one", "chunk_chars": 1}, ask]), &[]).await;
    agent.turn(&parent, "first").await;
    // The parent is busy and has a queued message; the fork contains neither.
    agent.otherwise = Reply::Never;
    let prompt = agent.prompt(&parent, "second").await;
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    let parts = json!([{"type": "text", "text": "waits"}]);
    agent.call("_nuncio/session/message", json!({"sessionId": parent, "parts": parts})).await;
    let other = home.put("../other/x", "").parent().unwrap().to_path_buf();
    let same = fork(&mut agent, &parent, json!({"mcpServers": []})).await;
    let moved = fork(&mut agent, &parent, json!({"cwd": other, "_meta": {"nuncio": {"title": "elsewhere"}}})).await;
    for (session, cwd, title) in [(&same, home.work(), "first"), (&moved, other, "elsewhere")] {
        let view = agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
        assert_eq!((&view["cwd"], &view["title"], &view["status"]), (&json!(cwd), &json!(title), &json!("idle")), "{view}");
        assert_eq!((&view["queued"], view.get("turnId")), (&json!(0), None));
        let model = home.script(json!([{"expect": "first", "text": "went on"}]));
        agent.call("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": model})).await;
        let (_, updates) = agent.turn(session, "third").await;
        assert_eq!(text(&updates, "agent_message_chunk"), "went on");
        let messages = agent.call("_nuncio/session/messages", json!({"sessionId": session})).await;
        let texts: Vec<&Value> = messages["messages"].as_array().unwrap().iter().map(|one| &one["parts"][0]["text"]).collect();
        assert_eq!(texts, ["first", "one", "third", "went on"]);
        let log = home.log(session).await;
        let seqs: Vec<u64> = log.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=log.len() as u64).collect::<Vec<_>>());
        assert!(log.iter().all(|event| event["sessionId"] == json!(session)));
        assert_eq!(log[0]["body"]["type"], "session.created");
    }
    // A fork can be forked, and the parent is unchanged.
    fork(&mut agent, &same, json!({})).await;
    agent.notify("session/cancel", json!({"sessionId": parent})).await;
    agent.answer(&prompt).await.unwrap();
    let view = agent.call("_nuncio/session/get", json!({"sessionId": parent})).await;
    assert_eq!((&view["queued"], &view["title"]), (&json!(1), &json!("first")));
    assert_eq!(agent.call("session/list", json!({})).await["sessions"].as_array().unwrap().len(), 4);
    refused(
        &mut agent,
        &[
            ("session/fork", json!({"sessionId": "x"}), -32002, "x"),
            ("session/fork", json!({"sessionId": parent, "cwd": "relative"}), -32602, "cwd"),
            ("session/fork", json!({"sessionId": parent, "_meta": {"nuncio": {"stray": 1}}}), -32602, "_meta.nuncio"),
        ],
    )
    .await;
    agent.finish().await;
}

/// A queued message that runs in a turn of the parent is not in a fork.
#[tokio::test]
async fn queued_message_in_running_turn_is_not_in_fork() {
    let home = Home::new();
    let call = json!([{"name": "bash", "input": {"command": "true"}}]);
    let asks = json!({"text": "asks", "tool_calls": call});
    let (mut agent, parent) = home.session(json!([asks, {"text": "one"}, asks, {"text": "two"}]), &[]).await;
    agent.otherwise = Reply::Never;
    let is_question = |frame: &Value| frame["method"] == "session/request_permission";
    let prompt = agent.prompt(&parent, "first").await;
    agent.until("a question", is_question).await;
    for text in ["waited", "still waits"] {
        let parts = json!([{"type": "text", "text": text}]);
        agent.call("_nuncio/session/message", json!({"sessionId": parent, "parts": parts})).await;
    }
    let open = agent.call("_nuncio/permission/list", json!({})).await["permissions"][0]["permissionId"].clone();
    agent.call("_nuncio/permission/answer", json!({"permissionId": open, "outcome": "allow_once"})).await;
    agent.answer(&prompt).await.unwrap();
    if agent.asked.is_empty() {
        agent.until("the second question", is_question).await;
    }
    let users = async |agent: &mut Agent, session: &str| -> Vec<Value> {
        let messages = agent.call("_nuncio/session/messages", json!({"sessionId": session})).await;
        let messages = messages["messages"].as_array().unwrap().iter();
        messages.filter(|one| one["role"] == "user").map(|one| one["parts"][0]["text"].clone()).collect()
    };
    assert_eq!(users(&mut agent, &parent).await, ["first", "waited"]);
    let forked = fork(&mut agent, &parent, json!({})).await;
    let queued = async |agent: &mut Agent, session: &str| {
        agent.call("_nuncio/session/get", json!({"sessionId": session})).await["queued"].as_u64()
    };
    assert_eq!((queued(&mut agent, &forked).await, queued(&mut agent, &parent).await), (Some(0), Some(1)));
    let model = home.script(json!([{"expect": "third", "text": "went on"}]));
    agent.call("session/set_config_option", json!({"sessionId": forked, "configId": "model", "value": model})).await;
    agent.turn(&forked, "third").await;
    assert_eq!(users(&mut agent, &forked).await, ["first", "third"]);
    assert_eq!((queued(&mut agent, &forked).await, queued(&mut agent, &parent).await), (Some(0), Some(1)));
    if !on_postgres() {
        // As a version before the columns wrote the rows.
        home.sql("UPDATE events SET event_type = NULL, message_id = NULL");
        let forked = fork(&mut agent, &parent, json!({})).await;
        assert_eq!((queued(&mut agent, &forked).await, users(&mut agent, &forked).await.len()), (Some(0), 1));
    }
    agent.notify("session/cancel", json!({"sessionId": parent})).await;
    agent.finish().await;
}

#[tokio::test]
async fn long_session_is_forked_without_deltas() {
    let home = Home::new();
    let (mut agent, parent) = home.session(json!([]), &[]).await;
    agent.call("session/close", json!({"sessionId": parent})).await;
    fill(&home, 100_000, 2);
    let forked = fork(&mut agent, &parent, json!({})).await;
    // Created, closed, 50,000 messages, granted, changed.
    let view = agent.call("_nuncio/session/get", json!({"sessionId": forked})).await;
    assert_eq!(view["head"], 50_004, "{view}");
    agent.finish().await;
}
