//! Parameters that servers of Chat Completions refuse.

use super::unsupported;
use crate::rules::Platform;
use crate::rules::refusal::Refusals;
use crate::rules::view::View;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    let body = view.body;
    effort(view, refused);
    let forced = body["tool_choice"] == "required";
    match view.platform {
        Platform::Xai if view.is_model(&["grok-4"]) => {
            for name in ["stop", "presence_penalty", "frequency_penalty"].iter().filter(|name| !body[**name].is_null()) {
                unsupported(refused, name, format!("Model {} does not support parameter {name}.", view.model));
            }
        }
        Platform::Moonshot => {
            if forced {
                unsupported(refused, "tool_choice", "tool_choice 'required' is not supported");
            }
            if body["temperature"].as_f64().is_some_and(|value| value != 1.0) {
                refused.add(38, "temperature", "invalid temperature: only 1 is allowed for this model");
            }
        }
        Platform::DeepSeek if forced && body["thinking"]["type"] == "enabled" => {
            unsupported(refused, "tool_choice", "tool_choice 'required' is not supported in the thinking mode");
        }
        Platform::Zai if view.is_model(&["glm-5.3"]) && body["thinking"]["type"] == "disabled" => {
            refused.add_code(38, "1210", "thinking", "Invalid API parameter: thinking cannot be disabled");
        }
        _ => {}
    }
}

/// Values of `reasoning_effort`.
fn effort(view: &View<'_>, refused: &mut Refusals) {
    let Some(effort) = view.body["reasoning_effort"].as_str() else { return };
    let known: &[&str] = match view.platform {
        Platform::Xai => {
            let refuses = view.is_model(&["grok-3", "grok-4", "code-fast"]) && !view.is_model(&["grok-3-mini"]);
            if refuses {
                let words = format!("Model {} does not support parameter reasoningEffort.", view.model);
                unsupported(refused, "reasoning_effort", words);
            }
            return;
        }
        Platform::Moonshot if effort == "none" => &["low", "medium", "high"],
        Platform::Groq if view.is_model(&["gpt-oss"]) => &["low", "medium", "high"],
        Platform::Groq if view.is_model(&["qwen3"]) => &["none", "default"],
        Platform::Mistral => &["none", "high"],
        Platform::Zai if view.is_model(&["glm-5.3"]) => &["low", "high", "max"],
        _ => return,
    };
    if !known.contains(&effort) {
        let words = format!("`reasoning_effort` must be one of {}, but got '{effort}'", known.join(", "));
        refused.add_code(38, "unsupported_value", "reasoning_effort", words);
    }
}
