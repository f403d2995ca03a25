//! Unknown fields: of the body (rule 38), and of messages at Groq and Cerebras (rule 36).

use serde_json::Value;

use super::Platform;
use super::refusal::Refusals;
use super::view::View;
use crate::provider::Protocol;

const ANTHROPIC: &str = "anthropic_beta anthropic_version betas cache_control container context_management inference_geo \
    max_tokens mcp_servers messages metadata model output_config output_format service_tier speed stop_sequences stream system \
    temperature thinking tool_choice tools top_k top_p";

const CHAT: &str = "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages \
    metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key \
    prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options \
    temperature tool_choice tools top_logprobs top_p user verbosity web_search_options";

const RESPONSES: &str = "background context_management conversation include input instructions max_output_tokens max_tool_calls \
    metadata model parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning \
    safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation \
    user";

const MISTRAL: &str = "frequency_penalty guardrails max_tokens messages metadata model n parallel_tool_calls prediction \
    presence_penalty prompt_cache_key prompt_mode random_seed reasoning_effort response_format safe_prompt stop stream \
    temperature tool_choice tools top_p";

const CEREBRAS: &str = "clear_thinking disable_reasoning logprobs max_completion_tokens max_tokens messages model prediction \
    prompt_cache_key reasoning_effort reasoning_format response_format seed stop stream stream_options temperature tool_choice \
    tools top_logprobs top_p user";

const GEMINI: &str = "cachedContent contents generationConfig labels model safetySettings serviceTier store systemInstruction \
    toolConfig tools";

const BEDROCK: &str = "additionalModelRequestFields additionalModelResponseFieldPaths guardrailConfig inferenceConfig messages \
    outputConfig performanceConfig promptVariables requestMetadata serviceTier system toolConfig";

/// Fields of messages at Groq and Cerebras.
const MESSAGE: &str = "content name reasoning refusal role tool_call_id tool_calls";

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    body(view, refused);
    if view.protocol == Protocol::OpenaiChat && view.is_at(&[Platform::Groq, Platform::Cerebras]) {
        messages(view, refused);
    }
}

fn body(view: &View<'_>, refused: &mut Refusals) {
    let known = match (view.protocol, view.platform) {
        (Protocol::Anthropic, _) => ANTHROPIC,
        (Protocol::OpenaiResponses, _) => RESPONSES,
        (Protocol::Gemini, _) => GEMINI,
        (Protocol::Bedrock, _) => BEDROCK,
        (_, Platform::OpenAi | Platform::Azure) => CHAT,
        (_, Platform::Mistral) => MISTRAL,
        (_, Platform::Cerebras) => CEREBRAS,
        // Other servers ignore what they do not know.
        _ => return,
    };
    let names = view.body.as_object().into_iter().flat_map(|fields| fields.keys());
    for name in names.filter(|name| !known.split_whitespace().any(|known| known == *name)) {
        let (status, code, words) = match (view.protocol, view.platform) {
            (Protocol::Anthropic, _) => (400, None, format!("{name}: Extra inputs are not permitted")),
            (Protocol::Gemini, _) => {
                (400, None, format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot find field."))
            }
            (Protocol::Bedrock, _) => (
                400,
                None,
                format!(
                    "Malformed input request: #: extraneous key [{name}] is not permitted, please reformat your input and try again."
                ),
            ),
            (_, Platform::Mistral) => (422, None, format!("body.{name}: Extra inputs are not permitted")),
            (_, Platform::Cerebras) => (400, Some("wrong_api_format"), format!("body.{name}: property '{name}' is unsupported")),
            _ => (400, Some("unknown_parameter"), format!("Unknown parameter: '{name}'.")),
        };
        refused.add_status(38, status, code, &**name, words);
    }
}

fn messages(view: &View<'_>, refused: &mut Refusals) {
    for (index, turn) in view.turns.iter().enumerate() {
        for (name, value) in turn.value.as_object().into_iter().flatten() {
            let is_known = MESSAGE.split_whitespace().any(|known| known == name);
            // The content of a message with calls is null.
            let is_null = *value == Value::Null && name != "content";
            if is_known && !is_null {
                continue;
            }
            let role = turn.value["role"].as_str().unwrap_or_default();
            let words = match view.platform {
                Platform::Groq => format!(
                    "'messages.{index}' : for 'role:{role}' the following must be satisfied[('messages.{index}' : property '{name}' is unsupported)]"
                ),
                _ => format!("body.messages.{index}.{role}.{name}: property '{name}' is unsupported"),
            };
            refused.add_code(36, "wrong_api_format", format!("{}.{name}", turn.place), words);
        }
    }
}
