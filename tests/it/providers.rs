//! The protocols end to end: prompts of an editor, and a provider on loopback.

pub mod bedrock;
mod choices;
mod empty_answers;
mod endless_answers;
mod fallback;
mod faults;
mod images;
mod incomplete_turns;
mod interrupted_answers;
mod list_formats;
pub mod lists;
mod overflow;
mod overload;
mod prefix;
mod refusal_table;
mod refusals;
mod repetition;
mod roles;
mod secrets;
mod sent_requests;
mod settings;
mod sources;
mod stream_forms;
mod vertex;
mod written_calls;

use harness::provider::Protocol;
use harness::provider::ReceivedRequest;
use serde_json::json;

use harness::provider::session::{connect, conversation, home, unmarked};
use harness::provider::{Exchange, KEY};
use harness::wires::{WIRES, Wire};
use harness::{notices, text, tool};

/// State of the provider's reasoning that later requests must contain.
fn handed_back(wire: &Wire) -> &'static [&'static str] {
    match wire.protocol {
        Protocol::Anthropic => &["SIG=", "XYZ"],
        Protocol::OpenaiChat => &["\"reasoning_content\":\"Two files.\""],
        Protocol::OpenaiResponses => &["ENC="],
        Protocol::Gemini => &["SIG=", "TEXT="],
        Protocol::Ollama => &["\"thinking\":\"Two files.\""],
        Protocol::Bedrock => unreachable!("not in WIRES"),
    }
}

fn told(received: &ReceivedRequest) -> String {
    json!(conversation(received)).to_string()
}

#[tokio::test]
async fn conversation_is_identical_after_restart() {
    for wire in WIRES {
        let busy = Exchange::error(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after", "0");
        let answers = vec![busy, Exchange::events(wire.rich), Exchange::events(wire.plain), Exchange::events(wire.plain)];
        let (home, provider, name) = home(wire, answers).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let (stop, updates) = agent.turn(&session, "read a and b").await;
        assert_eq!(stop, "end_turn", "{name}");
        assert!(notices(&updates).iter().any(|notice| notice.contains("slow down")), "{name}: {:?}", notices(&updates));
        assert_eq!(text(&updates, "agent_message_chunk"), "Reading.Hello", "{name}");
        for (index, file) in ["a", "b"].into_iter().enumerate() {
            let call = tool(&updates, index);
            assert_eq!(call["status"], "completed", "{name}: {call}");
            assert!(call.to_string().contains(&format!("what stands in {file}")), "{name}: {call}");
        }
        agent.finish().await;

        let mut agent = connect(&home).await;
        assert_eq!(agent.turn(&session, "and now?").await.0, "end_turn", "{name}");
        agent.finish().await;

        let received = provider.finish().await;
        let (second, third) = (conversation(&received[2]), conversation(&received[3]));
        assert!(json!(second).to_string().contains("what stands in b"), "{name}: {second:?}");
        for state in handed_back(wire) {
            assert!(json!(second).to_string().contains(state), "{name}: {state} is not in {second:?}");
        }
        // The log preserves the conversation exactly: reasoning with signatures, calls and results.
        assert_eq!(unmarked(json!(third[..second.len()])), unmarked(json!(second)), "{name}");
        assert!(third.len() > second.len(), "{name}");
    }
}

#[tokio::test]
async fn interrupted_answer_is_shown_and_retried() {
    for wire in WIRES {
        let some = wire.plain.iter().position(|event| event.contains("Hel")).expect("there") + 1;
        let answers = vec![Exchange::events(&wire.plain[..some]).cut(), Exchange::events(wire.plain), Exchange::events(wire.plain)];
        let (home, provider, name) = home(wire, answers).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let (stop, updates) = agent.turn(&session, "hi").await;
        assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "HelHello"), "{name}");
        assert_eq!(notices(&updates).len(), 1, "{name}");
        agent.turn(&session, "again").await;
        agent.finish().await;
        // The next request does not contain the interrupted answer.
        let told = json!(conversation(&provider.finish().await[2])).to_string();
        assert!(told.contains("Hello") && !told.contains("HelHello") && !told.contains("\"Hel\""), "{name}: {told}");
    }
}

#[tokio::test]
async fn cancel_ends_hanging_answer() {
    for wire in WIRES {
        let some = wire.plain.iter().position(|event| event.contains("Hel")).expect("there") + 1;
        let (home, provider, name) = home(wire, vec![Exchange::events(&wire.plain[..some]).hang()]).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "hi" }] });
        let id = agent.send("session/prompt", prompt).await;
        agent.until_update("agent_message_chunk").await;
        agent.notify("session/cancel", json!({ "sessionId": session })).await;
        assert_eq!(agent.answer(&id).await.expect("an answer")["stopReason"], "cancelled", "{name}");
        // `finish` waits until the connection is closed.
        provider.finish().await;
        agent.finish().await;
    }
}

#[tokio::test]
async fn refused_key_is_reported_with_hint() {
    for wire in WIRES {
        let (home, provider, name) = home(wire, vec![Exchange::error(401, r#"{"error":{"message":"bad key"}}"#)]).await;
        let ran = home.run(&["run", "hi"], "").await;
        assert_eq!(ran.code, 3, "{name}: {ran:?}");
        assert!(ran.stderr.contains("bad key") && ran.stderr.contains("api_key_command"), "{name}: {ran:?}");
        assert!(!ran.stderr.contains(KEY), "{name}: {ran:?}");
        provider.finish().await;
    }
}
