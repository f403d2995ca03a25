//! Answers without text and calls.

use harness::provider::Protocol;
use serde_json::json;

use harness::provider::Exchange;
use harness::provider::session::{connect, conversation, home};
use harness::wires::{WIRES, Wire};
use harness::{notices, text};

/// The events of an answer that has only thoughts, or nothing.
fn without_text(wire: &Wire, thinks: bool) -> Exchange {
    let start = if thinks { wire.rich.iter().position(|event| event.contains("files.")).expect("there") + 1 } else { 0 };
    let end: &[&str] = match wire.protocol {
        Protocol::Anthropic => &[r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#, r#"{"type":"message_stop"}"#],
        Protocol::OpenaiChat => &[r#"{"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}"#],
        Protocol::OpenaiResponses => &[r#"{"type":"response.completed","response":{}}"#],
        Protocol::Gemini => &[r#"{"candidates":[{"finishReason":"STOP"}]}"#],
        Protocol::Bedrock => unreachable!("not in WIRES"),
        Protocol::Ollama => &[r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}"#],
    };
    let events: Vec<&str> = wire.rich[..start].iter().chain(end).copied().collect();
    Exchange::events(&events)
}

#[tokio::test]
async fn empty_answer_is_requested_once_more() {
    for wire in WIRES {
        for thinks in [false, true] {
            let answers = vec![without_text(wire, thinks), Exchange::events(wire.plain), Exchange::events(wire.plain)];
            let (home, provider, name) = home(wire, answers).await;
            let mut agent = connect(&home).await;
            let session = agent.new_session(&home).await;
            let (stop, updates) = agent.turn(&session, "hi").await;
            assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "Hello"), "{name}");
            assert_eq!(notices(&updates).len(), 1, "{name}: {:?}", notices(&updates));
            agent.turn(&session, "again").await;
            agent.finish().await;
            let received = provider.finish().await;
            // The second request differs: the same one may have the same answer.
            let told = |index: usize| json!(conversation(&received[index])).to_string();
            assert!(!told(0).contains("was empty") && told(1).contains("Your last answer was empty"), "{name}: {}", told(1));
            assert!(!told(2).contains("was empty"), "{name}: {}", told(2));
            assert!(!json!(conversation(&received[2])).to_string().contains("Two files."), "{name}");
        }
    }
}

#[tokio::test]
async fn second_empty_answer_is_an_error() {
    for wire in WIRES {
        let (home, provider, name) = home(wire, vec![without_text(wire, false), without_text(wire, true)]).await;
        let ran = home.run(&["run", "hi"], "").await;
        assert_eq!(ran.code, 1, "{name}: {ran:?}");
        assert!(ran.stderr.contains("answered twice without text"), "{name}: {ran:?}");
        provider.finish().await;
    }
}

#[tokio::test]
async fn second_empty_answer_after_tool_calls_is_a_failed_turn() {
    for wire in WIRES {
        let answers = vec![Exchange::events(wire.rich), without_text(wire, false), without_text(wire, true)];
        let (home, provider, name) = home(wire, answers).await;
        let ran = home.run(&["run", "read a and b"], "").await;
        assert_eq!(ran.code, 1, "{name}: {ran:?}");
        assert!(ran.stderr.contains("answered twice without text"), "{name}: {ran:?}");
        let received = provider.finish().await;
        let told = |index: usize| json!(conversation(&received[index])).to_string();
        assert!(!told(1).contains("was empty") && told(2).contains("Your last answer was empty"), "{name}: {}", told(2));
    }
}

/// A model that answers after the note goes on with its work.
#[tokio::test]
async fn call_after_an_empty_answer_goes_on() {
    for wire in WIRES {
        let (rich, plain) = (Exchange::events(wire.rich), Exchange::events(wire.plain));
        let answers = vec![without_text(wire, false), rich, without_text(wire, true), plain];
        let (home, provider, name) = home(wire, answers).await;
        let ran = home.run(&["run", "read a and b"], "").await;
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        assert!(ran.stdout.contains("Hello"), "{name}: {ran:?}");
        provider.finish().await;
    }
}
