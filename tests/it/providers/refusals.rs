//! Sessions whose provider refuses a part of the conversation: no session is stuck.

use serde_json::{Value, json};

use harness::provider::session::{connect, home};
use harness::provider::{Exchange, Protocol};
use harness::wires::WIRES;
use harness::{Agent, notices};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async fn prompt(agent: &mut Agent, session: &str, parts: Value) {
    let params = json!({ "sessionId": session, "prompt": parts });
    let answer = agent.call("session/prompt", params).await;
    assert_eq!(answer["stopReason"], "end_turn");
}

/// An image that the provider refuses does not stop the session: not later prompts, not another
/// process, not a compaction and not a fork.
#[tokio::test]
async fn session_with_a_refused_image_goes_on() {
    for wire in WIRES.iter().filter(|wire| wire.protocol != Protocol::Ollama) {
        let (home, provider, name) = home(wire, Vec::new()).await;
        let (refused, plain) =
            (Exchange::error(400, r#"{"error":{"message":"Could not process image"}}"#), Exchange::events(wire.plain));
        provider.respond(move |received| if received.text.contains(PNG) { refused.clone() } else { plain.clone() });
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let image = json!({ "type": "image", "mimeType": "image/png", "data": PNG });
        prompt(&mut agent, &session, json!([{ "type": "text", "text": "look" }, image])).await;
        assert_eq!(notices(&agent.updates(&session)).len(), 1, "{name}: one notice");
        prompt(&mut agent, &session, json!([{ "type": "text", "text": "and now" }])).await;
        agent.kill().await;

        let mut agent = connect(&home).await;
        agent.load(&home, &session).await;
        prompt(&mut agent, &session, json!([{ "type": "text", "text": "again" }])).await;
        prompt(&mut agent, &session, json!([{ "type": "text", "text": "/compact" }])).await;
        let fork = agent.call("session/fork", json!({ "sessionId": session, "cwd": home.work(), "mcpServers": [] })).await;
        prompt(&mut agent, fork["sessionId"].as_str().unwrap(), json!([{ "type": "text", "text": "forked" }])).await;
        agent.finish().await;
        let received = provider.finish_unchecked().await;
        let refused = received.iter().filter(|received| received.text.contains(PNG)).count();
        assert_eq!((refused, received.len()), (1, 6), "{name}: the image was sent once");
        // What a person sent stays in the log.
        assert!(home.log(&session).await.iter().any(|event| event.to_string().contains(PNG)));
    }
}

/// Rule 40, in the harness itself: a provider reports a request that it has refused before.
#[tokio::test]
async fn provider_reports_a_refused_request_that_is_sent_again() {
    let wire = WIRES.iter().find(|wire| wire.protocol == Protocol::OpenaiChat).expect("a wire");
    let (home, provider, _) = home(wire, Vec::new()).await;
    provider.otherwise(Exchange::error(400, r#"{"error":{"message":"We do not like you."}}"#));
    let server = home.serve(&[]).await;
    let session = server.new_session(&home).await;
    let turn = server.begin(&session, "hi").await;
    server.follow(&session).events().await.until("turn.failed").await;
    server.post(&format!("/v1/sessions/{session}/turns/{turn}/retry"), &json!({})).expect(202).await;
    server.follow(&session).events().await.until("turn.failed").await;
    server.stop().await;
    let failed = tokio::spawn(provider.finish_unchecked()).await.expect_err("the same request twice").into_panic();
    let words = failed.downcast_ref::<String>().expect("a message");
    assert!(words.contains("rule 40"), "{words}");
}
