//! Differences of individual models and servers from their protocol.

use harness::provider::Protocol;
use nuncio::content::ProviderState;
use nuncio::internal::model::{Block, Message, Thinking};
use serde_json::{Value, json};

use super::{ask, blocks, hi, open, request, shown};
use harness::provider::{Exchange, Provider};
use harness::wires::{WIRES, Wire};

/// Returns the request body for a model.
async fn body(protocol: Protocol, model: &'static str, thinking: Thinking, messages: Vec<Message>) -> Value {
    let wire = WIRES.iter().find(|wire| wire.protocol == protocol).expect("all four are there");
    let provider = Provider::start(protocol, vec![Exchange::events(wire.plain)]).await;
    let mut request = request(messages);
    request.thinking = thinking;
    let answer = ask(open(&Wire { model, ..*wire }, &provider.base_url).as_ref(), request).await;
    assert_eq!(answer.error, None);
    provider.finish().await.remove(0).body
}

#[tokio::test]
async fn thinking_parameters_depend_on_model() {
    use Protocol::{Anthropic, Gemini, OpenaiChat, OpenaiResponses};
    use Thinking::{High, Low, Medium, Minimal, Off};
    let adaptive = json!({ "type": "adaptive", "display": "summarized" });
    let bound =
        json!({ "type": "adaptive", "display": "summarized", "block_binding": { "prefix_mismatch_behavior": "drop_block" } });
    let cases = [
        (Anthropic, "claude-sonnet-4-5", High, "/thinking", json!({ "type": "enabled", "budget_tokens": 24000 })),
        (Anthropic, "claude-sonnet-4-5", Off, "/thinking", Value::Null),
        (Anthropic, "claude-3-5-haiku", High, "/thinking", json!({ "type": "enabled", "budget_tokens": 4096 })),
        (Anthropic, "claude-opus-4-7", Off, "/thinking", Value::Null),
        (Anthropic, "claude-opus-4-7", Medium, "/thinking", adaptive),
        (Anthropic, "claude-opus-4-7", Medium, "/output_config/effort", json!("medium")),
        (Anthropic, "claude-sonnet-5", Off, "/thinking", json!({ "type": "disabled" })),
        (Anthropic, "claude-sonnet-5-5", Off, "/thinking", bound),
        (Anthropic, "claude-sonnet-5-5", Off, "/output_config/effort", json!("low")),
        (Anthropic, "glm-5", Low, "/thinking", json!({ "type": "enabled", "budget_tokens": 4096 })),
        (OpenaiChat, "x", Off, "/reasoning_effort", Value::Null),
        (OpenaiChat, "x", High, "/reasoning_effort", json!("high")),
        (OpenaiResponses, "gpt-6.1-sol", Off, "/reasoning", json!({ "effort": "low" })),
        (OpenaiResponses, "gpt-5.5", Off, "/reasoning", json!({ "effort": "none" })),
        (OpenaiResponses, "gpt-5", Minimal, "/reasoning", json!({ "effort": "minimal", "summary": "auto" })),
        (OpenaiResponses, "gpt-4.1", High, "/reasoning", Value::Null),
        (OpenaiResponses, "gpt-4.1", High, "/include", Value::Null),
        (
            Gemini,
            "gemini-2.5-flash",
            Off,
            "/generationConfig/thinkingConfig",
            json!({ "thinkingBudget": 0, "includeThoughts": false }),
        ),
        (Gemini, "gemini-3.8-flash", High, "/generationConfig/thinkingConfig/thinkingLevel", json!("high")),
        (Gemini, "gemma-4", High, "/generationConfig/thinkingConfig", Value::Null),
    ];
    for (protocol, model, thinking, path, expected) in cases {
        let body = body(protocol, model, thinking, hi()).await;
        assert_eq!(body.pointer(path).unwrap_or(&Value::Null), &expected, "{model} {thinking:?}");
    }
}

