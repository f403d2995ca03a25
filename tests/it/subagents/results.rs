//! The result of a subagent, its session and its events.

use serde_json::{Value, json};

use harness::log::bodies;
use harness::steps::{bash, calls, says, task};
use harness::subagents::{children, define};
use harness::{Home, tool};

#[tokio::test]
async fn answer_of_subagent_is_result_of_call() {
    let home = Home::new();
    let child = json!([
        {"expect": "You are explorer", "text": "I look at it.", "tool_calls": [{"name": "list", "input": {}}]},
        {"expect": "find the number", "text": "The number is 42."},
    ]);
    define(&home, "explorer", "", child);
    let steps = json!([calls(&[task("explorer", "find the number")]), says("The number is 42.", "42")]);
    let (mut agent, session) = home.session(steps, &[]).await;
    let (stop, updates) = agent.turn(&session, "which number?").await;
    assert_eq!(stop, "end_turn", "{updates:#?}");
    let call = tool(&updates, 0);
    assert_eq!((&call["title"], &call["status"]), (&json!("explorer: find the number"), &json!("completed")), "{call}");
    let child = children(&mut agent, &session).await.remove(0);
    let details = &call["rawOutput"];
    assert_eq!(details["childSessionId"], child.as_str(), "{details}");
    assert_eq!((&details["agent"], &details["stopReason"]), (&json!("explorer"), &json!("end_turn")), "{details}");
    assert!(details["usage"]["inputTokens"].as_u64().unwrap() > 0, "{details}");

    let view = agent.call("_nuncio/session/get", json!({"sessionId": child})).await;
    let parent = &view["parent"];
    assert_eq!((&parent["sessionId"], &parent["toolCallId"]), (&json!(session), &call["toolCallId"]), "{view}");
    assert_eq!((&parent["agent"], &view["title"]), (&json!("explorer"), &json!("explorer: find the number")), "{view}");
    let listed = |list: Value| list["sessions"].as_array().unwrap().len();
    assert_eq!(listed(agent.call("session/list", json!({})).await), 1);
    let all = agent.call("session/list", json!({"_meta": {"nuncio": {"children": true}}})).await;
    let parents: Vec<&Value> =
        all["sessions"].as_array().unwrap().iter().map(|session| &session["_meta"]["nuncio"]["parentSessionId"]).collect();
    assert_eq!(parents, [&Value::Null, &json!(session)], "{all}");
    agent.finish().await;

    let log = home.log(&session).await;
    let (started, completed) = (bodies(&log, "child.started"), bodies(&log, "child.completed"));
    assert_eq!((started.len(), completed.len()), (1, 1), "{log:#?}");
    for body in [started[0], completed[0]] {
        assert_eq!((&body["childSessionId"], &body["toolCallId"]), (&json!(child), &call["toolCallId"]), "{body}");
    }
    assert_eq!((&completed[0]["status"], &completed[0]["stopReason"]), (&json!("completed"), &json!("end_turn")), "{log:#?}");
    assert_eq!(bodies(&home.log(&child).await, "turn.completed").len(), 1);
}

