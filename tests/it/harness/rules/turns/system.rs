//! Rule 23: system messages.

use crate::provider::Protocol;
use crate::rules::Platform;
use crate::rules::refusal::Refusals;
use crate::rules::view::{Role, View};

/// Servers whose templates or checks take one system message, at the start.
const ONE: &[Platform] = &[Platform::Minimax, Platform::Vllm, Platform::LlamaCpp, Platform::LmStudio, Platform::Compatible];

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    match view.protocol {
        Protocol::Anthropic => {
            for turn in view.turns.iter().filter(|turn| turn.role == Role::System && turn.place != "system") {
                let role = turn.value["role"].as_str().unwrap_or_default();
                let words =
                    format!("messages: Unexpected role \"{role}\". The Messages API accepts a top-level `system` parameter.");
                refused.add(23, &*turn.place, words);
            }
        }
        Protocol::OpenaiChat => chat(view, refused),
        _ => {}
    }
}

fn chat(view: &View<'_>, refused: &mut Refusals) {
    for (index, turn) in view.turns.iter().enumerate().filter(|(_, turn)| turn.role == Role::System) {
        let role = turn.value["role"].as_str().unwrap_or_default();
        if role == "developer" && !view.is_at(&[Platform::OpenAi, Platform::Azure]) {
            let words = format!(
                "messages[{index}].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`"
            );
            refused.add(23, format!("{}.role", turn.place), words);
        }
        if index > 0 && view.is_at(ONE) {
            let words = match view.platform {
                Platform::Minimax => "invalid params, invalid chat setting (2013)",
                _ => "System message must be at the beginning.",
            };
            refused.add(23, &*turn.place, words);
        }
        if view.platform == Platform::Moonshot && turn.blocks.is_empty() {
            let words = format!("Invalid request: the message at position {index} with role 'system' must not be empty");
            refused.add(23, &*turn.place, words);
        }
    }
    if view.platform == Platform::Zai && !view.turns.iter().any(|turn| turn.role == Role::User) {
        refused.add_code(23, "1214", "messages", "The messages parameter is illegal. Please check the documentation.");
    }
}
