//! Messages to idle and busy sessions, queued messages, and retried turns.

use serde_json::{Value, json};

use super::refused;
use harness::busy;
use harness::steps::{asks, says};
use harness::{Agent, Home, Reply, bounded};

/// A step with text and a call that requires permission; the text is logged before the question.
fn says_and_asks(expect: &str, text: &str) -> Value {
    json!({"expect": expect, "text": text, "tool_calls": asks()["tool_calls"]})
}

fn params(session: &str, text: &str, more: Value) -> Value {
    let mut params = json!({"sessionId": session, "parts": [{"type": "text", "text": text}]});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

async fn send(agent: &mut Agent, session: &str, text: &str, more: Value) -> Value {
    agent.call("_nuncio/session/message", params(session, text, more)).await
}

/// Reads until an update with this text of the agent or a user.
async fn until_said(agent: &mut Agent, text: &str) {
    let said = |frame: &Value| frame["params"]["update"]["content"]["text"].as_str().is_some_and(|said| said.ends_with(text));
    if !agent.frames.iter().any(said) {
        agent.until(text, said).await;
    }
}

/// All messages without the tool calls.
async fn written(agent: &mut Agent, session: &str) -> Vec<Value> {
    let page = agent.call("_nuncio/session/messages", json!({"sessionId": session})).await;
    page["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "tool").cloned().collect()
}

/// Turn (from 0), role and text of all messages without the tool calls.
async fn said(agent: &mut Agent, session: &str) -> Vec<String> {
    let messages = written(agent, session).await;
    let turns = agent.turns(session).await;
    let turn = |message: &Value| {
        let place = turns.iter().position(|turn| turn["turnId"] == message["turnId"]);
        place.map_or("-".into(), |place| place.to_string())
    };
    let show = |message: &Value| {
        format!("{} {} {}", turn(message), message["role"].as_str().unwrap(), message["parts"][0]["text"].as_str().unwrap())
    };
    messages.iter().map(show).collect()
}

async fn waiting(agent: &mut Agent, session: &str) -> u64 {
    agent.call("_nuncio/session/get", json!({"sessionId": session})).await["queued"].as_u64().unwrap()
}

#[tokio::test]
async fn message_starts_turn_in_idle_session() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([says_and_asks("hello", "hi")]), &[]).await;
    agent.otherwise = Reply::Never;
    let sent = send(&mut agent, &session, "hello", json!({})).await;
    agent.until_asked().await;
    agent.call("session/close", json!({"sessionId": session})).await;
    let model = home.script(json!([says("be brief", "yes")]));
    agent.call("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": model})).await;
    agent.call("session/close", json!({"sessionId": session})).await;
    let sent_silently = send(&mut agent, &session, "be brief", json!({"autoRun": false})).await;
    assert_eq!(sent_silently.get("turnId"), None, "{sent_silently}");
    agent.turn(&session, "go on").await;
    assert_eq!(
        said(&mut agent, &session).await,
        ["0 user hello", "0 assistant hi", "- user be brief", "1 user go on", "1 assistant yes"]
    );
    let messages = written(&mut agent, &session).await;
    assert_eq!((&messages[0]["messageId"], &messages[0]["turnId"]), (&sent["messageId"], &sent["turnId"]));
    assert_eq!(messages[2]["messageId"], sent_silently["messageId"]);
    refused(
        &mut agent,
        &[
            ("_nuncio/session/message", json!({"sessionId": session, "parts": []}), -32602, "parts"),
            ("_nuncio/session/message", json!({"sessionId": session}), -32602, "parts"),
            ("_nuncio/session/message", json!({"sessionId": session, "parts": [{"type": "x"}]}), -32602, "parts[0]"),
            ("_nuncio/session/message", params(&session, "x", json!({"role": "assistant"})), -32602, "role"),
            ("_nuncio/session/message", params(&session, "x", json!({"role": "system"})), -32602, "system prompt"),
            ("_nuncio/session/message", params(&session, "x", json!({"role": "tool"})), -32602, "result of a call"),
            ("_nuncio/session/message", params(&session, "x", json!({"delivery": "now"})), -32602, "delivery"),
            ("_nuncio/session/message", params("x", "x", json!({})), -32002, "x"),
        ],
    )
    .await;
    agent.finish().await;
}

