//! Rules 17 to 20, 23 and 24: text, order and roles of the turns.

mod blank;
mod order;
mod system;

use super::Platform;
use super::refusal::Refusals;
use super::view::{Content, Role, View};
use crate::provider::Protocol;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    blank::check(view, refused);
    order::check(view, refused);
    system::check(view, refused);
    if view.protocol == Protocol::OpenaiChat {
        empty_assistants(view, refused);
    }
    strings(view, refused);
}

/// Rule 18: an assistant message has content or calls.
fn empty_assistants(view: &View<'_>, refused: &mut Refusals) {
    // To some servers, an empty text is no content.
    let counts_text = !view.is_at(&[Platform::Moonshot, Platform::Compatible]);
    for (index, turn) in view.turns.iter().enumerate().filter(|(_, turn)| turn.role == Role::Assistant) {
        let has_content = turn.blocks.iter().any(|block| match &block.content {
            Content::Text(text) => counts_text || !text.is_empty(),
            _ => true,
        });
        if !has_content {
            let words = match view.platform {
                Platform::OpenAi | Platform::Azure => {
                    format!("Invalid value for 'content': expected a string, got null. ({}.content)", turn.place)
                }
                _ => format!("Invalid request: the message at position {index} with role 'assistant' must not be empty"),
            };
            refused.add(18, &*turn.place, words);
        }
    }
}

/// Rule 24: content is a string where the server takes no list.
fn strings(view: &View<'_>, refused: &mut Refusals) {
    for turn in &view.turns {
        let content = &turn.value["content"];
        let Some(list) = content.as_array() else {
            if view.protocol == Protocol::Ollama && !content.is_string() && !content.is_null() {
                let words = "json: cannot unmarshal object into Go struct field ChatRequest.messages.content of type string";
                refused.add(24, format!("{}.content", turn.place), words);
            }
            continue;
        };
        let all_text = list.iter().all(|part| part["type"] == "text");
        let is_refused = match (view.protocol, view.platform) {
            (Protocol::Ollama, _) => true,
            // Images in a list are rule 30.
            (Protocol::OpenaiChat, Platform::DeepSeek | Platform::Compatible) => all_text,
            (Protocol::OpenaiChat, Platform::Mistral) => turn.role == Role::Tool,
            _ => false,
        };
        if is_refused {
            let place = format!("{}.content", turn.place);
            let words = match view.protocol {
                Protocol::Ollama => {
                    "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string".into()
                }
                _ => format!(
                    "Failed to deserialize the JSON body into the target type: {place}: invalid type: sequence, expected a string"
                ),
            };
            refused.add(24, place, words);
        }
    }
}
