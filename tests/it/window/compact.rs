//! Compaction on request and at the threshold; compactions that fail or are cancelled.

use serde_json::{Value, json};

use super::{answer, asks_for_summary, calls, connect, events, home, last_text, messages, says};
use harness::provider::{Exchange, ReceivedRequest};
use harness::{Home, bounded, notices, text};

/// A text without repetitions of about this number of bytes.
fn filler(bytes: usize) -> String {
    (0..bytes / 12).map(|number| format!("word{} ", number * 7919)).collect()
}

/// The contents of the messages of a request, without the system prompt.
fn contents(received: &ReceivedRequest) -> Vec<String> {
    messages(received).iter().filter(|message| message["role"] != "system").map(|message| message["content"].to_string()).collect()
}

#[tokio::test]
async fn compact_command_replaces_conversation_by_summary() {
    let (home, provider) = home(200_000, "").await;
    provider.respond(|received| match asks_for_summary(received) {
        true => says(received, "SUMMARY of the talk"),
        false => says(received, "Hello"),
    });
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let (_, updates) = agent.turn(&session, "/compact").await;
    assert!(text(&updates, "agent_message_chunk").contains("nothing to compact"), "{updates:?}");
    agent.turn(&session, "first").await;
    agent.turn(&session, "second").await;
    let (stop, updates) = agent.turn(&session, "/compact the colors").await;
    assert_eq!(stop, "end_turn");
    assert!(text(&updates, "agent_message_chunk").contains("was compacted"), "{updates:?}");
    agent.turn(&session, "third").await;
    agent.finish().await;
    let mut agent = connect(&home).await;
    agent.turn(&session, "fourth").await;
    agent.finish().await;

    let received = provider.finish().await;
    assert_eq!(received.len(), 5);
    let summary = &received[2];
    assert!(last_text(summary).contains("emphasis: the colors"), "{}", last_text(summary));
    assert_eq!(summary.body["tools"], received[1].body["tools"], "the request starts like the others");
    assert_eq!(messages(summary)[..messages(&received[1]).len()], *messages(&received[1]), "the request starts like the others");
    let third = contents(&received[3]);
    // This wire format joins successive messages of the user.
    assert!(third.len() == 1 && third[0].contains("SUMMARY of the talk") && third[0].ends_with("third\""), "{third:?}");
    assert!(!third[0].contains("first") && !third[0].contains("/compact"), "{third:?}");
    assert_eq!(contents(&received[4])[..1], third[..], "after a restart");
    let log = home.log(&session).await;
    assert!(json!(log).to_string().contains("first"), "the log keeps the messages");
    let started = events(&home, &session, &["compaction.started", "compaction.completed"]).await;
    assert_eq!(started.len(), 2, "{started:?}");
    assert_eq!((&started[0]["reason"], &started[0]["focus"]), (&json!("manual"), &json!("the colors")));
    assert_eq!((&started[1]["outcome"], &started[1]["summary"]), (&json!("completed"), &json!("SUMMARY of the talk")));
}

/// A scripted model reports fewer tokens than other models for the same text.
#[tokio::test]
async fn numbers_before_and_after_compaction_have_the_same_basis() {
    let home = Home::new();
    let steps = json!([{ "text": filler(4_000) }, { "text": "SUMMARY" }]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.turn(&session, "first").await;
    agent.turn(&session, "/compact").await;
    let report = agent.call("_nuncio/session/context", json!({ "sessionId": session })).await;
    agent.finish().await;
    let bodies = events(&home, &session, &["compaction.started", "compaction.completed"]).await;
    let [before, after] = [0, 1].map(|index: usize| bodies[index]["contextTokens"].as_u64().unwrap());
    assert!(after < before, "{before} → {after}");
    // The estimate in the event leaves out the text around the summary.
    let shown = report["tokens"].as_u64().unwrap();
    assert!((after..after + 100).contains(&shown), "{after}, then {shown}");
}

#[tokio::test]
async fn conversation_is_compacted_during_turn_and_work_continues() {
    // The tool outputs of one turn exceed the window.
    let (home, provider) = home(32_768, "").await;
    let mut read = 0;
    provider.respond(move |received| {
        if asks_for_summary(received) {
            return says(received, &format!("SUMMARY: {read} files were read"));
        }
        read += 1;
        match read {
            0..=24 => calls(received, &format!("call-{read}"), "read", json!({ "file_path": format!("{read}.txt") })),
            _ => says(received, "all read"),
        }
    });
    for number in 1..=24 {
        home.put(&format!("{number}.txt"), &filler(8_000 + number));
    }
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let (stop, updates) = agent.turn(&session, "read all files and count them").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "all read"));
    assert!(notices(&updates).contains(&"The conversation was compacted"), "{:?}", notices(&updates));
    agent.turn(&session, "thanks").await;
    agent.finish().await;
    let received = provider.finish().await;
    let summaries: Vec<usize> = (0..received.len()).filter(|index| asks_for_summary(&received[*index])).collect();
    assert!(!summaries.is_empty());
    for index in summaries {
        let after = contents(&received[index + 1]);
        let places = ["SUMMARY", "read all files and count them", "Continue it"].map(|text| after[0].find(text).expect(text));
        assert!(places.is_sorted(), "the prompt follows the summary: {after:?}");
        let before = messages(&received[index - 1]);
        assert_eq!(messages(&received[index])[..before.len()], *before, "the request starts like the one before");
    }
    let failed = events(&home, &session, &["turn.failed"]).await;
    assert_eq!(failed, Vec::<Value>::new());
}