/// A conversation started with another model: its thinking is omitted, its calls are sent.
#[tokio::test]
async fn calls_of_other_model_are_sent_without_its_thinking() {
    let state = Some(ProviderState {
        protocol: "elsewhere".to_owned(),
        value: json!({ "signature": "S", "thoughtSignature": "S" }),
        model: None,
    });
    let said = vec![
        Block::Thinking { text: "hm".to_owned(), state: state.clone() },
        Block::Text { text: "  ".to_owned(), state: state.clone() },
        Block::ToolCall { id: "call/1".into(), name: "read".to_owned(), input: json!("not an object"), input_text: None, state },
    ];
    let result = nuncio::internal::model::ToolResult {
        id: "call/1".into(),
        name: "read".to_owned(),
        output: vec![super::image(
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
        )],
        failed: true,
    };
    for wire in WIRES {
        let mut messages = hi();
        messages.push(Message::Assistant(said.clone()));
        messages.push(Message::ToolResults(vec![result.clone()]));
        if wire.protocol == Protocol::Anthropic {
            let body = body(wire.protocol, "claude-sonnet-4-5", Thinking::Low, messages.clone()).await;
            assert_eq!(body.get("thinking"), None, "it cannot go on with what it did not think");
        }
        let body = body(wire.protocol, wire.model, Thinking::Low, messages).await;
        let text = body.to_string();
        assert!(!text.contains("\"hm\"") && !text.contains("\"S\""), "{text}");
        assert!(text.contains(r#"{"input":"not an object"}"#) || text.contains(r#"{\"input\":\"not an object\"}"#), "{text}");
        if wire.protocol == Protocol::Gemini {
            assert_eq!(body["contents"][1]["parts"][1]["thoughtSignature"], "skip_thought_signature_validator");
        }
        if wire.protocol == Protocol::Anthropic {
            assert!(body["thinking"].is_object());
            let result = json!([{ "type": "text", "text": "[image/png image]" }]);
            assert_eq!(body["messages"][2]["content"][0]["content"], result, "an error is text");
            assert_eq!(body["messages"][1]["content"].as_array().map(Vec::len), Some(1), "blank text is left out");
        }
    }
}

/// Returns the chunks of a chat answer with these events, and the assistant's message in the next
/// request.
async fn chat(provider_name: &'static str, events: &[&str]) -> (String, Value) {
    let wire = &WIRES[1];
    let provider = Provider::start(wire.protocol, vec![Exchange::events(events), Exchange::events(wire.plain)]).await;
    let model = super::open_as(provider_name, wire, &provider.base_url);
    let answer = ask(model.as_ref(), request(hi())).await;
    assert_eq!(answer.error, None);
    let said: Vec<Block> = blocks(&answer.chunks).into_iter().filter(|block| !matches!(block, Block::ToolCall { .. })).collect();
    let mut messages = hi();
    messages.push(Message::Assistant(said));
    assert_eq!(ask(model.as_ref(), request(messages)).await.error, None);
    let received = provider.finish().await;
    (shown(&answer.chunks), received[1].body["messages"][2].clone())
}

#[tokio::test]
async fn deviations_of_chat_servers_are_supported() {
    // All calls have index 0 or none; there is no `[DONE]`.
    let (said, _) = chat(
        "local",
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"list","arguments":"{\"path\":"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"id":"c","function":{"name":"grep"}}]},"finish_reason":"stop"}]}"#,
        ],
    )
    .await;
    assert_eq!(said, "call a read {}\ncall b list {\"path\":1}\ncall c grep {}\nstop EndTurn\n");

    // Mistral: content in parts.
    let (said, back) = chat(
        "mistral",
        &[
            r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}"#,
            r#"{"choices":[{"delta":{"content":"so"},"finish_reason":"stop"}]}"#,
            "[DONE]",
        ],
    )
    .await;
    assert_eq!(said, "thinking hm\nend thinking {\"provider\":\"mistral\"}\ntext so\nstop EndTurn\n");
    assert_eq!(back, json!({ "role": "assistant", "content": "so" }));

    // OpenRouter: fragments of `reasoning_details` are joined and sent back.
    let (_, back) = chat(
        "openrouter",
        &[
            r#"{"choices":[{"delta":{"reasoning":"h","reasoning_details":[{"type":"reasoning.text","text":"h","index":0,"format":"f"}]}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"m","reasoning_details":[{"type":"reasoning.text","text":"m","index":0}]}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","signature":"S","index":0}]}}]}"#,
            r#"{"choices":[{"delta":{"content":"so"},"finish_reason":"stop"}]}"#,
            "[DONE]",
        ],
    )
    .await;
    let details = json!([{ "type": "reasoning.text", "format": "f", "index": 0, "text": "hm", "signature": "S" }]);
    assert_eq!(back, json!({ "role": "assistant", "content": "so", "reasoning_details": details }));
}
