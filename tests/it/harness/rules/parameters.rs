//! Rule 38: parameters, by provider and model.

mod bedrock;
mod claude;
mod compatible;
mod effort;
mod gemini;
mod openai;

use super::Platform;
use super::refusal::Refusals;
use super::view::View;
use crate::provider::Protocol;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    match view.protocol {
        Protocol::Anthropic => claude::check(view, refused),
        Protocol::Bedrock => bedrock::check(view, refused),
        Protocol::Gemini => gemini::check(view, refused),
        Protocol::Ollama => ollama(view, refused),
        Protocol::OpenaiChat | Protocol::OpenaiResponses if view.is_at(&[Platform::OpenAi, Platform::Azure]) => {
            openai::check(view, refused);
            effort::check(view, refused);
        }
        Protocol::OpenaiChat | Protocol::OpenaiResponses => compatible::check(view, refused),
    }
}

/// Adds a refusal of a parameter in the words of OpenAI.
fn unsupported(refused: &mut Refusals, name: &str, words: impl Into<String>) {
    refused.add_code(38, "unsupported_parameter", name, words);
}

/// Values of `think`: a switch or a level.
fn ollama(view: &View<'_>, refused: &mut Refusals) {
    let think = &view.body["think"];
    if let Some(level) = think.as_str().filter(|level| !["low", "medium", "high", "max"].contains(level)) {
        refused.add(
            38,
            "think",
            format!("invalid think value: \"{level}\" (must be \"high\", \"medium\", \"low\", true, or false)"),
        );
    }
}
