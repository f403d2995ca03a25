//! Rules 10 to 12: number of tools, their descriptions, and parameters that must be present.

use serde_json::Value;

use super::Platform;
use super::names::constraint;
use super::refusal::Refusals;
use super::view::View;
use crate::provider::Protocol;

/// Longest description at Azure, in characters.
const DESCRIPTION_MAX: usize = 1024;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    number(view, refused);
    descriptions(view, refused);
    parameters(view, refused);
}

fn number(view: &View<'_>, refused: &mut Refusals) {
    let most = match view.platform {
        _ if view.is_like_openai() || view.platform == Platform::Groq => 128,
        Platform::Xai => 200,
        Platform::Gemini | Platform::Vertex if view.protocol == Protocol::Gemini => 512,
        _ => usize::MAX,
    };
    let count = view.tools.len();
    if count > most {
        let words = format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {most}, but got an array with length {count} instead."
        );
        refused.add_code(10, "array_above_max_length", "tools", words);
    }
    if view.protocol == Protocol::Bedrock && view.body["toolConfig"]["tools"].as_array().is_some_and(Vec::is_empty) {
        let words = constraint("[]", "toolConfig.tools", "Member must have length greater than or equal to 1");
        refused.add(10, "toolConfig.tools", words);
    }
}

fn descriptions(view: &View<'_>, refused: &mut Refusals) {
    for tool in &view.tools {
        let (place, description) = (format!("{}.description", tool.place), tool.description.unwrap_or("-"));
        if view.protocol == Protocol::Bedrock && description.is_empty() {
            refused.add(11, &*place, constraint("", &place, "Member must have length greater than or equal to 1"));
        }
        let length = description.chars().count();
        if view.platform == Platform::Azure && length > DESCRIPTION_MAX {
            let words = format!(
                "Invalid '{place}': string too long. Expected a string with maximum length {DESCRIPTION_MAX}, but got a string \
                 with length {length} instead."
            );
            refused.add_code(11, "string_above_max_length", place, words);
        }
    }
}

fn parameters(view: &View<'_>, refused: &mut Refusals) {
    for tool in view.tools.iter().filter(|_| view.platform == Platform::Minimax) {
        if !tool.schema.is_some_and(|schema| schema.get("properties").is_some_and(Value::is_object)) {
            refused.add_code(12, "2013", &*tool.place, "invalid params, function parameters is empty (2013)");
        }
    }
}
