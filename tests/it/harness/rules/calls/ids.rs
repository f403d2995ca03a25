//! Rules 14 to 16: ids of calls are unique, have the form of the dialect, and are absent where the
//! server does not know the field.

use std::collections::BTreeSet;

use crate::provider::Protocol;
use crate::rules::names::constraint;
use crate::rules::refusal::Refusals;
use crate::rules::view::{Block, Content, View};
use crate::rules::{Platform, model};

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    let mut seen = BTreeSet::new();
    for block in view.blocks() {
        let (id, is_call) = match &block.content {
            Content::Call { id, .. } => (*id, true),
            Content::Result { id, .. } => (*id, false),
            _ => continue,
        };
        if view.protocol == Protocol::Gemini && !takes_ids(view) {
            let field = if is_call { "function_call" } else { "function_response" };
            if id.is_some() {
                let words =
                    format!("Invalid JSON payload received. Unknown name \"id\" at '{}.{field}': Cannot find field.", block.place);
                refused.add(16, format!("{}.{field}.id", block.place), words);
            }
            continue;
        }
        let Some(id) = id else { continue };
        if is_call && !seen.insert(id) {
            refused.add(14, &*block.place, twice(view, block, id));
        }
        form(view, block, id, is_call, refused);
    }
}

/// Only the Gemini API takes ids, for Gemini 3.5 and later.
fn takes_ids(view: &View<'_>) -> bool {
    view.platform == Platform::Gemini && model::version(view.model, "gemini-").is_none_or(|version| version >= (3, 5))
}

fn twice(view: &View<'_>, block: &Block<'_>, id: &str) -> String {
    match (view.protocol, view.platform) {
        (Protocol::Anthropic, _) => format!("{}: `tool_use` ids must be unique", block.place),
        (Protocol::Bedrock, _) => format!("The toolUse blocks at {} contain duplicate Ids: {id}", block.place),
        (_, Platform::Moonshot) => format!("Invalid request: tool call id {id} is duplicated"),
        _ => format!("Duplicate tool call id: {id}"),
    }
}

fn form(view: &View<'_>, block: &Block<'_>, id: &str, is_call: bool, refused: &mut Refusals) {
    let plain = |id: &str, more: &str| id.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter));
    let mut refuse = |place: String, code: &'static str, words: String| refused.add_code(15, code, place, words);
    match (view.protocol, view.platform) {
        (Protocol::Anthropic, _) if id.is_empty() || !plain(id, "_-") => {
            let place = format!("{}.{}", block.place, if is_call { "tool_use.id" } else { "tool_result.tool_use_id" });
            let words = format!("{place}: String should match pattern '^[a-zA-Z0-9_-]+$'");
            refuse(place, "", words);
        }
        (Protocol::Bedrock, _) => {
            let place = format!("{}.{}.toolUseId", block.place, if is_call { "toolUse" } else { "toolResult" });
            if model::is_mistral(view.model) && !is_mistral_id(id) {
                refuse(place, "", mistral(id));
            } else if !plain(id, "_.:-") || !(1..=64).contains(&id.len()) {
                let words = constraint(id, &place, "Member must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+");
                refuse(place, "", words);
            }
        }
        (Protocol::OpenaiChat, Platform::Mistral) if !is_mistral_id(id) => {
            refuse(block.place.clone(), "3280", mistral(id));
        }
        (Protocol::OpenaiChat | Protocol::OpenaiResponses, _) => {
            let (max, field) = match (view.protocol, is_call) {
                (Protocol::OpenaiResponses, _) => (64, "call_id"),
                (_, true) => (40, "id"),
                (_, false) => (40, "tool_call_id"),
            };
            let limited = view.is_at(&[Platform::OpenAi, Platform::Azure, Platform::Compatible]);
            let (place, length) = (format!("{}.{field}", block.place), id.chars().count());
            if limited && length > max {
                let words = format!(
                    "Invalid '{place}': string too long. Expected a string with maximum length {max}, but got a string with \
                     length {length} instead."
                );
                refuse(place, "string_above_max_length", words);
            }
        }
        _ => {}
    }
}

fn is_mistral_id(id: &str) -> bool {
    id.len() == 9 && id.chars().all(|letter| letter.is_ascii_alphanumeric())
}

fn mistral(id: &str) -> String {
    format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.")
}
