//! Requests that the provider rejects as too large.

use serde_json::{Value, json};

use super::{asks_for_summary, calls, connect, events, home, rejection, says, tokens};
use crate::harness::text;

/// The real context window, which the settings do not know.
const WINDOW: usize = 20_000;

fn filler(number: usize) -> String {
    (0..2_000).map(|line| format!("{} ", line * 7919 + number)).collect()
}

#[tokio::test]
async fn rejected_request_is_compacted_and_sent_once_more() {
    let (home, provider) = home(400_000, "").await;
    let mut read = 0;
    provider.respond(move |received| {
        if tokens(received) > WINDOW {
            return rejection(tokens(received).max(WINDOW + 1), WINDOW);
        }
        if asks_for_summary(received) {
            return says(received, "SUMMARY");
        }
        read += 1;
        match read {
            0..=9 => calls(received, &format!("call-{read}"), "read", json!({ "file_path": format!("{read}.txt") })),
            _ => says(received, "all read"),
        }
    });
    for number in 1..=9 {
        home.put(&format!("{number}.txt"), &filler(number));
    }
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let (stop, updates) = agent.turn(&session, "read all files").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "all read"));
    agent.finish().await;
    provider.finish().await;
    let started = events(&home, &session, &["compaction.started"]).await;
    assert!(!started.is_empty() && started.iter().all(|body| body["reason"] == "overflow"), "{started:?}");
}

#[tokio::test]
async fn request_that_is_always_rejected_ends_the_turn() {
    // The provider rejects every request except those for a summary.
    let (home, provider) = home(400_000, "").await;
    provider.respond(|received| match received.text.contains("second") && !asks_for_summary(received) {
        true => rejection(tokens(received).max(WINDOW + 1), WINDOW),
        false => says(received, "SUMMARY"),
    });
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, &filler(1)).await;
    let id = agent.prompt(&session, "second").await;
    let error = agent.answer(&id).await.expect_err("an overflow");
    assert_eq!(error["data"]["info"]["cause"], "context_overflow", "{error}");
    agent.finish().await;
    let received = provider.finish().await;
    let rejected = received.iter().filter(|received| received.text.contains("second") && !asks_for_summary(received)).count();
    assert_eq!((received.len(), rejected), (4, 2), "one compaction and one retry");
    let ended: Vec<Value> = events(&home, &session, &["compaction.completed"]).await;
    assert_eq!((ended.len(), &ended[0]["outcome"]), (1, &json!("completed")));
}
