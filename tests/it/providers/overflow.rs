//! Conversations that exceed the model's context window: the error, and the requests after it.

use serde_json::{Value, json};

use super::told;
use harness::provider::Exchange;
use harness::provider::session::{connect, home};
use harness::text;
use harness::wires::{WIRES, Wire};

use harness::provider::Protocol;

/// The size of a conversation that the provider accepts, in bytes.
const WINDOW: usize = 6000;

/// The rejection of a larger conversation, in the words of a provider of this protocol.
fn rejection(wire: &Wire) -> Exchange {
    let (status, body) = match wire.protocol {
        Protocol::Anthropic => (
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 15546 tokens > 8192 maximum"}}),
        ),
        Protocol::OpenaiChat => (
            400,
            json!({"error": {"code": 400, "message": "request (15546 tokens) exceeds the available context size (8192 tokens), try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 15546, "n_ctx": 8192}}),
        ),
        Protocol::OpenaiResponses => (
            400,
            json!({"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 15546 tokens.", "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}}),
        ),
        Protocol::Gemini => (
            400,
            json!({"error": {"code": 400, "message": "The input token count (15546) exceeds the maximum number of tokens allowed (8192).", "status": "INVALID_ARGUMENT"}}),
        ),
        Protocol::Bedrock => unreachable!("not in WIRES"),
        Protocol::Ollama => (
            400,
            json!({"error": "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the context length in settings, or use a model with a longer context length"}),
        ),
    };
    Exchange::error(status, &body.to_string())
}

#[tokio::test]
async fn prompt_that_exceeds_window_is_left_out_of_later_requests() {
    for wire in WIRES {
        let plain = Exchange::events(wire.plain);
        let (home, provider, name) = home(wire, vec![plain.clone(), plain.clone(), plain]).await;
        provider.reject_larger(WINDOW, rejection(wire));
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "first").await;
        let id = agent.prompt(&session, &"large ".repeat(WINDOW / 6)).await;
        let error = agent.answer(&id).await.expect_err("an overflow");
        assert!(error["message"].as_str().unwrap().contains("exceeds the model's context window"), "{name}: {error}");
        let mut facts = json!({"cause": "context_overflow", "requestTokens": 15546, "contextWindow": 8192});
        if wire.protocol == Protocol::Ollama {
            facts = json!({"cause": "context_overflow"});
        }
        assert_eq!(error["data"]["info"], facts, "{name}: {error}");

        let (stop, updates) = agent.turn(&session, "second").await;
        assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "Hello"), "{name}");
        agent.finish().await;
        // A process that reads the session from the log omits the turn too.
        let mut agent = connect(&home).await;
        assert_eq!(agent.turn(&session, "third").await.0, "end_turn", "{name}");
        agent.finish().await;

        let log = home.log(&session).await;
        let failed: Vec<&Value> = log.iter().filter(|event| event["body"]["type"] == "turn.failed").collect();
        assert_eq!(failed.len(), 1, "{name}");
        assert_eq!(failed[0]["body"]["info"], facts, "{name}: {failed:?}");
        for remedy in ["shorten", "new session", "larger context window"] {
            assert!(failed[0]["body"]["hint"].as_str().unwrap().contains(remedy), "{name}: {failed:?}");
        }
        let received = provider.finish().await;
        assert_eq!(received.len(), 4, "{name}: the rejected request is not repeated");
        for later in &received[2..] {
            assert!(told(later).contains("first") && told(later).contains("second"), "{name}: {}", told(later));
            assert!(!told(later).contains("large large"), "{name}: {}", told(later));
        }
    }
}

#[tokio::test]
async fn tool_result_that_exceeds_window_is_compacted() {
    for wire in WIRES {
        let (home, provider, name) = home(wire, vec![Exchange::events(wire.rich)]).await;
        provider.reject_larger(WINDOW, rejection(wire));
        provider.otherwise(Exchange::events(wire.plain));
        home.put("a", &"large\n".repeat(WINDOW / 6));
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let (stop, updates) = agent.turn(&session, "read a and b").await;
        assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "Reading.Hello"), "{name}");
        assert_eq!(agent.turn(&session, "go on").await.0, "end_turn", "{name}");
        agent.finish().await;
        let received = provider.finish().await;
        let prompts: Vec<String> = received.iter().map(told).collect();
        // The calls, the rejection, the summary, the repeated request, the next prompt.
        assert_eq!(prompts.len(), 5, "{name}: {prompts:?}");
        assert!(prompts[1].contains("large") && prompts[2].contains("large"), "{name}: {prompts:?}");
        assert!(prompts[2].contains("Write a summary"), "{name}: {prompts:?}");
        for later in &prompts[3..] {
            assert!(later.contains("<summary>") && later.contains("read a and b") && !later.contains("large"), "{name}: {later}");
        }
    }
}

/// Short prompts fill the window: a summary makes room.
#[tokio::test]
async fn conversation_that_fills_window_is_compacted() {
    for wire in WIRES {
        let (home, provider, name) = home(wire, Vec::new()).await;
        provider.reject_larger(WINDOW, rejection(wire));
        provider.otherwise(Exchange::events(wire.plain));
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await;
        for number in 0..16 {
            let words: String = (0..140).map(|word| format!("word{} ", word * 31 + number)).collect();
            let (stop, _) = agent.turn(&session, &format!("prompt {number}. {words}")).await;
            assert_eq!(stop, "end_turn", "{name}: prompt {number}");
        }
        agent.finish().await;
        let received = provider.finish().await;
        let summaries = received.iter().filter(|request| told(request).contains("Write a summary")).count();
        assert!(summaries > 1, "{name}");
        let last = told(received.last().unwrap());
        assert!(last.contains("prompt 15.") && !last.contains("prompt 0."), "{name}: {last}");
        // The note about the mode stays, although it was in the oldest message.
        assert_eq!(last.matches(">mode: plan.").count(), 1, "{name}: {last}");
    }
}
