//! The transcript of a session: events become blocks, and each text appears once.

use nuncio::event::Event;
use nuncio::internal::transcript::{Transcript, TranscriptBlock};
use serde_json::{Value, json};

/// Folds event bodies and compares the blocks, one line each.
fn check(bodies: &[Value], expected: &[&str]) {
    let mut transcript = Transcript::default();
    let mut blocks = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        let event = json!({"sessionId": "sess_1", "seq": index + 1, "turnId": "turn_1", "atMs": index + 1, "body": body});
        let event: Event = serde_json::from_str(&event.to_string()).unwrap();
        blocks.extend(transcript.apply(&event).iter().map(line));
    }
    assert_eq!(blocks, expected, "{bodies:#?}");
}

fn line(block: &TranscriptBlock<'_>) -> String {
    match block {
        TranscriptBlock::UserMessage { text, attached } => {
            format!("user: {text}{}", if attached.is_empty() { "" } else { " with files" })
        }
        TranscriptBlock::MessageText { thought, text, .. } => format!("{}: {text}", if *thought { "thought" } else { "answer" }),
        TranscriptBlock::MessageEnd { text, discarded, .. } => {
            format!("end: {text}{}", if *discarded { ", discarded" } else { "" })
        }
        TranscriptBlock::ToolInput { name, bytes, path } => format!("writes {name} {path:?}: {bytes} bytes"),
        TranscriptBlock::ToolStart { title, .. } => format!("call: {title}"),
        TranscriptBlock::ToolEnd(end) => format!("{:?}{}", end.outcome, if end.already_shown { ", shown" } else { "" }),
        TranscriptBlock::Question(question) => format!("question: {}", question.title.as_deref().unwrap_or("no title")),
        TranscriptBlock::Granted { title, choice, .. } => format!("{title} answered: {choice}"),
        TranscriptBlock::Denied(denial) => {
            format!("{} {}: {}", denial.title, if denial.cancelled { "cancelled" } else { "denied" }, denial.reason)
        }
        TranscriptBlock::Plan(entries) => format!("plan of {}", entries.len()),
        TranscriptBlock::Notice { title, .. } => format!("notice: {title}"),
        TranscriptBlock::TurnEnd { reason, usage, cost, duration } => {
            let used = format!("{reason:?}, {} tokens", usage.map_or(0, |usage| usage.output_tokens));
            let cost = cost.map(|cost| format!(", {cost}")).unwrap_or_default();
            used + &cost + &duration.map(|duration| format!(", {} ms", duration.as_millis())).unwrap_or_default()
        }
        TranscriptBlock::ToolProgress { title, content, .. } => format!("{title}: {} contents", content.len()),
        TranscriptBlock::TurnStart => "turn".into(),
        TranscriptBlock::Request { model } => format!("request to {model}"),
        TranscriptBlock::Usage { turn, context_tokens, context_window } => {
            format!("{} tokens, {context_tokens} of {context_window}", turn.output_tokens)
        }
        TranscriptBlock::Retry { at_ms } => format!("retry at {at_ms}"),
        TranscriptBlock::CompactionStart => "compaction".into(),
        TranscriptBlock::CompactionEnd { outcome, before, after, error } => format!("{outcome:?} {before:?} {after:?} {error:?}"),
        TranscriptBlock::SubagentStart(child) => format!("subagent {}", child.title),
        TranscriptBlock::SubagentEnd(child, end) => format!("subagent {}: {:?}", child.title, end.status),
        TranscriptBlock::Checks { round, passed } => format!("checks {round}: {passed}"),
        TranscriptBlock::Queued { text, .. } => format!("queued: {text}"),
        TranscriptBlock::QueuedChange { text, .. } => format!("queued instead: {}", text.as_deref().unwrap_or_default()),
        TranscriptBlock::Unqueued { id } => format!("removed {id}"),
        TranscriptBlock::ModeChange(mode) => format!("mode {mode}"),
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
    check(&[started("edit"), diff.clone(), end], &["call: Title", "question: Title", "Exited(0), shown"]);
    check(&[diff, ended("failed", Value::Null)], &["question: no title", "Failed"]);
    let end = ended("completed", json!({"exitCode": 3}));
    check(&[started("bash"), question(json!([])), end], &["call: Title", "question: Title", "Exited(3)"]);
}

#[test]
fn end_of_turn_has_what_it_used() {
    let (start, end) = (json!({"type": "turn.started"}), json!({"type": "turn.cancelled"}));
    let mut child = child("child.completed");
    child.as_object_mut().unwrap().extend([
        ("status".to_owned(), json!("completed")),
        ("usage".to_owned(), json!({"inputTokens": 1, "outputTokens": 10})),
        ("cost".to_owned(), json!(0.5)),
    ]);
    let mut priced = usage(3);
    priced["cost"] = json!(0.25);
    check(
        &[start.clone(), usage(2), priced, child, end.clone(), start, end],
        &[
            "turn",
            "2 tokens, 1 of 9",
            "5 tokens, 1 of 9",
            "subagent Look: Completed",
            "Cancelled, 15 tokens, $0.75, 4 ms",
            "turn",
            "Cancelled, 0 tokens, 1 ms",
        ],
    );
}

fn child(kind: &str) -> Value {
    json!({"type": kind, "childSessionId": "sess_2", "toolCallId": "call_1", "title": "Look"})
}

#[test]
fn work_without_output_has_blocks() {
    let message = |kind: &str, text: &str| json!({"type": kind, "messageId": "msg_1", "role": "user", "parts": [{"type": "text", "text": text}], "delivery": "queue", "autoRun": true});
    let progress = json!({"type": "tool.updated", "toolCallId": "call_1", "title": "Other", "content": [{"type": "content", "content": {"type": "text", "text": "x"}}]});
    let compaction = json!({"type": "compaction.completed", "outcome": "completed", "summary": "s", "contextTokens": 5});
    let cases = [
        (json!({"type": "step.started", "step": 1, "model": "a/b"}), Some("request to a/b")),
        (json!({"type": "step.completed", "step": 1, "model": "a/b", "outcome": "failed", "retryAtMs": 7}), Some("retry at 7")),
        (json!({"type": "compaction.started", "reason": "manual", "contextTokens": 9}), Some("compaction")),
        (compaction, Some("Completed Some(9) Some(5) None")),
        (child("child.started"), Some("subagent Look")),
        (json!({"type": "verify.started", "toolCallId": "call_9", "round": 1, "commands": []}), None),
        (
            json!({"type": "verify.completed", "toolCallId": "call_9", "round": 1, "passed": true, "commands": []}),
            Some("checks 1: true"),
        ),
        (message("message.queued", "later"), Some("queued: later")),
        (message("message.edited", "sooner"), Some("queued instead: sooner")),
        (json!({"type": "message.removed", "messageId": "msg_1"}), Some("removed msg_1")),
        (json!({"type": "mode.changed", "mode": "plan"}), Some("mode plan")),
        (started("bash"), Some("call: Title")),
        (progress, Some("Other: 1 contents")),
    ];
    let (bodies, expected): (Vec<Value>, Vec<Option<&str>>) = cases.into_iter().unzip();
    check(&bodies, &expected.into_iter().flatten().collect::<Vec<_>>());
}
