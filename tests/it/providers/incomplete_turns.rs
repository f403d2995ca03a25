//! Cancelled requests, truncated answers and retried turns in the conversation sent to the model.

use super::told;
use harness::provider::Protocol;
use serde_json::{Value, json};

use harness::Agent;
use harness::provider::Exchange;
use harness::provider::session::{connect, conversation, home, unmarked};
use harness::wires::{WIRES, Wire};

/// The plain events of a protocol up to "Hel".
fn beginning(wire: &Wire) -> &'static [&'static str] {
    let some = wire.plain.iter().position(|event| event.contains("Hel")).expect("there") + 1;
    &wire.plain[..some]
}

/// Asserts that the words come in this order, each once.
fn in_order(what: &str, text: &str, words: &[&str]) {
    let places: Vec<Vec<usize>> = words.iter().map(|word| text.match_indices(word).map(|(place, _)| place).collect()).collect();
    assert!(places.iter().all(|places| places.len() == 1) && places.is_sorted(), "{what}: {words:?} stand at {places:?} of {text}");
}

async fn cancelled(agent: &mut Agent, session: &str, text: &str) {
    let id = agent.prompt(session, text).await;
    agent.until_update("agent_message_chunk").await;
    agent.notify("session/cancel", json!({ "sessionId": session })).await;
    assert_eq!(agent.answer(&id).await.expect("an answer")["stopReason"], "cancelled");
}

#[tokio::test]
async fn cancelled_request_and_truncated_answer_are_marked() {
    for wire in WIRES {
        let plain = Exchange::events(wire.plain);
        let answers = vec![Exchange::events(beginning(wire)).hang(), plain.clone(), plain.clone(), plain];
        let (home, provider, name) = home(wire, answers).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        cancelled(&mut agent, &session, "the first request").await;
        agent.turn(&session, "the second request").await;
        agent.turn(&session, "the third request").await;
        agent.finish().await;
        let mut agent = connect(&home).await;
        agent.turn(&session, "the fourth request").await;
        agent.finish().await;
        let received = provider.finish().await;
        let words = ["the first request", "\"Hel\"", "cancelled by the user", "cut off", "the second request"];
        in_order(&name, &told(&received[1]), &words);
        // Later requests contain the same messages, also from another process.
        for later in 1..3 {
            let (before, after) = (conversation(&received[later]), conversation(&received[later + 1]));
            assert_eq!(unmarked(json!(after[..before.len()])), unmarked(json!(before)), "{name}");
        }
    }
}

#[tokio::test]
async fn request_cancelled_before_answer_is_marked() {
    for wire in WIRES {
        let thinks = wire.rich.iter().position(|event| event.contains("Two ")).expect("there") + 1;
        let answers = vec![Exchange::events(&wire.rich[..thinks]).hang(), Exchange::events(wire.plain)];
        let (home, provider, name) = home(wire, answers).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let id = agent.prompt(&session, "the first request").await;
        agent.until_update("agent_thought_chunk").await;
        agent.notify("session/cancel", json!({ "sessionId": session })).await;
        agent.answer(&id).await.expect("an answer");
        agent.turn(&session, "the second request").await;
        agent.finish().await;
        let text = told(&provider.finish().await[1]);
        in_order(&name, &text, &["the first request", "cancelled by the user", "the second request"]);
        assert!(!text.contains("cut off"), "{name}: {text}");
    }
}

