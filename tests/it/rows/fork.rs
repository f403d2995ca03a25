//! A session with the past of another one.

use serde_json::{Value, json};

use super::{fill, refused};
use crate::harness::{Agent, Home, Reply, text};

async fn fork(agent: &mut Agent, session: &str, more: Value) -> String {
    let mut params = json!({"sessionId": session});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let forked = agent.call("session/fork", params).await;
    assert_eq!((&forked["modes"]["currentModeId"], forked["configOptions"].is_array()), (&json!("ask"), true), "{forked}");
    forked["sessionId"].as_str().unwrap().into()
}

#[tokio::test]
async fn a_fork_goes_on_by_itself() {
    let home = Home::new();
    let ask = json!({"tool_calls": [{"name": "bash", "input": {"command": "true"}}]});
    let (mut agent, parent) = home.session(json!([{"text": "one", "chunk_chars": 1}, ask]), &[]).await;
    agent.turn(&parent, "first").await;
    // Busy, with a message that waits: neither is in the fork.
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
    // Of a fork, too; and the parent is as it was.
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

#[tokio::test]
async fn a_long_session_is_forked_without_its_pieces() {
    let home = Home::new();
    let (mut agent, parent) = home.session(json!([]), &[]).await;
    agent.call("session/close", json!({"sessionId": parent})).await;
    fill(&home, 100_000, 2);
    let forked = fork(&mut agent, &parent, json!({})).await;
    // Created, closed, 50,000 messages, changed.
    let view = agent.call("_nuncio/session/get", json!({"sessionId": forked})).await;
    assert_eq!(view["head"], 50_003, "{view}");
    agent.finish().await;
}
