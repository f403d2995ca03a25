//! Changes of queued messages: what is delivered, and which changes are refused.

use serde_json::{Value, json};

use super::{EDIT, QUEUE, REMOVE, allow, queue, said, send, until_idle};
use harness::busy;
use harness::steps::{asks, says};
use harness::{Agent, Home};

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

async fn change(agent: &mut Agent, method: &str, session: &str, message: &str, more: Value) -> Result<Value, Value> {
    let mut params = json!({"sessionId": session, "messageId": message});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent.request(method, params).await
}

#[tokio::test]
async fn changed_messages_are_delivered_as_they_are_at_last() {
    let home = Home::new();
    let steps = json!([asks(), says("now", "steered"), says("better", "two"), says("last", "three")]);
    let (mut agent, session, prompt) = busy(&home, steps).await;
    let second = send(&mut agent, &session, "second", json!({})).await;
    let third = send(&mut agent, &session, "third", json!({})).await;
    let fourth = send(&mut agent, &session, "fourth", json!({"delivery": "steer"})).await;
    send(&mut agent, &session, "last", json!({"delivery": "steer"})).await;
    assert_eq!(queue(&mut agent, &session).await, ["queue second", "queue third", "steer fourth", "steer last"]);
    change(&mut agent, EDIT, &session, &second, json!({"parts": text("better")})).await.unwrap();
    change(&mut agent, REMOVE, &session, &third, json!({})).await.unwrap();
    change(&mut agent, EDIT, &session, &fourth, json!({"parts": text("ignored")})).await.unwrap();
    change(&mut agent, EDIT, &session, &fourth, json!({"parts": text("now")})).await.unwrap();
    let last = agent.call(QUEUE, json!({"sessionId": session})).await["messages"][2]["messageId"].clone();
    change(&mut agent, EDIT, &session, last.as_str().unwrap(), json!({"delivery": "queue"})).await.unwrap();
    assert_eq!(queue(&mut agent, &session).await, ["queue better", "steer now", "queue last"]);
    assert_eq!(allow(&mut agent, &prompt).await["stopReason"], "end_turn");
    until_idle(&mut agent, &session).await;
    // A message that has left the queue cannot be changed any more.
    for (message, word) in [(&second, "delivered"), (&third, "removed"), (&fourth, "delivered")] {
        for (method, more) in [(EDIT, json!({"delivery": "queue"})), (REMOVE, json!({}))] {
            let error = change(&mut agent, method, &session, message, more).await.unwrap_err();
            assert!(error["code"] == -32002 && error["message"].as_str().unwrap().contains(word), "{error}");
        }
    }
    agent.finish().await;
    let log = home.log(&session).await;
    let expected = [
        "0 user first",
        "0 user now",
        "0 assistant steered",
        "1 user better",
        "1 assistant two",
        "2 user last",
        "2 assistant three",
    ];
    assert_eq!(said(&log), expected);
    let kinds: Vec<&str> = log.iter().filter_map(|event| event["body"]["type"].as_str()).collect();
    let count = |kind: &str| kinds.iter().filter(|found| **found == kind).count();
    assert_eq!((count("message.edited"), count("message.removed")), (4, 1));
}

#[tokio::test]
async fn invalid_changes_are_refused() {
    let home = Home::new();
    let (mut agent, session, prompt) = busy(&home, json!([asks()])).await;
    let queued = send(&mut agent, &session, "second", json!({})).await;
    let cases: &[(&str, &str, Value, i64, &str)] = &[
        (EDIT, &queued, json!({}), -32602, "parts"),
        (EDIT, &queued, json!({"parts": []}), -32602, "parts"),
        (EDIT, &queued, json!({"parts": [{"type": "x"}]}), -32602, "parts[0]"),
        (EDIT, &queued, json!({"delivery": "now"}), -32602, "delivery"),
        (EDIT, &queued, json!({"role": "system"}), -32602, "role"),
        (EDIT, "msg_none", json!({"delivery": "steer"}), -32002, "msg_none"),
        (REMOVE, "msg_none", json!({}), -32002, "msg_none"),
        (REMOVE, &queued, json!({"stray": 1}), -32602, "stray"),
    ];
    for (method, message, more, code, word) in cases {
        let error = change(&mut agent, method, &session, message, more.clone()).await.unwrap_err();
        assert!(error["code"] == *code && error["message"].as_str().unwrap().contains(word), "{method} {more}: {error}");
    }
    assert_eq!(queue(&mut agent, &session).await, ["queue second"]);
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&prompt).await.unwrap();
    agent.finish().await;
}

