//! Rules 31 and 33: media in results, and audio.

use super::refusal::Refusals;
use super::view::{Block, Content, View};
use super::{Platform, model};
use crate::provider::Protocol;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    for block in view.blocks() {
        if let Content::Result { failed, content, .. } = &block.content {
            for inner in content {
                results(view, block, *failed, inner, refused);
            }
        }
    }
    for block in view.all_blocks() {
        if let Content::Audio { format } = block.content {
            audio(view, block, format, refused);
        }
    }
    if view.protocol == Protocol::Bedrock {
        bedrock(view, refused);
    }
}

/// Rule 31: media in results.
fn results(view: &View<'_>, block: &Block<'_>, failed: bool, inner: &Block<'_>, refused: &mut Refusals) {
    let is_image = matches!(inner.content, Content::Image { .. });
    let is_document = matches!(inner.content, Content::Document { .. });
    if !is_image && !is_document {
        return;
    }
    let gemini_before_3 = || model::version(view.model, "gemini-").is_some_and(|version| version < (3, 0));
    let words = match view.protocol {
        Protocol::Anthropic if failed => {
            format!("{}.tool_result: all content must be type \"text\" if \"is_error\" is true", block.place)
        }
        Protocol::OpenaiChat if is_image => format!(
            "Invalid '{}'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains \
             an image URL.",
            block.place
        ),
        Protocol::Gemini if gemini_before_3() => "Multimodal function responses are not supported by this model.".to_owned(),
        Protocol::Bedrock if is_image && (model::is_mistral(view.model) || view.is_model(&["gpt-5", "gpt-6"])) => {
            "This model doesn't support tool results with images.".to_owned()
        }
        Protocol::Bedrock if view.is_model(&["kimi", "qwen"]) => "This model doesn't support media in tool results.".to_owned(),
        Protocol::Bedrock if is_document && view.is_model(&["nova"]) => {
            "This model doesn't support documents in tool results.".to_owned()
        }
        _ => return,
    };
    refused.add(31, &*inner.place, words);
}

/// Rule 33: no audio in Responses, and only two formats in Chat Completions.
fn audio(view: &View<'_>, block: &Block<'_>, format: Option<&str>, refused: &mut Refusals) {
    match view.protocol {
        Protocol::OpenaiResponses => {
            let words = "Invalid value: 'input_audio'. Supported values are: 'input_text', 'input_image', 'output_text', 'refusal', \
                         'input_file', 'computer_screenshot', and 'summary_text'.";
            refused.add_code(33, "invalid_value", &*block.place, words);
        }
        Protocol::OpenaiChat if view.is_at(&[Platform::OpenAi, Platform::Azure]) && !matches!(format, Some("wav" | "mp3")) => {
            let words = format!("Invalid value: '{}'. Supported values are: 'wav' and 'mp3'.", format.unwrap_or_default());
            refused.add_code(33, "invalid_value", &*block.place, words);
        }
        _ => {}
    }
}

/// Rule 31 at Bedrock: images in turns of the assistant, and `status` at Writer.
fn bedrock(view: &View<'_>, refused: &mut Refusals) {
    for turn in view.turns.iter().filter(|turn| turn.role == super::view::Role::Assistant) {
        for block in turn.blocks.iter().filter(|block| matches!(block.content, Content::Image { .. })) {
            refused.add(31, &*block.place, "Images are only allowed in user messages.");
        }
    }
    for block in view.blocks().filter(|block| block.is_result() && view.is_model(&["writer"])) {
        if !block.value["toolResult"]["status"].is_null() {
            refused.add(31, &*block.place, "This model doesn't support the status field.");
        }
    }
}