#[tokio::test]
async fn queued_messages_run_in_separate_turns() {
    let home = Home::new();
    let steps = json!([asks(), says("first", "one"), says("second", "two"), says_and_asks("third", "three")]);
    let (mut agent, session, prompt) = busy(&home, steps).await;
    let second = send(&mut agent, &session, "second", json!({})).await;
    let third = send(&mut agent, &session, "third", json!({"delivery": "queue"})).await;
    assert_eq!((second.get("turnId"), third.get("turnId"), waiting(&mut agent, &session).await), (None, None, 2));
    agent.allow_open().await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    agent.until_asked().await;
    assert_eq!(
        said(&mut agent, &session).await,
        ["0 user first", "0 assistant one", "1 user second", "1 assistant two", "2 user third", "2 assistant three"]
    );
    let messages = written(&mut agent, &session).await;
    assert_eq!((&messages[2]["messageId"], &messages[4]["messageId"]), (&second["messageId"], &third["messageId"]));
    // A client displays its own prompts itself; queued messages are sent to it when their turn
    // starts.
    for (text, shown) in [("first", 0), ("second", 1), ("third", 1)] {
        let chunks = agent.updates(&session).into_iter().filter(|update| update["content"]["text"] == text);
        assert_eq!(chunks.filter(|update| update["sessionUpdate"] == "user_message_chunk").count(), shown, "{text}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn message_steers_running_turn() {
    let home = Home::new();
    let steps =
        json!([asks(), {"expect": "look left", "text": "left", "chunk_chars": 2, "delay_ms": 1000}, says("and right", "right")]);
    let (mut agent, session, prompt) = busy(&home, steps).await;
    let sent = send(&mut agent, &session, "look left", json!({"delivery": "steer"})).await;
    assert_eq!(sent["turnId"], agent.turns(&session).await[0]["turnId"]);
    agent.allow_open().await;
    // The turn is about to end when the next message arrives, and continues.
    agent.until_update("agent_message_chunk").await;
    send(&mut agent, &session, "and right", json!({"delivery": "steer"})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(
        said(&mut agent, &session).await,
        ["0 user first", "0 user look left", "0 assistant left", "0 user and right", "0 assistant right"]
    );
    agent.finish().await;
    let log = home.log(&session).await;
    let place = |fits: &dyn Fn(&Value) -> bool| log.iter().position(|event| fits(&event["body"])).unwrap();
    let result = place(&|body| body["type"] == "tool.completed");
    let steered = place(&|body| body["type"] == "message.completed" && body["messageId"] == sent["messageId"]);
    assert!(result < steered, "{result} {steered}");
}

#[tokio::test]
async fn queued_message_runs_in_next_turn_after_cancel() {
    let home = Home::new();
    let (mut agent, session, prompt) = busy(&home, json!([asks(), says("earlier", "both")])).await;
    send(&mut agent, &session, "earlier", json!({})).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled");
    assert_eq!((waiting(&mut agent, &session).await, agent.turns(&session).await.len()), (1, 1));
    agent.turn(&session, "later").await;
    assert_eq!(said(&mut agent, &session).await, ["0 user first", "1 user earlier", "1 user later", "1 assistant both"]);
    assert_eq!(waiting(&mut agent, &session).await, 0);
    agent.finish().await;
}

#[tokio::test]
async fn message_without_turn_is_added_after_running_turn() {
    let home = Home::new();
    let (mut agent, session, prompt) = busy(&home, json!([asks(), says("first", "one"), says("by the way", "two")])).await;
    send(&mut agent, &session, "by the way", json!({"autoRun": false})).await;
    agent.allow_open().await;
    agent.answer(&prompt).await.unwrap();
    until_said(&mut agent, "by the way").await;
    assert_eq!(agent.turns(&session).await.len(), 1);
    agent.turn(&session, "and").await;
    assert_eq!(
        said(&mut agent, &session).await,
        ["0 user first", "0 assistant one", "- user by the way", "1 user and", "1 assistant two"]
    );
    agent.finish().await;
}

#[tokio::test]
async fn queued_messages_survive_kill() {
    let home = Home::new();
    let (mut agent, session, _) = busy(&home, json!([asks()])).await;
    send(&mut agent, &session, "earlier", json!({})).await;
    send(&mut agent, &session, "aside", json!({"autoRun": false})).await;
    send(&mut agent, &session, "steering", json!({"delivery": "steer"})).await;
    agent.kill().await;
    let mut agent = home.start(&["--model", &home.script(json!([says("earlier", "all")]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.call("session/resume", json!({"sessionId": session, "cwd": home.work()})).await;
    assert_eq!((waiting(&mut agent, &session).await, agent.turns(&session).await.len()), (2, 1));
    agent.turn(&session, "later").await;
    assert_eq!(
        said(&mut agent, &session).await,
        ["0 user first", "- user aside", "1 user earlier", "1 user steering", "1 user later", "1 assistant all"]
    );
    agent.finish().await;
}

#[tokio::test]
async fn number_of_queued_messages_is_limited() {
    let home = Home::new();
    let (mut agent, session, prompt) = busy(&home, json!([asks()])).await;
    let mut sent = Vec::new();
    for number in 0..70 {
        sent.push(agent.send("_nuncio/session/message", params(&session, &number.to_string(), json!({}))).await);
    }
    let mut taken = 0;
    for id in &sent {
        match agent.answer(id).await {
            Ok(_) => taken += 1,
            Err(error) => assert_eq!(error["code"], -32001, "{error}"),
        }
    }
    assert_eq!((taken, waiting(&mut agent, &session).await), (64, 64));
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&prompt).await.unwrap();
    agent.finish().await;
}

/// A cancel after a message cancels the turn that the message starts.
#[tokio::test]
async fn message_and_cancel_keep_their_order() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "long", "delay_ms": 60_000}]), &[]).await;
    let sent = agent.send("_nuncio/session/message", params(&session, "go", json!({}))).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&sent).await.unwrap();
    // The next prompt runs or is refused: the first turn has ended or is about to end.
    let id = agent.prompt(&session, "again").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    let _ = agent.answer(&id).await;
    let status = bounded("the end of the turn", async {
        loop {
            let status = agent.turns(&session).await[0]["status"].clone();
            if status != "running" {
                return status;
            }
        }
    });
    assert_eq!(status.await, "cancelled");
    agent.finish().await;
}

