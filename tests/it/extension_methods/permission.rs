//! Permission requests listed and answered by methods, while a client has the same request.

use serde_json::{Value, json};

use super::refused;
use harness::{Agent, Home, Reply, tool};

/// Starts an agent whose turn waits for a permission. Returns the id of the prompt and the listed
/// permission request too.
async fn asking(home: &Home) -> (Agent, String, Value, Value) {
    let steps = json!([{"tool_calls": [{"name": "bash", "input": {"command": "echo done > a.txt"}}]}, {"text": "so it is"}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.otherwise = Reply::Never;
    let prompt = agent.prompt(&session, "go").await;
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    let listed = agent.call("_nuncio/permission/list", json!({})).await;
    assert_eq!(listed["permissions"].as_array().unwrap().len(), 1, "{listed}");
    (agent, session, prompt, listed["permissions"][0].clone())
}

#[tokio::test]
async fn open_permission_requests_are_listed() {
    let home = Home::new();
    let (mut agent, session, prompt, open) = asking(&home).await;
    let params = agent.asked[0].1.clone();
    assert_eq!(open["sessionId"], json!(session));
    assert!(open["turnId"].as_str().unwrap().starts_with("turn_") && open.get("deadlineMs").is_none(), "{open}");
    let call = &open["toolCall"];
    assert_eq!((&call["toolCallId"], &call["title"]), (&params["toolCall"]["toolCallId"], &params["toolCall"]["title"]));
    assert_eq!((&call["kind"], &call["input"]), (&json!("execute"), &json!({"command": "echo done > a.txt"})));
    assert!(call["content"].is_array() && call["locations"].is_array(), "{call}");
    assert_eq!(open["options"], params["options"]);
    let other = agent.new_session(&home).await;
    for (session, count) in [(&session, 1), (&other, 0)] {
        let listed = agent.call("_nuncio/permission/list", json!({"sessionId": session})).await;
        assert_eq!(listed["permissions"].as_array().unwrap().len(), count, "{listed}");
    }
    refused(&mut agent, &[("_nuncio/permission/list", json!({"sessionId": "x"}), -32002, "x")]).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&prompt).await.unwrap();
    assert_eq!(agent.call("_nuncio/permission/list", json!({})).await, json!({"permissions": []}));
    agent.finish().await;
}

#[tokio::test]
async fn permission_request_to_client_is_answered_by_method() {
    // Answer, outcome in the log, status of the call.
    let cases = [
        (json!({"outcome": "allow_once"}), "allow_once", "completed"),
        (json!({"outcome": "allow_always"}), "allow_always", "completed"),
        (json!({"outcome": "reject_once", "reason": "not today"}), "reject_once", "failed"),
        (json!({"optionId": 0}), "allow_once", "completed"),
    ];
    for (answer, outcome, status) in cases {
        let home = Home::new();
        let (mut agent, session, prompt, open) = asking(&home).await;
        let id = &open["permissionId"];
        let with = |more: Value| {
            let mut params = json!({"permissionId": id});
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            params
        };
        refused(
            &mut agent,
            &[
                ("_nuncio/permission/answer", with(json!({})), -32602, "optionId"),
                ("_nuncio/permission/answer", with(json!({"optionId": "allow", "outcome": "allow_once"})), -32602, "optionId"),
                ("_nuncio/permission/answer", with(json!({"optionId": "no such"})), -32602, "optionId"),
                ("_nuncio/permission/answer", with(json!({"outcome": "denied"})), -32602, "outcome"),
                ("_nuncio/permission/answer", json!({"permissionId": "x", "outcome": "allow_once"}), -32002, "x"),
            ],
        )
        .await;
        let mut answer = answer;
        if answer.get("optionId").is_some() {
            answer["optionId"] = open["options"][0]["optionId"].clone();
        }
        assert_eq!(agent.call("_nuncio/permission/answer", with(answer.clone())).await, json!({}));
        assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
        assert_eq!(agent.asked, [], "the client's question is taken back");
        assert_eq!(tool(&agent.updates(&session), 0)["status"], status, "{answer}");
        refused(&mut agent, &[("_nuncio/permission/answer", with(answer.clone()), -32002, outcome)]).await;
        agent.finish().await;
        let log = home.log(&session).await;
        let resolved = log.iter().find(|event| event["body"]["type"] == "permission.resolved").unwrap();
        assert_eq!((&resolved["body"]["outcome"], &resolved["body"]["reason"]), (&json!(outcome), &answer["reason"]), "{resolved}");
        assert_eq!(resolved["body"]["by"], "client");
    }
}
