//! Parameters that OpenAI refuses.

use super::unsupported;
use crate::provider::Protocol;
use crate::rules::model;
use crate::rules::refusal::Refusals;
use crate::rules::view::View;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    let body = view.body;
    if view.protocol == Protocol::OpenaiResponses
        && let Some(tokens) = body["max_output_tokens"].as_u64().filter(|tokens| *tokens < 16)
    {
        let words =
            format!("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {tokens} instead.");
        refused.add_code(38, "integer_below_min_value", "max_output_tokens", words);
    }
    if model::reasons(view.model) {
        reasoning(view, refused);
    }
    let verbosity = if view.protocol == Protocol::OpenaiChat { &body["verbosity"] } else { &body["text"]["verbosity"] };
    let takes_verbosity = model::version(view.model, "gpt-").is_some_and(|version| version >= (5, 0));
    if !verbosity.is_null() && !takes_verbosity {
        unsupported(refused, "verbosity", "Unsupported parameter: 'verbosity' is not supported with this model.");
    }
}

fn reasoning(view: &View<'_>, refused: &mut Refusals) {
    let body = view.body;
    let is_chat = view.protocol == Protocol::OpenaiChat;
    if is_chat && !body["max_tokens"].is_null() {
        let words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        unsupported(refused, "max_tokens", words);
    }
    let effort = if is_chat { &body["reasoning_effort"] } else { &body["reasoning"]["effort"] };
    let takes_sampling = effort == "none" && model::version(view.model, "gpt-").is_some_and(|version| version >= (5, 1));
    for name in ["temperature", "top_p", "presence_penalty", "frequency_penalty"] {
        let default = if name.ends_with("penalty") { 0.0 } else { 1.0 };
        if body[name].as_f64().is_some_and(|value| value != default) && !takes_sampling {
            let words = format!(
                "Unsupported value: '{name}' does not support {} with this model. Only the default (1) value is supported.",
                body[name]
            );
            refused.add_code(38, "unsupported_value", name, words);
        }
    }
    let without_stop = view.is_model(&["o3", "o4-mini"]);
    let stops = body["stop"].as_array().map_or(usize::from(!body["stop"].is_null()), Vec::len);
    if is_chat && (stops > 4 || stops > 0 && without_stop) {
        unsupported(refused, "stop", "Unsupported parameter: 'stop' is not supported with this model.");
    }
    // These models call functions while reasoning only in Responses.
    let version = model::version(view.model, "gpt-").unwrap_or_default();
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let refuses = match version {
        (5, 4) => !effort.is_null() && effort != "none",
        (5, 5 | 6) => effort != "none",
        _ => false,
    };
    if is_chat && has_tools && refuses {
        let words = format!(
            "Function tools with reasoning_effort are not supported for {} in /v1/chat/completions. Please use /v1/responses instead.",
            view.model
        );
        refused.add(38, "reasoning_effort", words);
    }
}
