//! Deltas of completed messages are removable: every view of the session stays the same.

use nuncio::event::Event;
use nuncio::internal::context::history::History;
use nuncio::internal::session::SessionState;
use proptest::prelude::*;
use serde_json::{Value, json};

use harness::{Home, Random};

/// Creates a session with thoughts, texts, calls and a cancelled answer.
async fn worked() -> (Home, String) {
    let home = Home::new();
    home.put("a.txt", "one\n");
    let steps = json!([
        {"thinking": "Ich überlege, ob das 你好 heißt.", "text": "Zuerst schaue ich nach: ✓✓✓ und 😀😀.", "chunk_chars": 2, "delay_ms": 20, "tool_calls": [
            {"name": "read", "input": {"file_path": "a.txt"}},
            {"name": "bash", "input": {"command": "echo out"}},
        ]},
        {"text": "Fertig, with a longer text that comes in a few pieces.", "chunk_chars": 5, "delay_ms": 20},
        {"text": "This answer is cut. ".repeat(100), "chunk_chars": 3, "delay_ms": 5},
    ]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    agent.turn(&session, "first").await;
    let id = agent.prompt(&session, "second").await;
    agent.until_update("agent_message_chunk").await;
    agent.until_update("agent_message_chunk").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&id).await.unwrap();
    agent.finish().await;
    (home, session)
}

fn deltas(home: &Home) -> Vec<String> {
    home.sql("SELECT id FROM events WHERE delta = '1' ORDER BY id")
}

/// Returns the replay to a client, and the output of `sessions show`.
async fn views(home: &Home, session: &str) -> (Vec<Value>, String) {
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let replayed = agent.load(home, session).await;
    agent.finish().await;
    let shown = home.run(&["sessions", "show", session], "").await;
    assert_eq!(shown.code, 0, "{shown:?}");
    (replayed, shown.stdout)
}

#[tokio::test]
async fn views_do_not_depend_on_deltas() {
    let (home, session) = worked().await;
    let whole = views(&home, &session).await;
    assert!(whole.1.contains("你好") && whole.1.contains("Fertig"), "{}", whole.1);
    let ids = deltas(&home);
    assert!(ids.len() > 10, "{} deltas", ids.len());
    // Deletes a third of the deltas at a time, in random order, until none are left.
    let mut random = Random::new();
    let mut left = ids;
    while !left.is_empty() {
        let count = left.len().div_ceil(3);
        let ids: Vec<String> = (0..count).map(|_| left.swap_remove(random.below(left.len() as u64) as usize)).collect();
        home.sql(&format!("DELETE FROM events WHERE id IN ({})", ids.join(",")));
        let now = views(&home, &session).await;
        assert_eq!(now, whole, "with {} deltas left", left.len());
    }
}

#[tokio::test]
async fn closing_drops_only_deltas() {
    let (home, session) = worked().await;
    let before = home.log(&session).await;
    let whole = views(&home, &session).await;
    let mut agent = home.start(&["--model", &home.script(json!([{"text": "later", "chunk_chars": 1}]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.call("session/resume", json!({"sessionId": session, "cwd": home.work()})).await;
    agent.call("session/close", json!({"sessionId": session})).await;
    agent.finish().await;
    assert_eq!(deltas(&home), Vec::<String>::new());
    let is_fact = |event: &&Value| !serde_json::from_value::<Event>((*event).clone()).unwrap().body.is_delta();
    let facts: Vec<&Value> = before.iter().filter(is_fact).collect();
    let after = home.log(&session).await;
    assert_eq!(after[..facts.len()].iter().collect::<Vec<_>>(), facts);
    assert_eq!(after[facts.len()]["body"]["type"], "session.closed");
    assert_eq!(views(&home, &session).await, whole);
}

fn folded(events: &[Event], keep: impl Fn(usize) -> bool) -> String {
    let (mut history, mut state) = (History::default(), SessionState::default());
    for (index, event) in events.iter().enumerate() {
        if keep(index) || !event.body.is_delta() {
            history.apply(event);
            state.apply(event);
        }
    }
    let SessionState { settings, mode, turn, open_messages, open_tools, plan, context_tokens, .. } = state;
    format!("{:#?}\n{:#?}", history.messages(), (settings, mode, turn, open_messages, open_tools, plan, context_tokens))
}

/// History and state do not depend on deltas either, for many random subsets.
#[tokio::test]
async fn folds_do_not_depend_on_deltas() {
    let (home, session) = worked().await;
    let events: Vec<Event> = home.log(&session).await.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect();
    let whole = folded(&events, |_| true);
    proptest!(crate::random::property("sets of deltas", 64), |(kept in proptest::collection::vec(any::<bool>(), events.len()))| {
        prop_assert_eq!(&folded(&events, |index| kept[index]), &whole);
    });
}
