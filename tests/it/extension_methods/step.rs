//! Model requests of a turn: each has a `step.started` and a `step.completed`, also when the
//! request fails, is retried or is cancelled, and when the process is killed.

use serde_json::{Value, json};

use harness::{Agent, Home};

/// The events of a log that show the order within a turn, one word each: steps with their number
/// and outcome, completed messages with their role, tool calls, usage, and the end of the turn.
fn outline(log: &[Value]) -> Vec<String> {
    let word = |body: &Value| {
        let field = |name: &str| body[name].as_str().unwrap_or_default().to_string();
        Some(match body["type"].as_str().unwrap() {
            "step.started" => format!("({}", body["step"]),
            "step.completed" => format!("{} {})", body["step"], field("outcome")),
            "message.completed" if body["discarded"] == true => "discarded".into(),
            "message.completed" => field("role"),
            "tool.started" => format!("call {}", field("name")),
            "tool.completed" => format!("result {}", field("name")),
            "usage.updated" => "usage".into(),
            kind if kind.starts_with("turn.") && kind != "turn.started" => kind.into(),
            _ => return None,
        })
    };
    log.iter().filter_map(|event| word(&event["body"])).collect()
}

/// Runs one turn of a scripted model and compares the outline of the log.
async fn check(steps: Value, expected: &[&str]) -> Vec<Value> {
    let home = Home::new();
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let id = agent.prompt(&session, "go").await;
    let _ = agent.answer(&id).await;
    agent.finish().await;
    let log = home.log(&session).await;
    assert_eq!(outline(&log), expected, "{log:#?}");
    log
}

#[tokio::test]
async fn each_model_request_has_start_and_end() {
    let bash = json!({"name": "bash", "input": {"command": "true"}});
    let plan = json!({"name": "plan", "input": {"entries": [{"content": "look"}]}});
    check(json!([{"text": "hi"}]), &["user", "(1", "usage", "assistant", "1 end_turn)", "turn.completed"]).await;
    // The messages and calls of an answer are inside the brackets of its request; the calls run
    // after it.
    let log = check(
        json!([{"thinking": "hm", "text": "look", "tool_calls": [plan]}, {"tool_calls": [bash]}, {"text": "done"}]),
        &[
            "user",
            "(1",
            "usage",
            "thought",
            "assistant",
            "call plan",
            "1 tool_calls)",
            "result plan",
            "(2",
            "usage",
            "call bash",
            "2 tool_calls)",
            "result bash",
            "(3",
            "usage",
            "assistant",
            "3 end_turn)",
            "turn.completed",
        ],
    )
    .await;
    // A step names the model, and its usage is that of its request.
    let bodies = |kind: &str| log.iter().map(|event| &event["body"]).filter(|body| body["type"] == kind).collect::<Vec<_>>();
    for ((started, completed), usage) in bodies("step.started").iter().zip(bodies("step.completed")).zip(bodies("usage.updated")) {
        assert_eq!((&started["model"], &completed["model"]), (&usage["model"], &usage["model"]));
        let counted = |name: &str| (completed["usage"][name].clone(), usage[name].clone());
        for name in ["inputTokens", "outputTokens"] {
            let (of_step, of_event) = counted(name);
            assert!(of_step.is_u64() && of_step == of_event, "{completed} {usage}");
        }
        assert_eq!(completed.get("error"), None, "{completed}");
    }
}

#[tokio::test]
async fn failed_and_retried_requests_have_an_end() {
    let said = |log: &[Value], outcome: &str| {
        let step = log.iter().map(|event| &event["body"]).find(|body| body["outcome"] == outcome).unwrap();
        assert_eq!(step.get("usage"), None, "{step}");
        step["error"].as_str().unwrap().to_string()
    };
    let log = check(json!([{"expect": "never said"}]), &["user", "(1", "1 failed)", "turn.failed"]).await;
    assert!(said(&log, "failed").contains("never said"));
    let log = check(
        json!([{"text": "at last", "error": {"status": 503, "times": 2}}]),
        &["user", "(1", "1 retried)", "(2", "2 retried)", "(3", "usage", "assistant", "3 end_turn)", "turn.completed"],
    )
    .await;
    assert!(said(&log, "retried").contains("503"));
}

/// Starts a turn and reads until its answer has begun.
async fn answering(home: &Home) -> (Agent, String, Value) {
    let slow = json!([{"text": "word ".repeat(2000), "chunk_chars": 1, "delay_ms": 20}]);
    let (mut agent, session) = home.session(slow, &[]).await;
    let id = agent.prompt(&session, "go").await;
    agent.until_update("agent_message_chunk").await;
    (agent, session, id)
}

#[tokio::test]
async fn cancelled_request_has_an_end() {
    let home = Home::new();
    let (mut agent, session, id) = answering(&home).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    agent.finish().await;
    assert_eq!(outline(&home.log(&session).await), ["user", "(1", "assistant", "1 cancelled)", "turn.cancelled"]);
}

#[tokio::test]
async fn request_of_killed_process_has_an_end() {
    let home = Home::new();
    let (agent, session, _) = answering(&home).await;
    agent.kill().await;
    assert_eq!(outline(&home.log(&session).await), ["user", "(1"]);
    let (mut agent, _) = home.session(json!([{"text": "again"}]), &[]).await;
    agent.load(&home, &session).await;
    agent.turn(&session, "go on").await;
    agent.finish().await;
    let closed = ["user", "(1", "assistant", "1 interrupted)", "turn.interrupted"];
    let next = ["user", "(1", "usage", "assistant", "1 end_turn)", "turn.completed"];
    assert_eq!(outline(&home.log(&session).await), [&closed[..], &next[..]].concat());
}

/// A turn has the model of its requests. The turns of an older version have no step events.
#[tokio::test]
async fn turns_have_their_model() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "one"}]), &[]).await;
    agent.turn(&session, "first").await;
    let second = home.script(json!([{"text": "two"}]));
    agent.call("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": second})).await;
    agent.turn(&session, "second").await;
    let turns = agent.call("_nuncio/session/turns", json!({"sessionId": session})).await["turns"].clone();
    agent.finish().await;
    assert!(turns[0]["model"].as_str().unwrap().starts_with("scripted:") && turns[0]["model"] != turns[1]["model"], "{turns}");
    assert_eq!(turns[1]["model"], json!(second));

    let hidden = "UPDATE events SET body = replace(body, '\"step.', '\"older.') WHERE body LIKE '%\"step.%' RETURNING id";
    assert_eq!(home.sql(hidden).len(), 4);
    let mut agent = home.start(&["--model", &second]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    assert_eq!(agent.call("_nuncio/session/turns", json!({"sessionId": session})).await["turns"], turns);
    agent.finish().await;
}
