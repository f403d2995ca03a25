//! A session that produces much more text than the context window holds.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::{asks_for_summary, calls, connect, events, home, last_text, messages, paired, says, tokens};
use harness::text;

const WINDOW: usize = 32_768;
const TURNS: usize = 300;
/// Size of the tool output of one turn.
const OUTPUT_BYTES: usize = 14_000;
const FACT: &str = "the password of the staging server is quiet-otter-42";

/// A text of this size that does not repeat itself.
fn output(turn: usize) -> String {
    (0..)
        .map(|line| format!("turn {turn} line {line} value {}\n", line * 7919 + turn))
        .scan(0, |bytes, line| {
            *bytes += line.len();
            (*bytes < OUTPUT_BYTES).then_some(line)
        })
        .collect()
}

#[tokio::test]
async fn session_of_300_turns_stays_within_window_and_keeps_facts() {
    let (home, provider) = home(WINDOW, "").await;
    let faults: Arc<Mutex<Vec<String>>> = Arc::default();
    let found = faults.clone();
    let mut number = 0;
    provider.respond(move |received| {
        number += 1;
        let fault = |what: String| found.lock().unwrap().push(format!("request {number}: {what}"));
        if tokens(received) > WINDOW {
            fault(format!("{} tokens", tokens(received)));
        }
        if !paired(received) {
            fault(format!("a call without its result: {}", received.text));
        }
        let known = received.text.contains(FACT);
        if asks_for_summary(received) {
            if !known {
                fault("the fact is lost".into());
            }
            return says(received, if known { FACT } else { "nothing" });
        }
        let last = messages(received).last().unwrap();
        let prompt = last_text(received);
        match prompt.split_once("read file ") {
            Some((_, name)) if last["role"] == "user" => {
                let name = name.trim_end_matches('"');
                calls(received, &format!("call-{name}-{number}"), "read", json!({ "file_path": format!("{name}.txt") }))
            }
            _ if last["role"] == "tool" => says(received, &format!("It has {} characters.", prompt.len())),
            _ => says(received, if known { FACT } else { "unknown" }),
        }
    });
    for turn in 0..TURNS {
        home.put(&format!("{turn}.txt"), &output(turn));
    }
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, &format!("Remember that {FACT}.")).await;
    for turn in 0..TURNS {
        let (stop, _) = agent.turn(&session, &format!("read file {turn}")).await;
        assert_eq!(stop, "end_turn", "turn {turn}");
    }
    let (_, updates) = agent.turn(&session, "What is the password?").await;
    assert_eq!(text(&updates, "agent_message_chunk"), FACT);
    agent.finish().await;
    assert_eq!(*faults.lock().unwrap(), Vec::<String>::new());
    provider.finish_unchecked().await;

    let bytes: usize = events(&home, &session, &["tool.completed"]).await.iter().map(|body| body["output"].to_string().len()).sum();
    assert!(bytes >= 4 << 20, "{bytes} bytes of tool output");
    let compactions = events(&home, &session, &["compaction.completed"]).await;
    assert!(!compactions.is_empty() && compactions.iter().all(|body| body["outcome"] == "completed"), "{compactions:?}");
}

#[tokio::test]
async fn pruned_output_is_readable_in_its_artifact() {
    let settings = "[context]\nprune_minimum_tokens = 100\nprune_protect_tokens = 100\ncompact_at = 0\n";
    let (home, provider) = home(WINDOW, settings).await;
    provider.respond(|received| {
        let prompt = last_text(received);
        let is_user = messages(received).last().unwrap()["role"] == "user";
        let artifact = received.text.split("artifact ").nth(1).and_then(|rest| rest.split('<').next()).unwrap_or_default();
        // The first prompt follows the facts about the environment.
        match prompt.trim_matches('"').rsplit("\\n").next() {
            Some("first") => calls(received, "call-1", "read", json!({ "file_path": "1.txt" })),
            Some("recall") if is_user => calls(received, "call-2", "read", json!({ "file_path": artifact })),
            _ => says(received, "done"),
        }
    });
    home.put("1.txt", &output(1));
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    for prompt in ["first", "second", "third", "recall"] {
        agent.turn(&session, prompt).await;
    }
    agent.finish().await;
    // Another process sends the same conversation.
    let mut agent = connect(&home).await;
    agent.turn(&session, "last").await;
    agent.finish().await;
    let received = provider.finish_unchecked().await;
    let pruned = events(&home, &session, &["context.pruned"]).await;
    assert_eq!((pruned.len(), pruned[0]["outputs"].as_array().unwrap().len()), (1, 1), "{pruned:?}");
    let second = &received[2];
    assert!(second.text.contains("turn 1 line 3 "), "not pruned before the third turn");
    let third = &received[3];
    assert!(third.text.contains(">output pruned: ") && !third.text.contains("turn 1 line 3 "), "{}", third.text);
    assert!(third.text.contains("1.txt"), "the arguments stay: {}", third.text);
    let results = events(&home, &session, &["tool.completed"]).await;
    assert!(results[1]["output"].to_string().contains("turn 1 line 3 "), "{}", results[1]);
    let (before, after) = (messages(&received[received.len() - 2]), messages(received.last().unwrap()));
    assert_eq!(after[..before.len()], *before, "after a restart");
}

#[tokio::test]
async fn output_without_artifact_is_not_pruned() {
    let settings = "[context]\nprune_minimum_tokens = 100\nprune_protect_tokens = 100\ncompact_at = 0\n";
    let (home, provider) = home(WINDOW, settings).await;
    let mut number = 0;
    provider.respond(move |received| {
        number += 1;
        match number {
            1 => calls(received, "call-1", "read", json!({ "file_path": "1.txt" })),
            _ => says(received, "done"),
        }
    });
    home.put("1.txt", &output(1));
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "first").await;
    let artifacts = home.data().join("artifacts").join(&session);
    // The directory exists only if something was written to it.
    std::fs::create_dir_all(&artifacts).unwrap();
    std::fs::remove_dir_all(&artifacts).unwrap();
    std::fs::write(&artifacts, "not a directory").unwrap();
    for prompt in ["second", "third", "fourth"] {
        agent.turn(&session, prompt).await;
    }
    agent.finish().await;
    let received = provider.finish().await;
    assert!(received.last().unwrap().text.contains("turn 1 line 3 "), "{}", received.last().unwrap().text);
    assert_eq!(events(&home, &session, &["context.pruned"]).await, Vec::<serde_json::Value>::new());
}
