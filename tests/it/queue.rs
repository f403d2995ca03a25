//! Queued messages: list, edit and remove, over ACP, REST and other processes.

mod changes;
mod retry;

use serde_json::{Value, json};

use harness::Agent;

pub const QUEUE: &str = "_nuncio/session/queue";
pub const EDIT: &str = "_nuncio/session/queue/edit";
pub const REMOVE: &str = "_nuncio/session/queue/remove";

/// Sends a message to a busy session and returns its id.
pub async fn send(agent: &mut Agent, session: &str, text: &str, more: Value) -> String {
    let mut params = json!({"sessionId": session, "parts": [{"type": "text", "text": text}]});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let sent = agent.call("_nuncio/session/message", params).await;
    sent["messageId"].as_str().unwrap().to_owned()
}

/// Answers the open permission request and reads until the prompt is answered.
pub async fn allow(agent: &mut Agent, prompt: &Value) -> Value {
    agent.allow_open().await;
    agent.answer(prompt).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Delivery and text of the queued messages.
pub async fn queue(agent: &mut Agent, session: &str) -> Vec<String> {
    let queue = agent.call(QUEUE, json!({"sessionId": session})).await;
    let show =
        |message: &Value| format!("{} {}", message["delivery"].as_str().unwrap(), message["parts"][0]["text"].as_str().unwrap());
    queue["messages"].as_array().unwrap().iter().map(show).collect()
}

/// Turn (from 0), role and text of the messages in a log.
pub fn said(log: &[Value]) -> Vec<String> {
    let mut turns: Vec<&Value> = Vec::new();
    let mut said = Vec::new();
    for event in log {
        let body = &event["body"];
        if body["type"] == "turn.started" {
            turns.push(&event["turnId"]);
        }
        if body["type"] == "message.completed" && body["discarded"] != true {
            let turn = turns.iter().position(|turn| **turn == event["turnId"]).map_or("-".into(), |place| place.to_string());
            let texts = body["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
            said.push(format!("{turn} {} {}", body["role"].as_str().unwrap(), texts.collect::<Vec<_>>().join("+")));
        }
    }
    said
}

/// Waits until a session runs no turn.
pub async fn until_idle(agent: &mut Agent, session: &str) {
    let wait = async {
        loop {
            let view = agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
            if view["status"] != "busy" && view["queued"] == 0 {
                return;
            }
        }
    };
    harness::bounded("the session is idle", wait).await;
}