#[tokio::test]
async fn compaction_that_fails_changes_nothing() {
    type Summary = fn(&ReceivedRequest) -> Exchange;
    // Name, answer to the request for a summary, number of these requests.
    let cases: &[(&str, Summary, usize)] = &[
        ("an error", |_| Exchange::error(400, r#"{"error":{"message":"no"}}"#), 1),
        ("an empty summary", |received| says(received, " "), 2),
        ("a call instead of a summary", |received| calls(received, "call-x", "read", json!({ "file_path": "a" })), 2),
        (
            "a text before a call",
            |received| {
                let function = json!({ "name": "read", "arguments": "{\"file_path\":\"a\"}" });
                let call = json!({ "index": 0, "id": "call-y", "type": "function", "function": function });
                answer(received, json!({ "content": "Let me read a first.", "tool_calls": [call] }), "tool_calls")
            },
            2,
        ),
        ("a truncated summary", |received| answer(received, json!({ "content": "SUM" }), "length"), 2),
        ("a refusal", |received| answer(received, json!({ "content": "No." }), "content_filter"), 2),
        ("a repeated text", |received| says(received, &"The work continues with the next file. ".repeat(2_000)), 2),
    ];
    for (name, summary, requests) in cases {
        let (home, provider) = home(200_000, "").await;
        let summary = *summary;
        provider.respond(move |received| match asks_for_summary(received) {
            true => summary(received),
            false => says(received, "Hello"),
        });
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "first").await;
        let id = agent.prompt(&session, "/compact").await;
        agent.answer(&id).await.expect_err(name);
        agent.turn(&session, "second").await;
        agent.finish().await;
        let received = provider.finish().await;
        let last = contents(received.last().unwrap());
        assert!(last[0].contains("first") && last[1].contains("Hello") && last[2].contains("second"), "{name}: {last:?}");
        assert_eq!(last.len(), 3, "{name}: {last:?}");
        assert_eq!(received.iter().filter(|received| asks_for_summary(received)).count(), *requests, "{name}");
        let ended = events(&home, &session, &["compaction.completed"]).await;
        assert_eq!((ended.len(), &ended[0]["outcome"]), (1, &json!("failed")), "{name}: {ended:?}");
    }
}

#[tokio::test]
async fn cancelled_or_killed_compaction_changes_nothing() {
    for kill in [false, true] {
        let (home, provider) = home(200_000, "").await;
        let (asked, mut summary) = tokio::sync::mpsc::unbounded_channel();
        provider.respond(move |received| match asks_for_summary(received) {
            true => {
                asked.send(()).unwrap();
                Exchange::events(&[r#"{"choices":[{"index":0,"delta":{"content":"SUM"}}]}"#]).hang()
            }
            false => says(received, "Hello"),
        });
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "first").await;
        let id = agent.prompt(&session, "/compact").await;
        bounded("the request for a summary", summary.recv()).await;
        if kill {
            agent.kill().await;
        } else {
            agent.notify("session/cancel", json!({ "sessionId": session })).await;
            assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
            agent.finish().await;
        }
        let mut agent = connect(&home).await;
        agent.turn(&session, "second").await;
        agent.finish().await;
        let received = provider.finish_unchecked().await;
        let last = contents(received.last().unwrap());
        assert!(last[0].contains("first") && last.last().unwrap().contains("second"), "{kill}: {last:?}");
        let ended = events(&home, &session, &["compaction.completed"]).await;
        let outcome = if kill { "interrupted" } else { "cancelled" };
        assert_eq!((ended.len(), &ended[0]["outcome"]), (1, &json!(outcome)), "{ended:?}");
    }
}

#[tokio::test]
async fn request_for_a_summary_passes_the_hooks_on_messages() {
    let script = r#"sed -e 's/.*"messages":\(.*\)}/{"messages":\1}/' -e 's/tops3cret/REDACTED/g'"#;
    let hook = format!("[[hooks]]\nevent = \"prompt.messages.transform\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n");
    let (home, provider) = home(200_000, &hook).await;
    provider.respond(|received| says(received, if asks_for_summary(received) { "SUMMARY" } else { "Hello" }));
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "the password is tops3cret").await;
    let (_, updates) = agent.turn(&session, "/compact").await;
    assert!(text(&updates, "agent_message_chunk").contains("was compacted"), "{updates:?}");
    agent.finish().await;
    let received = provider.finish().await;
    assert_eq!(received.len(), 2);
    for request in &received {
        assert!(request.text.contains("REDACTED") && !request.text.contains("tops3cret"), "{}", request.text);
    }
}