#[tokio::test]
async fn answer_at_token_limit_is_marked_as_truncated() {
    for wire in WIRES {
        // Only Anthropic's protocol has an explicit end of a block.
        let block_end = [r#"{"type":"content_block_stop","index":0}"#];
        let block_end: &[&str] = if wire.protocol == Protocol::Anthropic { &block_end } else { &[] };
        let cut: Vec<&str> = beginning(wire).iter().chain(block_end).chain(wire.max_tokens).copied().collect();
        let (home, provider, name) = home(wire, vec![Exchange::events(&cut), Exchange::events(wire.plain)]).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        assert_eq!(agent.turn(&session, "the first request").await.0, "max_tokens", "{name}");
        agent.turn(&session, "the second request").await;
        agent.finish().await;
        let text = told(&provider.finish().await[1]);
        in_order(&name, &text, &["the first request", "\"Hel\"", "cut off", "the second request"]);
        assert!(!text.contains("cancelled"), "{name}: {text}");
    }
}

#[tokio::test]
async fn refused_request_stays_in_conversation() {
    for wire in WIRES.iter().filter(|wire| !wire.refusal.is_empty()) {
        let (home, provider, name) = home(wire, vec![Exchange::events(wire.refusal), Exchange::events(wire.plain)]).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        assert_eq!(agent.turn(&session, "the first request").await.0, "refusal", "{name}");
        agent.turn(&session, "the second request").await;
        agent.finish().await;
        let text = told(&provider.finish().await[1]);
        in_order(&name, &text, &["the first request", "provider refused", "the second request"]);
    }
}

#[tokio::test]
async fn request_rejected_by_content_filter_stays_in_conversation() {
    for wire in WIRES {
        let filtered = Exchange::error(400, r#"{"error":{"code":"content_filter","message":"The prompt was filtered"}}"#);
        let (home, provider, name) = home(wire, vec![filtered, Exchange::events(wire.plain)]).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let id = agent.prompt(&session, "the first request").await;
        let error = agent.answer(&id).await.expect_err("a rejected request");
        assert_eq!(error["data"]["info"]["cause"], "content_filter", "{name}: {error}");
        agent.turn(&session, "the second request").await;
        agent.finish().await;
        let text = told(&provider.finish().await[1]);
        in_order(&name, &text, &["the first request", "provider refused", "the second request"]);
    }
}

/// Retries a turn and waits until the new turn has ended.
async fn retry(agent: &mut Agent, session: &str, turn: &Value) {
    let retried = agent.call("_nuncio/session/retry", json!({"sessionId": session, "turnId": turn})).await;
    while agent.turns(session).await.iter().any(|turn| turn["turnId"] == retried["turnId"] && turn["status"] == "running") {}
}

#[tokio::test]
async fn retried_prompt_is_sent_once() {
    for wire in WIRES {
        let (failed, plain) = (Exchange::error(400, r#"{"error":{"message":"no"}}"#), Exchange::events(wire.plain));
        let answers = vec![plain.clone(), failed.clone(), failed, plain.clone(), plain];
        let (home, provider, name) = home(wire, answers).await;
        // A person repeats the refused request.
        provider.lax(&[40]);
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "the first request").await;
        let id = agent.prompt(&session, "the second request").await;
        agent.answer(&id).await.expect_err("it fails");
        for _ in 0..2 {
            let last = agent.turns(&session).await.pop().unwrap();
            retry(&mut agent, &session, &last["turnId"]).await;
        }
        agent.finish().await;
        // Another process reads the same from the log.
        let mut agent = connect(&home).await;
        agent.turn(&session, "the third request").await;
        agent.finish().await;
        let received = provider.finish().await;
        for retried in [2, 3] {
            assert_eq!(conversation(&received[retried]), conversation(&received[1]), "{name}");
        }
        in_order(&name, &told(&received[4]), &["the first request", "the second request", "the third request"]);
    }
}

#[tokio::test]
async fn retried_turn_has_its_original_context() {
    let wire = &WIRES[0];
    let plain = Exchange::events(wire.plain);
    let answers = vec![plain.clone(), plain.clone(), plain.clone(), plain.clone(), plain.clone(), plain];
    let (home, provider, name) = home(wire, answers).await;
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    for text in ["the first request", "the second request", "the third request"] {
        agent.turn(&session, text).await;
    }
    let all = agent.turns(&session).await;
    retry(&mut agent, &session, &all[1]["turnId"]).await;
    retry(&mut agent, &session, &all[2]["turnId"]).await;
    agent.turn(&session, "the fourth request").await;
    agent.finish().await;
    let received = provider.finish().await;
    assert_eq!(conversation(&received[3]), conversation(&received[1]), "{name}");
    assert_eq!(conversation(&received[4]), conversation(&received[2]), "{name}");
    in_order(&name, &told(&received[5]), &["the first request", "the second request", "the third request", "the fourth request"]);
}

#[tokio::test]
async fn client_system_prompt_replaces_default_or_is_appended() {
    let wire = &WIRES[0];
    let cases = [
        (json!({}), "You are nuncio", ""),
        (json!({"systemPrompt": "Speak like a pirate."}), "Speak like a pirate.", "You are nuncio"),
        (json!({"systemPrompt": {"append": "Speak like a pirate."}}), "You are nuncio", ""),
        (json!({"systemPrompt": {"append": "Speak like a pirate."}}), "Speak like a pirate.", ""),
        (json!({"systemPrompt": {"type": "preset", "preset": "x", "append": "Be brief."}}), "Be brief.", ""),
        (json!({"systemPrompt": "theirs", "nuncio": {"systemPrompt": "ours wins"}}), "ours wins", "theirs"),
        (json!({"systemPrompt": ""}), "You are nuncio", ""),
        (json!({"systemPrompt": 7}), "You are nuncio", ""),
    ];
    let answers = vec![Exchange::events(wire.plain); cases.len() * 2];
    let (home, provider, _) = home(wire, answers).await;
    for (meta, _, _) in &cases {
        let mut agent = connect(&home).await;
        let made = agent.call("session/new", json!({"cwd": home.work(), "mcpServers": [], "_meta": meta})).await;
        let session = made["sessionId"].as_str().unwrap().to_string();
        agent.turn(&session, "go").await;
        agent.finish().await;
        // The system prompt is stored with the session.
        let mut agent = connect(&home).await;
        agent.turn(&session, "on").await;
        agent.finish().await;
    }
    let received = provider.finish().await;
    for ((meta, there, absent), pair) in cases.iter().zip(received.chunks(2)) {
        for received in pair {
            let system = received.body["system"].to_string();
            assert!(system.contains(there) && (absent.is_empty() || !system.contains(absent)), "{meta}: {system}");
            assert!(system.contains("Working directory"), "{meta}: {system}");
        }
    }
}
