//! Rule 34: thinking blocks of Claude, on Anthropic's API and on Bedrock.

use serde_json::Value;

use super::model;
use super::refusal::Refusals;
use super::view::{Block, Content, Role, Turn, View};
use crate::provider::Protocol;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    let thoughts = view.blocks().filter(|block| matches!(block.content, Content::Thinking));
    match view.protocol {
        Protocol::Anthropic => {
            thoughts.for_each(|block| anthropic(view, block, refused));
            first(view, refused);
        }
        Protocol::Bedrock => thoughts.for_each(|block| bedrock(view, block, refused)),
        _ => {}
    }
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_none_or(|text| text.trim().is_empty())
}

fn anthropic(view: &View<'_>, block: &Block<'_>, refused: &mut Refusals) {
    let (place, value) = (&block.place, block.value);
    if value["type"] == "redacted_thinking" {
        if is_blank(&value["data"]) {
            refused.add(34, &**place, format!("{place}.redacted_thinking.data: Input should be a non-empty string"));
        }
    } else if value.get("signature").is_none() {
        refused.add(34, &**place, format!("{place}.thinking.signature: Field required"));
    } else if is_blank(&value["signature"]) {
        refused.add(34, &**place, format!("{place}: Invalid `signature` in `thinking` block"));
    }
    if value.get("cache_control").is_some() {
        refused.add(34, &**place, format!("{place}.thinking.cache_control: Extra inputs are not permitted"));
    }
    // Later models think without the parameter.
    let off_by_default = view.body["thinking"].is_null() && !model::claude_from(view.model, (4, 7));
    if view.body["thinking"]["type"] == "disabled" || off_by_default {
        let words = format!(
            "{place}: When `thinking` is disabled, an `assistant` message in the final position cannot contain `thinking`."
        );
        refused.add(34, &**place, words);
    }
}

/// The turn whose results the request ends with begins with its thinking.
fn first(view: &View<'_>, refused: &mut Refusals) {
    let [.., assistant, results] = view.turns.as_slice() else { return };
    let is_loop = results.blocks.first().is_some_and(Block::is_result) && assistant.role == Role::Assistant;
    if view.body["thinking"]["type"] != "enabled" || !is_loop {
        return;
    }
    let Turn { blocks, place, .. } = assistant;
    if let Some(first) = blocks.first().filter(|first| !matches!(first.content, Content::Thinking)) {
        let found = first.value["type"].as_str().unwrap_or_default();
        let words = format!(
            "{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a \
             final `assistant` message must start with a thinking block (preceding the lastmost set of `tool_use` and \
             `tool_result` blocks)."
        );
        refused.add(34, format!("{place}.content.0"), words);
    }
}

/// Families that refuse any reasoning in the history.
const WITHOUT: &[&str] = &["deepseek", "nova", "llama", "gpt-oss", "mistral", "qwen", "grok"];

fn bedrock(view: &View<'_>, block: &Block<'_>, refused: &mut Refusals) {
    let (place, reasoning) = (&block.place, &block.value["reasoningContent"]);
    let signature = &reasoning["reasoningText"]["signature"];
    if view.is_model(WITHOUT) {
        let words = format!(
            "User messages cannot contain reasoning content: {place}. This model doesn't support the reasoningContent field."
        );
        refused.add(34, &**place, words);
    } else if !view.is_model(&["claude"]) && !signature.is_null() {
        refused.add(
            34,
            &**place,
            format!("{place}: This model doesn't support the reasoningContent.reasoningText.signature field."),
        );
    } else if view.is_model(&["claude"]) && reasoning["redactedContent"].is_null() && is_blank(signature) {
        refused.add(34, &**place, format!("{place}.thinking.signature: Field required"));
    }
}
