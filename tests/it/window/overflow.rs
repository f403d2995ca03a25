//! Requests that the provider rejects as too large.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{asks_for_summary, calls, connect, events, home, last_text, paired, rejection, says, tokens};
use harness::{notices, text};

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
    provider.respond(|received| match received.text.contains("unforeseen") && !asks_for_summary(received) {
        true => rejection(tokens(received).max(WINDOW + 1), WINDOW),
        false => says(received, "SUMMARY"),
    });
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, &filler(1)).await;
    let id = agent.prompt(&session, "unforeseen").await;
    let error = agent.answer(&id).await.expect_err("an overflow");
    assert_eq!(error["data"]["info"]["cause"], "context_overflow", "{error}");
    agent.finish().await;
    let received = provider.finish().await;
    let rejected = received.iter().filter(|received| received.text.contains("unforeseen") && !asks_for_summary(received)).count();
    assert_eq!((received.len(), rejected), (4, 2), "one compaction and one retry");
    let ended: Vec<Value> = events(&home, &session, &["compaction.completed"]).await;
    assert_eq!((ended.len(), &ended[0]["outcome"]), (1, &json!("completed")));
}

/// A turn of calls whose results are short. Each case has the command up to its long text, the size
/// of the text, the number of calls, and the oldest call that the summary must know.
#[tokio::test]
async fn summary_of_one_long_turn_knows_its_calls() {
    for (command, bytes, count, oldest) in [("echo", 1_500, 30, 20), (":", 6_000, 12, 1)] {
        let (home, provider) = home(400_000, "").await;
        let mut number = 0;
        provider.respond(move |received| {
            if tokens(received) > WINDOW {
                return rejection(tokens(received), WINDOW);
            }
            if asks_for_summary(received) {
                return says(received, "SUMMARY");
            }
            number += 1;
            let call = json!({ "command": format!("{command} step-{number}- {}", &filler(number)[..bytes]) });
            match number {
                _ if number <= count => calls(received, &format!("call-{number}"), "bash", call),
                _ => says(received, "done"),
            }
        });
        let mut agent = home.start(&["--mode", "auto"]).await;
        agent.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).await;
        let session = agent.new_session(&home).await;
        let (stop, updates) = agent.turn(&session, "run all steps").await;
        assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "done"), "{command}");
        agent.finish().await;
        let received = provider.finish().await;
        let (at, summary) = received
            .iter()
            .enumerate()
            .find(|(_, received)| asks_for_summary(received) && tokens(received) <= WINDOW)
            .expect("a request for a summary");
        assert!(paired(summary) && last_text(summary).contains("Write a summary"), "{}", summary.text);
        // The first request and each answered call were one request, the last was rejected.
        let newest = received[..at].iter().filter(|received| tokens(received) <= WINDOW).count();
        assert!(newest >= oldest, "{newest} calls before the summary");
        let texts = ["run all steps".into(), format!("step-{oldest}-"), format!("step-{newest}-")];
        for expected in texts {
            assert!(summary.text.contains(&expected), "{command}: {expected} of {newest} is missing: {}", summary.text);
        }
    }
}

/// The settings name a window that is much too large. A second process continues the session.
#[tokio::test]
async fn context_window_that_an_error_names_is_remembered() {
    let (home, provider) = home(400_000, "").await;
    let rejected = Arc::new(AtomicUsize::new(0));
    let count = rejected.clone();
    provider.respond(move |received| {
        if tokens(received) > WINDOW {
            count.fetch_add(1, Ordering::Relaxed);
            return rejection(tokens(received), WINDOW);
        }
        says(received, if asks_for_summary(received) { "SUMMARY" } else { "Hello" })
    });
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let mut told = Vec::new();
    for turn in 0..20 {
        let (stop, updates) = agent.turn(&session, &filler(turn)[..8_000]).await;
        assert_eq!(stop, "end_turn", "turn {turn}");
        told.extend(notices(&updates).into_iter().filter(|title| title.contains("context window")).map(str::to_owned));
    }
    agent.finish().await;
    assert_eq!(rejected.load(Ordering::Relaxed), 1, "the first rejection names the window");
    assert_eq!(told, [format!("The context window of test/model has {WINDOW} tokens")]);
    let mut agent = connect(&home).await;
    for turn in 20..40 {
        assert_eq!(agent.turn(&session, &filler(turn)[..8_000]).await.0, "end_turn", "turn {turn}");
    }
    agent.finish().await;
    provider.finish().await;
    assert_eq!(rejected.load(Ordering::Relaxed), 1, "another process knows the window");
}

#[tokio::test]
async fn session_goes_on_if_the_model_writes_no_summary() {
    let (home, provider) = home(400_000, "").await;
    let mut number = 0;
    let mut summaries = 0;
    provider.respond(move |received| {
        if tokens(received) > WINDOW {
            return rejection(tokens(received), WINDOW);
        }
        if asks_for_summary(received) {
            summaries += 1;
            return match summaries % 2 {
                0 => says(received, " "),
                _ => calls(received, &format!("summary-{summaries}"), "read", json!({ "file_path": "a" })),
            };
        }
        number += 1;
        let entries =
            json!([{ "content": "Count the lines", "status": "in_progress" }, { "content": "Report", "status": "pending" }]);
        match number {
            1 => calls(received, "plan", "plan", json!({ "entries": entries })),
            2..=9 => calls(received, &format!("call-{number}"), "read", json!({ "file_path": format!("{number}.txt") })),
            _ => says(received, "all read"),
        }
    });
    for number in 1..=9 {
        home.put(&format!("{number}.txt"), &filler(number).replace(' ', "\n"));
    }
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "remember the quiet otter").await;
    let (stop, updates) = agent.turn(&session, "read all files").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "all read"));
    agent.turn(&session, "thanks").await;
    agent.finish().await;
    let received = provider.finish().await;
    let last = received.last().unwrap();
    for expected in ["The model wrote no summary", "[in progress] Count the lines", "remember the quiet otter", "Call of read"] {
        assert!(last.text.contains(expected), "{expected}: {}", last.text);
    }
    let ended = events(&home, &session, &["compaction.completed"]).await;
    assert!(ended.iter().any(|body| body["outcome"] == "completed"), "{ended:?}");
}
