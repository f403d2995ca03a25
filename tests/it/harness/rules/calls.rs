//! Rules 13 to 16, 21 and 22: calls and their results.

mod ids;
mod pairs;

use super::refusal::Refusals;
use super::view::{Content, View};
use crate::provider::Protocol;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    pairs::check(view, refused);
    ids::check(view, refused);
    if view.protocol == Protocol::Bedrock {
        bedrock(view, refused);
    }
}

/// Rules 21 and 22, which only Bedrock has.
fn bedrock(view: &View<'_>, refused: &mut Refusals) {
    let uses_tools = view.blocks().any(|block| block.is_call() || block.is_result());
    if uses_tools && view.tools.is_empty() {
        let words = "The toolConfig field must be defined when using toolUse and toolResult content blocks.";
        refused.add(21, "toolConfig", words);
    }
    for block in view.blocks() {
        if let Content::Result { failed: true, content, .. } = &block.content
            && content.is_empty()
        {
            let place = format!("{}.toolResult.content", block.place);
            let words = format!("The content field at {place} is empty: a toolResult with the status error needs content.");
            refused.add(22, place, words);
        }
    }
}
