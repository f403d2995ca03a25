//! The transcript of a session: events become blocks, and each text appears once.

use nuncio::event::Event;
use nuncio::transcript::{Transcript, TranscriptBlock};
use serde_json::{Value, json};

/// Folds event bodies and compares the blocks, one line each.
fn check(bodies: &[Value], expected: &[&str]) {
    let mut transcript = Transcript::default();
    let mut blocks = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        let event = json!({"sessionId": "sess_1", "seq": index + 1, "turnId": "turn_1", "atMs": 1, "body": body});
        let event: Event = serde_json::from_str(&event.to_string()).unwrap();
        blocks.extend(transcript.apply(&event).iter().map(line));
    }
    assert_eq!(blocks, expected, "{bodies:#?}");
}

fn line(block: &TranscriptBlock<'_>) -> String {
    match block {
        TranscriptBlock::UserMessage { text } => format!("user: {text}"),
        TranscriptBlock::MessageText { thought, text, .. } => format!("{}: {text}", if *thought { "thought" } else { "answer" }),
        TranscriptBlock::MessageEnd { text, discarded, .. } => {
            format!("end: {text}{}", if *discarded { ", discarded" } else { "" })
        }
        TranscriptBlock::ToolStart { title, .. } => format!("call: {title}"),
        TranscriptBlock::ToolEnd(end) => format!("{:?}{}", end.outcome, if end.already_shown { ", shown" } else { "" }),
        TranscriptBlock::Question(question) => format!("question: {}", question.title.as_deref().unwrap_or("no title")),
        TranscriptBlock::Denied { cancelled, reason, .. } => {
            format!("{}: {reason}", if *cancelled { "cancelled" } else { "denied" })
        }
        TranscriptBlock::Plan(entries) => format!("plan of {}", entries.len()),
        TranscriptBlock::Notice { title, .. } => format!("notice: {title}"),
        TranscriptBlock::TurnEnd { reason, usage } => {
            format!("{reason:?}, {} tokens", usage.map_or(0, |usage| usage.output_tokens))
        }
    }
}

fn delta(role: &str, offset: u64, text: &str) -> Value {
    json!({"type": "message.delta", "messageId": format!("msg_{role}"), "role": role, "offset": offset, "text": text})
}

fn completed(role: &str, text: &str) -> Value {
    let parts = json!([{"type": "text", "text": text}]);
    json!({"type": "message.completed", "messageId": format!("msg_{role}"), "role": role, "parts": parts})
}

fn started(name: &str) -> Value {
    json!({"type": "tool.started", "toolCallId": "call_1", "name": name, "title": "Title", "kind": "edit", "input": {}})
}

fn ended(status: &str, details: Value) -> Value {
    json!({"type": "tool.completed", "toolCallId": "call_1", "status": status, "output": [], "details": details})
}

fn usage(output: u64) -> Value {
    json!({"type": "usage.updated", "model": "m", "inputTokens": 1, "outputTokens": output, "contextTokens": 1, "contextWindow": 9})
}

#[test]
fn text_of_a_message_appears_once() {
    check(&[completed("user", "go")], &["user: go"]);
    let pieces = [delta("assistant", 0, "ab"), delta("assistant", 1, "bc"), delta("assistant", 1, "bc")];
    check(&pieces, &["answer: ab", "answer: c"]);
    check(&[&pieces[..], &[completed("assistant", "abcd")]].concat(), &["answer: ab", "answer: c", "answer: d", "end: abcd"]);
    // A delta after a gap is held until the complete message.
    check(&[delta("thought", 3, "x"), completed("thought", "abcx")], &["thought: abcx", "end: abcx"]);
    let mut discarded = completed("assistant", "ab");
    discarded["discarded"] = true.into();
    check(&[delta("assistant", 0, "ab"), discarded], &["answer: ab", "end: ab, discarded"]);
}

#[test]
fn content_of_question_or_plan_is_not_repeated() {
    let plan = json!({"type": "plan.updated", "entries": [{"content": "a", "priority": "medium", "status": "pending"}]});
    check(&[started("plan"), plan, ended("completed", Value::Null)], &["plan of 1", "Completed, shown"]);
    check(&[started("plan"), ended("failed", Value::Null)], &["Failed"]);
    let question = |content: Value| json!({"type": "permission.requested", "permissionId": "perm_1", "toolCallId": "call_1", "content": content, "options": [], "deadlineMs": 1});
    let diff = question(json!([{"type": "diff", "path": "/a", "newText": "x"}]));
    let end = ended("completed", json!({"exitCode": 0}));
    check(&[started("edit"), diff.clone(), end], &["call: Title", "question: Title", "Completed, shown"]);
    check(&[diff, ended("failed", Value::Null)], &["question: no title", "Failed"]);
    let end = ended("completed", json!({"exitCode": 3}));
    check(&[started("bash"), question(json!([])), end], &["call: Title", "question: Title", "Exited(3)"]);
}

#[test]
fn end_of_turn_has_its_usage() {
    let (start, end) = (json!({"type": "turn.started"}), json!({"type": "turn.cancelled"}));
    check(&[start.clone(), usage(2), usage(3), end.clone(), start, end], &["Cancelled, 5 tokens", "Cancelled, 0 tokens"]);
}
