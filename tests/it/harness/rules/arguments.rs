//! Rule 25: arguments of calls are a JSON object.

use serde_json::Value;

use super::Platform;
use super::refusal::Refusals;
use super::view::{Arguments, Content, View};
use crate::provider::Protocol;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    for block in view.blocks() {
        let Content::Call { arguments, name, .. } = &block.content else { continue };
        let as_text = matches!(view.protocol, Protocol::OpenaiChat | Protocol::OpenaiResponses);
        let fits = match arguments {
            Arguments::Text(text) => {
                as_text && serde_json::from_str::<Value>(&super::without_surrogates(text)).is_ok_and(|value| value.is_object())
            }
            Arguments::Json(value) => !as_text && (value.is_object() || value.is_null() && view.protocol == Protocol::Gemini),
        };
        if fits {
            continue;
        }
        let (place, words) = match (view.protocol, view.platform) {
            (Protocol::Anthropic, _) => {
                let place = format!("{}.tool_use.input", block.place);
                let words = format!("{place}: Input should be a valid dictionary");
                (place, words)
            }
            (Protocol::Bedrock, _) => {
                let place = format!("{}.toolUse.input", block.place);
                let words =
                    format!("The format of the value at {place} is invalid. Provide a json object for the field and try again.");
                (place, words)
            }
            (Protocol::Gemini, _) => {
                let place = format!("{}.function_call.args", block.place);
                let words = format!("Invalid value at '{place}' (type.googleapis.com/google.protobuf.Struct)");
                (place, words)
            }
            (Protocol::Ollama, _) => {
                let words = "json: cannot unmarshal into Go struct field ToolCallFunction.arguments".to_owned();
                (format!("{}.function.arguments", block.place), words)
            }
            (_, Platform::Minimax) => (
                format!("{}.function.arguments", block.place),
                "invalid params, invalid function arguments json string (2013)".into(),
            ),
            (_, Platform::LlamaCpp | Platform::LmStudio) => {
                (format!("{}.function.arguments", block.place), "Failed to parse tool call arguments as JSON".into())
            }
            (Protocol::OpenaiResponses, _) => (
                format!("{}.arguments", block.place),
                format!("Invalid arguments of function call '{name}': expected a JSON object"),
            ),
            (Protocol::OpenaiChat, _) => (
                format!("{}.function.arguments", block.place),
                format!("Invalid arguments of the tool call '{name}': expected the JSON text of an object"),
            ),
        };
        let status = if view.is_at(&[Platform::LlamaCpp, Platform::LmStudio]) { 500 } else { 400 };
        refused.add_status(25, status, None, place, words);
    }
}