/// After a cancel, the messages wait for the next turn and can still be changed, also over REST in
/// another process and after a restart.
#[tokio::test]
async fn messages_of_stopped_turn_can_be_changed_in_another_process() {
    let home = Home::new();
    let (mut agent, session, prompt) = busy(&home, json!([asks(), says("changed", "one")])).await;
    let messages = [send(&mut agent, &session, "one", json!({})).await, send(&mut agent, &session, "two", json!({})).await];
    let server = home.serve(&[]).await;
    let path = |message: &str| format!("/v1/sessions/{session}/queue/{message}");
    let listed = server.ask("GET", &format!("/v1/sessions/{session}/queue")).send().await;
    assert_eq!(listed.json()["messages"][1]["messageId"], json!(messages[1]), "{listed:?}");
    // The editor's process owns the busy session.
    let removed = server.ask("DELETE", &path(&messages[1])).send().await;
    assert_eq!(removed.status, 200, "{removed:?}");
    assert_eq!(queue(&mut agent, &session).await, ["queue one"]);
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&prompt).await.unwrap();
    agent.finish().await;
    // No process owns the session now.
    let edited = server.ask("PUT", &path(&messages[0])).json(&json!({"parts": text("changed")})).send().await;
    assert_eq!(edited.status, 200, "{edited:?}");
    let again = server.ask("DELETE", &path(&messages[1])).send().await;
    assert_eq!(again.error(), (404, "not_found".into()), "{again:?}");
    server.stop().await;
    let model = home.script(json!([says("changed", "yes")]));
    let ran = home.run(&["run", "--model", &model, "--resume", &session, "go"], "").await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, "yes"), "{ran:?}");
    assert_eq!(said(&home.log(&session).await), ["0 user first", "1 user changed", "1 user go", "1 assistant yes"]);
}

/// Each message is changed while its turn is about to start: either the change is recorded before
/// the delivery and applies, or it is refused.
#[tokio::test]
async fn change_and_delivery_do_not_overlap() {
    let home = Home::new();
    let (mut agent, session, prompt) = busy(&home, json!([asks()])).await;
    let mut messages = Vec::new();
    for number in 0..20 {
        let delivery = if number % 3 == 0 { "steer" } else { "queue" };
        messages.push(send(&mut agent, &session, &format!("old {number}"), json!({"delivery": delivery})).await);
    }
    let open = agent.call("_nuncio/permission/list", json!({})).await["permissions"][0]["permissionId"].clone();
    let answer = agent.send("_nuncio/permission/answer", json!({"permissionId": open, "outcome": "allow_once"})).await;
    let mut changes = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        let (method, more) = match number % 2 {
            0 => (EDIT, json!({"sessionId": session, "messageId": message, "parts": text(&format!("new {number}"))})),
            _ => (REMOVE, json!({"sessionId": session, "messageId": message})),
        };
        changes.push(agent.send(method, more).await);
    }
    agent.answer(&answer).await.unwrap();
    agent.answer(&prompt).await.unwrap();
    let mut expected = Vec::new();
    for (number, id) in changes.iter().enumerate() {
        match (agent.answer(id).await, number % 2) {
            (Ok(_), 0) => expected.push(format!("new {number}")),
            (Ok(_), _) => {}
            (Err(error), _) => {
                assert_eq!(error["code"], -32002, "{error}");
                expected.push(format!("old {number}"));
            }
        }
    }
    until_idle(&mut agent, &session).await;
    agent.finish().await;
    let log = home.log(&session).await;
    let mut delivered: Vec<String> = said(&log)
        .iter()
        .filter_map(|said| said.split_once(" user ").map(|(_, text)| text.to_owned()))
        .filter(|text| text != "first")
        .collect();
    delivered.sort();
    expected.sort();
    assert_eq!(delivered, expected);
}
