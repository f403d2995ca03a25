//! Subagents end with their parent: on cancel, close, delete, shutdown and kill.

use serde_json::{Value, json};

use harness::log::bodies;
use harness::marked;
use harness::steps::{bash, calls, says, task};
use harness::subagents::{children, define};
use harness::{Agent, Home};

/// A session whose subagent runs a command until it is killed; returns the id of the prompt, too.
async fn running(home: &Home) -> (Agent, String, Value) {
    define(home, "worker", "", json!([bash("touch running; exec sleep 1000")]));
    let steps = json!([calls(&[task("worker", "work")]), {"text": "next"}]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let prompt = agent.prompt(&session, "go").await;
    home.appears("running").await;
    (agent, session, prompt)
}

/// The status of the only child in the parent's log, and the last turn event of the child.
async fn end_of_child(home: &Home, session: &str) -> (Value, Value) {
    let log = home.log(session).await;
    let completed = bodies(&log, "child.completed");
    assert_eq!(completed.len(), 1, "{log:#?}");
    let child = home.log(completed[0]["childSessionId"].as_str().unwrap()).await;
    let turn = child.iter().rev().map(|event| &event["body"]["type"]).find(|kind| kind.as_str().unwrap().starts_with("turn."));
    (completed[0]["status"].clone(), turn.unwrap().clone())
}

#[tokio::test]
async fn cancel_close_and_shutdown_of_the_parent_cancel_the_subagent() {
    for how in ["session/cancel", "session/close", "shutdown"] {
        let home = Home::new();
        let (mut agent, session, prompt) = running(&home).await;
        match how {
            "session/cancel" => agent.notify(how, json!({"sessionId": session})).await,
            "session/close" => drop(agent.call(how, json!({"sessionId": session})).await),
            _ => {}
        }
        if how != "shutdown" {
            assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled", "{how}");
        }
        agent.finish().await;
        assert_eq!(end_of_child(&home, &session).await, (json!("cancelled"), json!("turn.cancelled")), "{how}");
    }
}

#[tokio::test]
async fn delete_of_the_parent_ends_the_subagent() {
    let home = Home::new();
    let (mut agent, session, prompt) = running(&home).await;
    agent.call("session/delete", json!({"sessionId": session})).await;
    agent.answer(&prompt).await.unwrap();
    let all = agent.call("session/list", json!({"_meta": {"nuncio": {"children": true}}})).await;
    assert_eq!(all["sessions"], json!([]));
    agent.finish().await;
}

#[tokio::test]
async fn cancel_of_the_child_session_is_a_failed_call() {
    let home = Home::new();
    define(&home, "worker", "", json!([bash("touch running; exec sleep 1000")]));
    let steps = json!([calls(&[task("worker", "work")]), says("the subagent was cancelled", "ok")]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let prompt = agent.prompt(&session, "go").await;
    home.appears("running").await;
    let child = children(&mut agent, &session).await.remove(0);
    agent.notify("session/cancel", json!({"sessionId": child})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    agent.finish().await;
}

#[tokio::test]
async fn kill_ends_parent_and_child_as_interrupted() {
    let home = Home::new();
    let (agent, session, _) = running(&home).await;
    let marker = agent.marker.clone();
    agent.kill().await;
    assert_eq!(marked(&marker), Vec::<u32>::new());
    let model = home.script(json!([says("interrupted", "ok")]));
    let mut agent = home.start(&["--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.load(&home, &session).await;
    let child = children(&mut agent, &session).await.remove(0);
    let view = agent.call("_nuncio/session/get", json!({"sessionId": child})).await;
    assert_eq!((&view["status"], &view["lastTurn"]["status"]), (&json!("none"), &json!("interrupted")), "{view}");
    agent.call("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": model})).await;
    assert_eq!(agent.turn(&session, "go on").await.0, "end_turn");
    agent.finish().await;
    assert_eq!(end_of_child(&home, &session).await, (json!("interrupted"), json!("turn.interrupted")));
}
