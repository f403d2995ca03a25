//! Sessions of editors and commands, which accept no connections: the server with the same data
//! directory passes calls of other nodes on to them.

use serde_json::json;

use super::{Cluster, SECRET};
use harness::steps::bash;
use harness::{Agent, Home, Reply, text};

/// An editor on the machine of the first node, whose model has these steps, and its session.
async fn editor(home: &Home, steps: serde_json::Value) -> (Agent, String) {
    let mut editor = home.start(&["--model", &home.script(steps)]).await;
    editor.call("initialize", json!({"protocolVersion": 1})).await;
    let session = editor.new_session(home).await;
    (editor, session)
}

/// Prompts, a permission request, a cancellation and a change of settings.
#[tokio::test]
async fn session_of_an_editor_is_used_from_another_node() {
    let Some(cluster) = Cluster::with_model(json!([])).await else { return };
    let endless = json!({"text": "word ".repeat(5000), "chunk_chars": 5, "delay_ms": 20});
    let steps = json!([{"text": "one"}, bash("touch made"), {"text": "two"}, endless, {"text": "three"}]);
    let (mut editor, session) = editor(&cluster.first, steps).await;
    editor.otherwise = Reply::Never;
    let other = &cluster.other;
    other.prompt(&session, "go").expect(200).await;
    other.begin(&session, "ask").await;
    let mut events = other.follow(&session).events().await;
    let asked = events.until("permission.requested").await.pop().unwrap();
    let permission = asked.event["body"]["permissionId"].as_str().unwrap();
    other.post(&format!("/v1/permissions/{permission}"), &json!({"outcome": "allow_once"})).expect(200).await;
    events.until("turn.completed").await;
    assert!(cluster.first.get("made").is_some(), "the command did not run");
    other.begin(&session, "wait").await;
    events.until("step.started").await;
    other.post(&format!("/v1/sessions/{session}/cancel"), &json!({})).expect(200).await;
    events.until("turn.cancelled").await;
    drop(events);
    // The editor has seen it all, and goes on.
    let (stop, updates) = editor.turn(&session, "go on").await;
    assert!(stop == "end_turn" && text(&updates, "agent_message_chunk").ends_with("three"), "{updates:?}");
    editor.finish().await;
    cluster.finish().await;
}

/// The session of an editor that is killed or closed is free for the other node.
#[tokio::test]
async fn session_of_an_ended_editor_is_taken_by_another_node() {
    let Some(cluster) = Cluster::with_model(json!([])).await else { return };
    let model = cluster.second.script(json!([{"text": "elsewhere"}]));
    let work = cluster.first.work();
    let node = cluster.second.serve(&["--root", work.to_str().unwrap(), "--model", &model]).await;
    for how in ["killed", "closed"] {
        let (editor, session) = editor(&cluster.first, json!([{"text": "one"}])).await;
        node.prompt(&session, "go").expect(200).await;
        match how {
            "killed" => drop(editor.kill().await),
            _ => drop(editor.finish().await),
        }
        node.prompt(&session, "go on").expect(200).await;
        let log = cluster.first.log(&session).await;
        assert!(json!(log).to_string().contains("elsewhere"), "{how}: {log:?}");
    }
    node.stop().await;
    cluster.finish().await;
}

/// A session of an editor cannot be reached without a server there, and the error says so.
#[tokio::test]
async fn editor_without_a_server_is_named_with_the_remedy() {
    let Some(cluster) = Cluster::start(json!([]), [SECRET; 2]).await else { return };
    let (editor, session) = editor(&cluster.first, json!([{"text": "one"}, {"text": "two"}])).await;
    cluster.other.prompt(&session, "go").expect(200).await;
    cluster.owner.kill().await;
    cluster.first.sql("DELETE FROM nodes WHERE address IS NOT NULL");
    let refused = cluster.other.prompt(&session, "go").expect(409).await["error"].to_string();
    assert!(refused.contains("run nuncio serve with cluster.address"), "{refused}");
    // It is reached again when the server runs again.
    let (mut server, _) = cluster.first.start_with_bridge(&["--model", &cluster.first.script(json!([]))]).await;
    server.call("initialize", json!({"protocolVersion": 1})).await;
    server.new_session(&cluster.first).await;
    cluster.other.prompt(&session, "go").expect(200).await;
    server.finish().await;
    editor.finish().await;
    cluster.other.stop().await;
}
