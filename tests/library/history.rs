//! The conversation that models get is well formed for every sequence of events, at every moment,
//! and in the requests of every protocol.

mod bodies;
mod generator;

use std::collections::HashSet;
use std::sync::Arc;

use harness::provider::Protocol;
use nuncio::content::{Part, plain_text};
use nuncio::event::{Body, Event};
use nuncio::internal::context::history::History;
use nuncio::internal::model::{Block, Message, Messages};
use serde_json::json;

use generator::{events, state};
use harness::random_cases;

const PROTOCOLS: [Protocol; 6] =
    [Protocol::Anthropic, Protocol::OpenaiChat, Protocol::OpenaiResponses, Protocol::Gemini, Protocol::Ollama, Protocol::Bedrock];

/// Returns what is wrong with the messages. `changed` returns whether a block has another input or
/// signature than it was received with.
pub fn wrong(messages: &[Arc<Message>], changed: impl Fn(&Block) -> bool) -> Option<String> {
    if messages.first().is_some_and(|first| !matches!(**first, Message::User(_))) {
        return Some("the first message is not of the user".into());
    }
    let mut seen = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &*messages[before]);
        let after = messages.get(index + 1).map(|after| &**after);
        let found = match &**message {
            Message::User(parts) => {
                let empty = |part: &Part| part.as_text().is_empty();
                (parts.is_empty() || parts.iter().any(empty)).then_some("an empty message of the user")
            }
            Message::Assistant(blocks) => wrong_answer(blocks, before, after, &changed, &mut seen),
            Message::ToolResults(results) if results.is_empty() => Some("no results"),
            Message::ToolResults(_) => match before {
                Some(Message::Assistant(blocks)) if !calls(blocks).is_empty() => None,
                _ => Some("results without calls"),
            },
        };
        if let Some(found) = found {
            return Some(format!("message {index}: {found}"));
        }
    }
    None
}

fn calls(blocks: &[Block]) -> Vec<(&str, &str)> {
    let call = |block: &'_ Block| matches!(block, Block::ToolCall { .. });
    let calls = blocks.iter().filter(|block| call(block)).map(|block| match block {
        Block::ToolCall { id, name, .. } => (id.as_str(), name.as_str()),
        _ => unreachable!("filtered"),
    });
    calls.collect()
}

fn wrong_answer(
    blocks: &[Block],
    before: Option<&Message>,
    after: Option<&Message>,
    changed: impl Fn(&Block) -> bool,
    seen: &mut HashSet<String>,
) -> Option<&'static str> {
    let calls = calls(blocks);
    let results: Vec<(&str, &str)> = match after {
        Some(Message::ToolResults(results)) => results.iter().map(|result| (result.id.as_str(), result.name.as_str())).collect(),
        Some(Message::User(_) | Message::Assistant(_)) | None => Vec::new(),
    };
    if blocks.is_empty() {
        Some("an empty answer")
    } else if matches!(blocks.last(), Some(Block::Thinking { .. })) {
        Some("an answer that ends with thinking")
    } else if matches!(before, Some(Message::Assistant(_))) {
        Some("two answers in a row")
    } else if results != calls {
        Some("calls and results differ")
    } else if !calls.iter().all(|(id, _)| seen.insert(id.to_string())) {
        Some("a call twice")
    } else if blocks.iter().any(changed) {
        Some("a block has another signature or input")
    } else {
        None
    }
}

/// Returns whether a generated block has another input or signature than it was received with.
fn changed(block: &Block, protocol: Protocol) -> bool {
    match block {
        Block::Thinking { text, state: kept } | Block::Text { text, state: kept } => {
            kept.as_ref().is_some_and(|kept| Some(kept) != state(protocol, text).as_ref())
        }
        Block::ToolCall { id, input, state: kept, .. } => {
            input["id"] != id.as_str() || kept.as_ref().is_some_and(|kept| Some(kept) != state(protocol, id.as_str()).as_ref())
        }
        unknown => panic!("{unknown:?}"),
    }
}

/// Asserts that pruning changes nothing but the outputs of these calls.
fn assert_pruned(before: &[Arc<Message>], after: &[Arc<Message>], pruned: &HashSet<&str>) {
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(after) {
        let (Message::ToolResults(old), Message::ToolResults(new)) = (&**before, &**after) else {
            assert_eq!(before, after);
            continue;
        };
        assert_eq!(old.len(), new.len());
        for (old, new) in old.iter().zip(new) {
            assert_eq!((&old.id, &old.name, old.failed), (&new.id, &new.name, new.failed));
            match pruned.contains(new.id.as_str()) {
                true => assert!(plain_text(&new.output).starts_with("[output pruned: "), "{new:?}"),
                false => assert_eq!(old.output, new.output),
            }
        }
    }
}

/// Folds the events and checks the messages after each. Returns the messages of all requests.
fn checked(events: &[Event], protocol: Protocol) -> Vec<Messages> {
    let (mut history, mut requests) = (History::default(), Vec::new());
    for (index, event) in events.iter().enumerate() {
        let before = history.messages();
        history.apply(event);
        let messages = history.messages();
        if let Some(wrong) = wrong(&messages, |block| changed(block, protocol)) {
            let log: Vec<String> = events[..=index].iter().map(|event| json!(event.body).to_string()).collect();
            panic!("{wrong}\n{}\n{messages:#?}", log.join("\n"));
        }
        match &event.body {
            Body::ContextPruned { outputs, .. } => {
                assert_pruned(&before, &messages, &outputs.iter().map(|output| output.tool_call_id.as_str()).collect());
            }
            Body::StepStarted { .. } => {
                let last = messages.last().map(|last| &**last);
                assert!(matches!(last, Some(Message::User(_) | Message::ToolResults(_))), "a request ends with {last:?}");
                requests.push(messages);
            }
            _ => {}
        }
    }
    requests
}

/// Full number of generated sessions of each protocol.
const SESSIONS: u32 = 40;

#[test]
fn messages_are_well_formed_after_every_event() {
    let sessions = u64::from(random_cases("sessions of each protocol", SESSIONS));
    for (number, protocol) in PROTOCOLS.into_iter().enumerate() {
        for seed in 0..sessions {
            checked(&events(number as u64 * sessions + seed, protocol), protocol);
        }
    }
}

/// A note after an answer, such as the message of a hook, does not hide that the turn was answered.
#[test]
fn note_after_an_answer_does_not_change_the_note_about_the_end_of_the_turn() {
    let message = |role: &str, text: &str| json!({"type": "message.completed", "messageId": text, "role": role, "parts": [{"type": "text", "text": text}]});
    let note = json!({"type": "notice", "severity": "info", "title": "A note", "note": "[a note]"});
    for (notes, answered) in [(0, true), (1, true), (2, true), (1, false)] {
        let mut bodies = vec![json!({"type": "turn.started"}), message("user", "go")];
        bodies.extend(answered.then(|| message("assistant", "Half of an ans")));
        bodies.extend((0..notes).map(|_| note.clone()));
        bodies.extend([json!({"type": "turn.cancelled"}), message("user", "on")]);
        let mut history = History::default();
        for (index, body) in bodies.iter().enumerate() {
            let event = json!({"sessionId": "sess_1", "turnId": "turn_1", "seq": index + 1, "atMs": 1, "body": body});
            history.apply(&serde_json::from_value(event).unwrap());
        }
        let last = format!("{:?}", history.messages().last().unwrap());
        assert_eq!(last.contains("the answer above is cut off"), answered, "{notes} {answered}: {last}");
    }
}
