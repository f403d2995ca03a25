//! Rules 35 to 37: reasoning items of Responses, `reasoning_content` of Chat Completions, and
//! signatures of Gemini.

use super::Platform;
use super::model;
use super::refusal::Refusals;
use super::view::{Content, Role, View};
use crate::provider::Protocol;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    match view.protocol {
        Protocol::OpenaiResponses => items(view, refused),
        Protocol::OpenaiChat => contents(view, refused),
        Protocol::Gemini => signatures(view, refused),
        _ => {}
    }
}

/// Prefixes of the ids of items.
const PREFIXES: &[(&str, &str)] = &[("function_call", "fc"), ("message", "msg"), ("reasoning", "rs")];

/// Rule 35: reasoning items are encrypted, and their item follows.
fn items(view: &View<'_>, refused: &mut Refusals) {
    for (index, turn) in view.turns.iter().enumerate() {
        let (item, place) = (turn.value, &turn.place);
        let (kind, id) = (item["type"].as_str().unwrap_or("message"), item["id"].as_str());
        let prefix = PREFIXES.iter().find(|(known, _)| *known == kind).map(|(_, prefix)| *prefix);
        if let (Some(id), Some(prefix)) = (id, prefix)
            && !id.starts_with(&format!("{prefix}_"))
        {
            let words = format!("Invalid '{place}.id': '{id}'. Expected an ID that begins with '{prefix}'.");
            refused.add_code(35, "invalid_value", format!("{place}.id"), words);
        }
        if kind != "reasoning" {
            continue;
        }
        let id = id.unwrap_or_default();
        if view.body["store"] == false && item["encrypted_content"].as_str().is_none_or(str::is_empty) {
            let words = format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set \
                 to true, or remove this item from your input."
            );
            refused.add_status(35, 404, None, "input", words);
        }
        let follows = view.turns.get(index + 1).is_some_and(|next| next.role == Role::Assistant);
        if !follows {
            let words = format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
            refused.add(35, "input", words);
        }
    }
}

/// Rule 36: DeepSeek and Moonshot require the reasoning of turns with calls.
fn contents(view: &View<'_>, refused: &mut Refusals) {
    let is_off = view.body["thinking"]["type"] == "disabled";
    let (requires, counts_empty) = match view.platform {
        Platform::DeepSeek => (view.is_model(&["deepseek-v4"]) && !is_off, true),
        Platform::Moonshot => {
            let thinks = view.is_model(&["kimi-k2.5", "kimi-k2.6", "thinking"]) || view.body["thinking"]["type"] == "enabled";
            (thinks && !is_off, !view.is_model(&["kimi-k2.5", "kimi-k2.6"]))
        }
        _ => (false, true),
    };
    for (index, turn) in view.turns.iter().enumerate().filter(|(_, turn)| turn.role == Role::Assistant) {
        let found = turn.value["reasoning_content"].as_str();
        let calls = turn.blocks.iter().any(|block| block.is_call());
        if requires && calls && found.is_none_or(|text| text.is_empty() && !counts_empty) {
            let words = match view.platform {
                Platform::DeepSeek => "The `reasoning_content` in the thinking mode must be passed back to the API.".to_owned(),
                _ => {
                    format!("thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}")
                }
            };
            refused.add(36, &*turn.place, words);
        }
        if view.platform == Platform::DeepSeek && view.is_model(&["deepseek-r1"]) && found.is_some() {
            refused.add(36, &*turn.place, "The `reasoning_content` is included in the input messages.");
        }
    }
}

/// Rule 37: the first call of a step has a signature, from Gemini 3 on.
fn signatures(view: &View<'_>, refused: &mut Refusals) {
    if model::version(view.model, "gemini-").is_none_or(|version| version < (3, 0)) {
        return;
    }
    for turn in view.turns.iter().filter(|turn| turn.role == Role::Assistant) {
        let Some(call) = turn.blocks.iter().find(|block| block.is_call()) else { continue };
        let signature = call.value["thoughtSignature"].as_str().unwrap_or_default();
        if let Content::Call { name, .. } = &call.content
            && signature.is_empty()
        {
            let words = format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, \
                 and missing thought_signature may lead to degraded model performance. Additional data, function call \
                 `default_api:{name}`, position {}.",
                turn.place
            );
            refused.add(37, &*call.place, words);
        }
        for block in turn.blocks.iter().filter(|block| block.value["functionCall"].get("thoughtSignature").is_some()) {
            let words = format!(
                "Invalid JSON payload received. Unknown name \"thoughtSignature\" at '{}.function_call': Cannot find field.",
                block.place
            );
            refused.add(37, &*block.place, words);
        }
    }
}