/// A retry reads the prompt of the earlier turn before it starts the new one.
#[tokio::test]
async fn prompt_after_a_retry_waits_for_its_turn() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "one"}, {"text": "two"}, {"text": "three"}]), &[]).await;
    agent.turn(&session, "first").await;
    let turn = agent.turns(&session).await[0]["turnId"].clone();
    let retried = agent.send("_nuncio/session/retry", json!({"sessionId": session, "turnId": turn})).await;
    let prompted = agent.prompt(&session, "second").await;
    agent.answer(&retried).await.unwrap();
    agent.answer(&prompted).await.unwrap();
    assert_eq!(
        said(&mut agent, &session).await,
        ["0 user first", "0 assistant one", "1 user first", "1 assistant two", "2 user second", "2 assistant three"]
    );
    agent.finish().await;
}

#[tokio::test]
async fn turns_are_listed_and_retried() {
    let home = Home::new();
    let steps = json!([{"text": "one"}, {"expect": "never said"}, asks(), says_and_asks("fails", "better")]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.turn(&session, "works").await;
    let failed = agent.prompt(&session, "fails").await;
    agent.answer(&failed).await.unwrap_err();
    agent.otherwise = Reply::Never;
    let asked = agent.prompt(&session, "stopped").await;
    agent.until_asked().await;
    let all = agent.turns(&session).await;
    assert_eq!(all[2].get("endedAtMs").or(all[2].get("lastSeq")), None, "{}", all[2]);
    let again = |turn: &Value| json!({"sessionId": session, "turnId": turn["turnId"]});
    refused(
        &mut agent,
        &[
            ("_nuncio/session/retry", again(&all[1]), -32010, "working"),
            ("_nuncio/session/retry", again(&json!({"turnId": "turn_x"})), -32002, "turn_x"),
            ("_nuncio/session/turns", json!({"sessionId": session, "limit": 1000}), -32602, "limit"),
        ],
    )
    .await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&asked).await.unwrap();
    let started = agent.call("_nuncio/session/retry", again(&all[1])).await;
    agent.until_asked().await;

    let all = agent.turns(&session).await;
    let statuses: Vec<&str> = all.iter().map(|turn| turn["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["completed", "failed", "cancelled", "running"]);
    assert_eq!(all[3]["turnId"], started["turnId"]);
    assert_eq!((&all[0]["stopReason"], &all[1]["error"]["code"]), (&json!("end_turn"), &json!("model_error")));
    assert!(all[0]["by"].as_str().unwrap().starts_with("client"), "{}", all[0]);
    let seqs: Vec<u64> =
        all[..3].iter().flat_map(|turn| [turn["firstSeq"].as_u64().unwrap(), turn["lastSeq"].as_u64().unwrap()]).collect();
    assert!(seqs.is_sorted() && all[0]["startedAtMs"].as_u64() <= all[0]["endedAtMs"].as_u64(), "{seqs:?}");
    assert_eq!(
        said(&mut agent, &session).await,
        ["0 user works", "0 assistant one", "1 user fails", "2 user stopped", "3 user fails", "3 assistant better"]
    );
    let page = agent.call("_nuncio/session/turns", json!({"sessionId": session, "limit": 3})).await;
    let rest = agent.call("_nuncio/session/turns", json!({"sessionId": session, "cursor": page["nextCursor"]})).await;
    assert_eq!((page["turns"].as_array().unwrap().len(), rest["turns"].as_array().unwrap().len()), (3, 1));
    assert_eq!((rest.get("nextCursor"), &rest["turns"][0]["turnId"]), (None, &started["turnId"]));
    agent.finish().await;
}
