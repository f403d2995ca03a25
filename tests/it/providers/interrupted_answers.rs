//! Interrupted answers: their content in later requests, and in the replay of the session.

use std::time::Duration;

use serde_json::{Value, json};

use harness::provider::Exchange;
use harness::provider::session::{connect, conversation, home, unmarked};
use harness::text;
use harness::wires::WIRES;

const START: &str = r#"{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}"#;

/// Events of a complete thinking block of Anthropic.
fn thought(thinking: &str, signature: &str) -> Vec<String> {
    vec![
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#.into(),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": thinking}}).to_string(),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": signature}})
            .to_string(),
        r#"{"type":"content_block_stop","index":0}"#.into(),
    ]
}

fn said(text: &str) -> Vec<String> {
    vec![
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#.into(),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": text}}).to_string(),
        r#"{"type":"content_block_stop","index":1}"#.into(),
    ]
}

fn cut_call() -> Vec<String> {
    vec![
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}"#
            .into(),
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"file_"}}"#.into(),
    ]
}

fn end() -> Vec<String> {
    vec![
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#.into(),
        r#"{"type":"message_stop"}"#.into(),
    ]
}

fn answer(parts: &[Vec<String>]) -> Exchange {
    let events: Vec<&str> = std::iter::once(START).chain(parts.iter().flatten().map(String::as_str)).collect();
    Exchange::events(&events)
}

#[tokio::test]
async fn complete_blocks_of_interrupted_answer_are_neither_sent_nor_replayed() {
    let cut = answer(&[thought("A bad idea.", "BAD="), said("Let me see first."), cut_call()]).cut();
    let good = answer(&[thought("A good idea.", "GOOD="), said("All is well."), end()]);
    let (home, provider, _) = home(&WIRES[0], vec![cut, good, Exchange::events(WIRES[0].plain)]).await;
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    assert_eq!(agent.turn(&session, "hi").await.0, "end_turn");
    agent.turn(&session, "again").await;
    agent.finish().await;
    let mut agent = connect(&home).await;
    let replayed = agent.load(&home, &session).await;
    agent.finish().await;
    let received = provider.finish().await;

    let told = unmarked(json!(conversation(&received[2])));
    let good = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "A good idea.", "signature": "GOOD="},
        {"type": "text", "text": "All is well."},
    ]});
    let assistant: Vec<&Value> = told.as_array().unwrap().iter().filter(|message| message["role"] == "assistant").collect();
    assert_eq!(assistant, [&good]);
    assert_eq!(text(&replayed, "agent_thought_chunk"), "A good idea.");
    assert_eq!(text(&replayed, "agent_message_chunk"), "All is well.Hello");
}

#[tokio::test]
async fn discarded_beginnings_are_not_replayed() {
    for wire in WIRES {
        let some = wire.plain.iter().position(|event| event.contains("Hel")).expect("there") + 1;
        let answers = vec![Exchange::events(&wire.plain[..some]).cut(), Exchange::events(wire.plain)];
        let (home, provider, name) = home(wire, answers).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "hi").await;
        let here = agent.load(&home, &session).await;
        agent.finish().await;
        let mut agent = connect(&home).await;
        let elsewhere = agent.load(&home, &session).await;
        agent.finish().await;
        let shown = home.run(&["sessions", "show", &session], "").await;
        provider.finish().await;
        assert_eq!(shown.stdout.matches("Hel").count(), 1, "{name}: {shown:?}");
        for replayed in [here, elsewhere] {
            assert_eq!(text(&replayed, "agent_message_chunk"), "Hello", "{name}");
        }
    }
}

#[tokio::test]
async fn request_after_cancelled_thought_is_valid() {
    let block = thought("Let me think.", "SIG=");
    // Without the signature; with the signature but without the end; complete.
    for events in [2, 3, 4] {
        let hung = answer(&[block[..events].to_vec()]).hang();
        let (home, provider, _) = home(&WIRES[0], vec![hung, Exchange::events(WIRES[0].plain)]).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let id = agent.prompt(&session, "hi").await;
        agent.until_update("agent_thought_chunk").await;
        // Waits until the end of the thought is in the log, if it is logged before the end of the
        // answer.
        let ended = |event: &Value| event["body"]["type"] == "message.completed" && event["body"]["role"] == "thought";
        let wait = async { while !home.log(&session).await.iter().any(ended) {} };
        let _ = tokio::time::timeout(Duration::from_secs(1), wait).await;
        agent.notify("session/cancel", json!({"sessionId": session})).await;
        assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
        let (stop, updates) = agent.turn(&session, "go on").await;
        assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "Hello"));
        agent.finish().await;
        let told = conversation(&provider.finish().await[1]);
        for message in told.iter().filter(|message| message["role"] == "assistant") {
            let blocks = message["content"].as_array().unwrap();
            let last = blocks.last().unwrap_or_else(|| panic!("{events} events: an empty message: {told:#?}"));
            assert!(last["type"] != "thinking", "{events} events: ends with thinking: {told:#?}");
            let unsigned = |block: &Value| block["type"] == "thinking" && block["signature"].as_str().is_none_or(str::is_empty);
            assert!(!blocks.iter().any(unsigned), "{events} events: no signature: {told:#?}");
        }
        assert!(told.last().unwrap().to_string().contains("go on"), "{told:#?}");
    }
}
