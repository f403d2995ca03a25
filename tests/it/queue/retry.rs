//! Retries of a turn: the request equals that of the turn's start, however the turn ended.

use serde_json::{Value, json};

use super::{said, send, until_idle};
use harness::busy;
use harness::provider::Exchange;
use harness::provider::session::{connect, conversation, home};
use harness::steps::{asks, says};
use harness::wires::WIRES;
use harness::{Agent, Home};

const RETRY: &str = "_nuncio/session/retry";

async fn last_turn(agent: &mut Agent, session: &str) -> Value {
    let turns = agent.call("_nuncio/session/turns", json!({"sessionId": session})).await;
    turns["turns"].as_array().unwrap().last().unwrap().clone()
}

/// A turn that was cancelled or interrupted is retried with its attachment and without its partial
/// answer; a retry of the retry has the same context.
#[tokio::test]
async fn retry_repeats_the_request_of_a_stopped_turn() {
    let wire = &WIRES[0];
    for ended in ["cancelled", "interrupted"] {
        let hang = Exchange::events(&wire.plain[..4]).hang();
        let plain = Exchange::events(wire.plain);
        let (home, provider, _) = home(wire, vec![plain.clone(), hang, plain.clone(), plain.clone(), plain]).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "the first request").await;
        let data = harness::images::png(1, 1, false);
        let image = json!({"type": "image", "mimeType": "image/png", "data": data});
        let prompt = json!([{"type": "text", "text": "the second request"}, image]);
        let id = agent.send("session/prompt", json!({"sessionId": session, "prompt": prompt})).await;
        agent.until_update("agent_message_chunk").await;
        if ended == "cancelled" {
            agent.notify("session/cancel", json!({"sessionId": session})).await;
            agent.answer(&id).await.unwrap();
        } else {
            agent.kill().await;
            agent = connect(&home).await;
            agent.load(&home, &session).await;
        }
        for _ in 0..2 {
            let last = last_turn(&mut agent, &session).await;
            agent.call(RETRY, json!({"sessionId": session, "turnId": last["turnId"]})).await;
            until_idle(&mut agent, &session).await;
        }
        agent.turn(&session, "the third request").await;
        agent.finish().await;
        let received = provider.finish().await;
        assert!(conversation(&received[1]).iter().any(|message| message.to_string().contains(&data)), "{ended}");
        for retried in [2, 3] {
            assert_eq!(conversation(&received[retried]), conversation(&received[1]), "{ended}");
        }
        let told = received[4].body.to_string();
        assert_eq!(told.matches("the second request").count(), 1, "{ended}: {told}");
        let retries: Vec<Value> = home.log(&session).await.iter().map(|event| event["body"]["retries"].clone()).collect();
        assert_eq!(retries.iter().filter(|retries| retries.is_string()).count(), 2, "{ended}");
    }
}

/// Messages that were queued when a turn stopped stay queued during its retry, and run after it.
#[tokio::test]
async fn queued_messages_run_after_a_retry() {
    let home = Home::new();
    let steps = json!([asks(), says("first", "one"), says("second", "two")]);
    let (mut agent, session, prompt) = busy(&home, steps).await;
    send(&mut agent, &session, "second", json!({})).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&prompt).await.unwrap();
    let turn = last_turn(&mut agent, &session).await;
    agent.call(RETRY, json!({"sessionId": session, "turnId": turn["turnId"]})).await;
    until_idle(&mut agent, &session).await;
    agent.finish().await;
    let expected = ["0 user first", "1 user first", "1 assistant one", "2 user second", "2 assistant two"];
    assert_eq!(said(&home.log(&session).await), expected);
}

/// A retry repeats the messages that the turn accepted. If it accepted none, the retry repeats the
/// rejected ones.
#[tokio::test]
async fn retry_leaves_out_rejected_messages() {
    let home = Home::new();
    let steps = json!([asks(), says("second", "two"), says("second", "three")]);
    let (mut agent, session, prompt) = busy(&home, steps).await;
    let audio = json!([{"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="}]);
    agent.call("_nuncio/session/message", json!({"sessionId": session, "parts": audio})).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&prompt).await.unwrap();
    assert_eq!(agent.turn(&session, "second").await.0, "end_turn");
    let turn = last_turn(&mut agent, &session).await;
    agent.call(RETRY, json!({"sessionId": session, "turnId": turn["turnId"]})).await;
    until_idle(&mut agent, &session).await;
    let params = json!({"sessionId": session, "prompt": audio});
    agent.request("session/prompt", params).await.unwrap_err();
    let turn = last_turn(&mut agent, &session).await;
    let error = agent.request(RETRY, json!({"sessionId": session, "turnId": turn["turnId"]})).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("cannot read audio"), "{error}");
    agent.finish().await;
    let expected = ["0 user first", "1 user second", "1 assistant two", "2 user second", "2 assistant three"];
    assert_eq!(said(&home.log(&session).await), expected);
}