/// Another process owns the session of the subagent.
#[tokio::test]
async fn session_stays_usable_if_the_one_of_its_subagent_cannot_be_deleted() {
    let home = Home::new();
    define(&home, "worker", "", json!([{"text": "done"}]));
    let steps = json!([calls(&[task("worker", "work")]), says("done", "ok"), {"text": "still here"}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    let child = children(&mut agent, &session).await.remove(0);
    let mut other = home.start(&["--model", &home.script(json!([{"text": "mine"}]))]).await;
    other.call("initialize", json!({"protocolVersion": 1})).await;
    other.load(&home, &child).await;
    assert_eq!(other.turn(&child, "go on").await.0, "end_turn");

    let refused = agent.request("session/delete", json!({"sessionId": session})).await.unwrap_err();
    assert_eq!(refused["data"]["code"], "session_busy", "{refused}");
    agent.load(&home, &session).await;
    assert_eq!(agent.turn(&session, "next").await.0, "end_turn");
    other.finish().await;
    agent.call("session/delete", json!({"sessionId": session})).await;
    agent.finish().await;
}

#[tokio::test]
async fn ends_of_subagents_are_reported_to_the_model() {
    let long = (0..20_000).map(|number| format!("{number} ")).collect::<String>();
    let cases: &[(&str, Value, &str)] = &[
        ("the model fails", json!([{"error": {"status": 400, "times": 99}}]), "the subagent failed: "),
        ("no answer", json!([{"text": " "}, {"text": " "}]), "the subagent failed: "),
        ("a long answer", json!([{"text": long, "chunk_chars": 50_000}]), "more bytes: the whole answer is in "),
        ("an unknown tool", json!([calls(&[json!({"name": "nothing"})]), says("there is no tool nothing", "fine")]), "fine"),
    ];
    for (name, child, expected) in cases {
        let home = Home::new();
        define(&home, "worker", "", child.clone());
        let (mut agent, session) = home.session(json!([calls(&[task("worker", "work")]), says(expected, "ok")]), &[]).await;
        let (stop, updates) = agent.turn(&session, "go").await;
        assert_eq!(stop, "end_turn", "{name}: {updates:#?}");
        agent.finish().await;
    }
}

#[tokio::test]
async fn progress_of_subagent_is_shown_in_the_call() {
    let home = Home::new();
    let slow =
        json!({"text": "Reading the file\nnow", "chunk_chars": 1, "delay_ms": 100, "tool_calls": bash("sleep 2")["tool_calls"]});
    define(&home, "worker", "", json!([slow]));
    let (mut agent, session) = home.session(json!([calls(&[task("worker", "work")])]), &["--mode", "auto"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    let shown: Vec<String> = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "tool_call_update" && update["status"].is_null())
        .filter_map(|update| update["content"][0]["content"]["text"].as_str().map(String::from))
        .collect();
    assert!(shown.iter().any(|text| text.contains("Reading")), "{shown:?}");
    assert!(shown.iter().any(|text| text.contains("`sleep 2`")), "{shown:?}");
    agent.finish().await;
}

/// Two subagents of which the first waits for the second.
fn dependent(home: &Home) -> Value {
    define(home, "first", "", json!([bash("until [ -e made ]; do sleep 0.01; done"), {"text": "first is done"}]));
    define(home, "second", "", json!([bash("touch made"), {"text": "second is done"}]));
    let both = calls(&[task("first", "wait"), task("second", "make")]);
    json!([both, {"expect": "first is done", "text": ""}, {"expect": "second is done", "text": "both"}])
}

#[tokio::test]
async fn calls_of_one_answer_run_concurrently() {
    let home = Home::new();
    let steps = dependent(&home);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    assert_eq!(children(&mut agent, &session).await.len(), 2);
    agent.finish().await;
}

#[tokio::test]
async fn subagents_need_no_turn_slots() {
    let home = Home::new();
    let steps = dependent(&home);
    home.config("[http]\nmax_turns = 1\n");
    let server = home.serve_script(steps, &["--mode", "auto"]).await;
    let session = server.new_session(&home).await;
    let ended = server.prompt(&session, "go").expect(200).await;
    assert_eq!(ended["stopReason"], "end_turn", "{ended}");
    server.stop().await;
}

#[tokio::test]
async fn deleting_a_session_deletes_its_children() {
    let home = Home::new();
    define(&home, "worker", "", json!([{"text": "done"}]));
    let (mut agent, session) = home.session(json!([calls(&[task("worker", "work")])]), &[]).await;
    agent.turn(&session, "go").await;
    let child = children(&mut agent, &session).await.remove(0);
    agent.call("session/delete", json!({"sessionId": session})).await;
    let gone = agent.request("_nuncio/session/get", json!({"sessionId": child})).await.unwrap_err();
    assert_eq!(gone["data"]["code"], "not_found", "{gone}");
    agent.finish().await;
}
