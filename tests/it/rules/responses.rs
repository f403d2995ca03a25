//! The answers to refused requests.

use harness::provider::session::{connect, home};
use harness::provider::{Exchange, KEY, Protocol, Provider};
use harness::rules::{Platform, Refusal, response};
use harness::wires::WIRES;

fn refusal() -> Refusal {
    Refusal { rule: 1, place: "tools[0]".into(), message: "words".into(), code: None, status: 400 }
}

#[test]
fn error_has_the_shape_of_the_provider() {
    let cases = [
        (Protocol::Anthropic, Platform::Anthropic, r#""type":"error","error":{"type":"invalid_request_error","message":"words"}"#),
        (
            Protocol::OpenaiChat,
            Platform::OpenAi,
            r#"{"error":{"message":"words","type":"invalid_request_error","param":"tools[0]""#,
        ),
        (Protocol::OpenaiChat, Platform::Mistral, r#"{"object":"error","message":"words""#),
        (Protocol::OpenaiChat, Platform::Zai, r#"{"error":{"code":"1210","message":"words"}}"#),
        (Protocol::OpenaiChat, Platform::Minimax, r#""http_code":"400""#),
        (Protocol::OpenaiChat, Platform::OpenRouter, r#""metadata":{"raw":"{\"error\""#),
        (Protocol::Gemini, Platform::Gemini, r#"{"error":{"code":400,"message":"words","status":"INVALID_ARGUMENT"}}"#),
        (Protocol::Bedrock, Platform::Bedrock, r#"{"message":"words"}"#),
        (Protocol::Ollama, Platform::Ollama, r#"{"error":"words"}"#),
    ];
    for (protocol, platform, expected) in cases {
        let text = response(protocol, platform, &refusal()).text();
        assert!(text.contains(expected), "{platform:?}: {text}");
    }
}

/// Sends a request without its model to a provider. Returns the answer.
async fn refused(provider: &Provider) -> String {
    let address = provider.base_url.trim_start_matches("http://").parse().unwrap();
    let bridge = harness::Bridge { address, token: KEY.into() };
    let body = serde_json::json!({"model": "claude-sonnet-5", "max_tokens": 1, "messages": [{"role": "user", "content": " "}]});
    bridge.post("/v1/messages", &body).send().await.body
}

#[tokio::test]
async fn provider_answers_with_a_refusal_and_fails_the_test() {
    let provider = Provider::start(Protocol::Anthropic, vec![]).await;
    let answer = refused(&provider).await;
    assert!(answer.contains("messages.0.content: text content blocks must contain non-whitespace text"), "{answer}");
    let failed = tokio::spawn(provider.finish()).await.unwrap_err().into_panic();
    let words = failed.downcast_ref::<String>().unwrap();
    assert!(words.contains("rule 17, messages.0.content"), "{words}");
}

#[tokio::test]
async fn rule_can_be_turned_off() {
    let provider = Provider::start(Protocol::Anthropic, vec![Exchange::events(&["{}"])]).await;
    provider.lax(&[17]);
    assert!(!refused(&provider).await.contains("whitespace"));
    assert_eq!(provider.finish_unchecked().await.len(), 1);
}

#[tokio::test]
async fn accepted_requests_are_answered_as_scripted() {
    for wire in WIRES {
        let (home, provider, name) = home(wire, vec![Exchange::events(wire.plain)]).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        assert_eq!(agent.turn(&session, "hi").await.0, "end_turn", "{name}");
        agent.finish().await;
        provider.finish().await;
    }
}
