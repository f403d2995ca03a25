//! Rule 17: no blank text, and no turn without content.

use crate::provider::Protocol;
use crate::rules::Platform;
use crate::rules::refusal::Refusals;
use crate::rules::view::{Block, Content, Role, Turn, View};

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    for turn in &view.turns {
        match view.protocol {
            Protocol::Anthropic => anthropic(view, turn, refused),
            Protocol::Bedrock => bedrock(turn, refused),
            Protocol::Gemini => gemini(turn, refused),
            Protocol::OpenaiChat if view.is_at(&[Platform::Moonshot, Platform::Compatible]) => chat(turn, refused),
            Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Ollama => {}
        }
    }
}

/// Returns the texts of a turn, also those inside results.
fn texts<'a>(turn: &'a Turn<'a>) -> impl Iterator<Item = (&'a Block<'a>, &'a str)> {
    turn.blocks.iter().flat_map(Block::with_content).filter_map(|block| match block.content {
        Content::Text(text) => Some((block, text)),
        _ => None,
    })
}

fn anthropic(view: &View<'_>, turn: &Turn<'_>, refused: &mut Refusals) {
    let is_last = view.turns.last().is_some_and(|last| last.place == turn.place);
    for (block, text) in texts(turn) {
        let place = &block.place;
        if text.is_empty() {
            refused.add(17, &**place, format!("{place}: text content blocks must be non-empty"));
        } else if text.trim().is_empty() {
            refused.add(17, &**place, format!("{place}: text content blocks must contain non-whitespace text"));
        } else if is_last && turn.role == Role::Assistant && text.ends_with(char::is_whitespace) {
            let words = "messages: final assistant content cannot end with trailing whitespace";
            refused.add(17, &**place, words);
        }
    }
    if turn.blocks.is_empty() && turn.place != "system" && !(is_last && turn.role == Role::Assistant) {
        let words =
            format!("{}: all messages must have non-empty content except for the optional final assistant message", turn.place);
        refused.add(17, &*turn.place, words);
    }
}

fn bedrock(turn: &Turn<'_>, refused: &mut Refusals) {
    for (block, text) in texts(turn).filter(|(_, text)| text.trim().is_empty()) {
        let _ = text;
        let words = format!(
            "The text field in the ContentBlock object at {} is blank. Add text to the text field, and try again.",
            block.place
        );
        refused.add(17, &*block.place, words);
    }
    if turn.blocks.is_empty() && turn.place != "system" {
        let words = format!(
            "The content field in the Message object at {} is empty. Add a ContentBlock object to the content field and try again.",
            turn.place
        );
        refused.add(17, &*turn.place, words);
    }
}

fn gemini(turn: &Turn<'_>, refused: &mut Refusals) {
    for (block, text) in texts(turn) {
        if text.is_empty() && block.value["thoughtSignature"].is_null() {
            refused.add(17, &*block.place, format!("Model input cannot be empty. ({})", block.place));
        }
    }
    if turn.blocks.is_empty() {
        refused.add(
            17,
            &*turn.place,
            format!("Unable to submit request because it must include at least one parts field: {}", turn.place),
        );
    }
}

fn chat(turn: &Turn<'_>, refused: &mut Refusals) {
    let is_list = turn.value["content"].is_array();
    for (block, text) in texts(turn).filter(|(_, text)| text.trim().is_empty()) {
        // The output of a command may be empty, as may the text next to calls.
        let is_required = is_list || matches!(turn.role, Role::User | Role::System);
        if is_required && (is_list || text.is_empty()) {
            let index = turn.place.trim_start_matches("messages[").trim_end_matches(']');
            let words = match is_list {
                true => "Invalid request: text content is empty".to_owned(),
                false => format!("Invalid request: the message at position {index} must not be empty"),
            };
            refused.add(17, &*block.place, words);
        }
    }
}
