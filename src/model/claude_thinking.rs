//! How thinking is configured in requests to Claude models, on Anthropic's API and on other
//! platforms (platform.claude.com/docs/en/build-with-claude/extended-thinking).

use serde::Serialize;
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

use super::catalog::{self, MAX_OUTPUT_TOKENS};
use super::endpoint::{Effort, Endpoint};
use crate::options::Thinking;

/// The field `thinking`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ThinkingConfig {
    Enabled {
        budget_tokens: u32,
    },
    Adaptive {
        display: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// The treatment of a thinking block whose conversation changed.
        block_binding: Option<Value>,
    },
    Disabled,
}

/// The field `output_config`.
#[derive(Serialize)]
pub(super) struct OutputConfig {
    effort: String,
}

/// Maximum default of `max_tokens`. It leaves room for thinking, and for the conversation in the
/// context window.
const MAX_TOKENS: u32 = 64_000;

/// Returns the value of `max_tokens`, which the API requires.
pub(super) fn max_tokens(endpoint: &Endpoint) -> u32 {
    endpoint.max_output_tokens.or(endpoint.output_limit.map(|limit| limit.min(MAX_TOKENS))).unwrap_or(MAX_OUTPUT_TOKENS)
}

/// How thinking is configured for a model.
#[derive(Clone, Copy)]
pub(super) enum ThinkingStyle {
    /// The request sets a token budget for thinking. Without a budget, the model does not think.
    Budget,
    /// The model decides how much to think, if the request enables thinking.
    Adaptive,
    /// Like `Adaptive`, but the request must disable thinking explicitly.
    ByDefault,
    /// The model always thinks, and its thinking blocks are bound to the preceding conversation. If
    /// that conversation changed (pruned, compacted), the API drops the blocks instead of rejecting
    /// the request (platform.claude.com/docs/en/build-with-claude/preserved-thinking).
    Bound,
}

/// Thinking styles by prefix of the model's name. The first match applies.
const THINKING_STYLES: &[(&str, ThinkingStyle)] = &[
    ("claude-opus-4-6", ThinkingStyle::Adaptive),
    ("claude-opus-4-7", ThinkingStyle::Adaptive),
    ("claude-opus-4-8", ThinkingStyle::Adaptive),
    ("claude-sonnet-4-6", ThinkingStyle::Adaptive),
    ("claude-opus-5-5", ThinkingStyle::Bound),
    ("claude-sonnet-5-5", ThinkingStyle::Bound),
    ("claude-haiku-5-5", ThinkingStyle::Bound),
    ("claude-fable-5-1", ThinkingStyle::Bound),
    ("claude-mythos", ThinkingStyle::Adaptive),
    ("claude-fable", ThinkingStyle::Adaptive),
    ("claude-opus-5", ThinkingStyle::ByDefault),
    ("claude-sonnet-5", ThinkingStyle::ByDefault),
    ("claude-3", ThinkingStyle::Budget),
    ("claude-opus-4", ThinkingStyle::Budget),
    ("claude-sonnet-4", ThinkingStyle::Budget),
    ("claude-haiku-4", ThinkingStyle::Budget),
    ("claude-", ThinkingStyle::Adaptive),
];

/// Returns the thinking style of a model. `model` has no vendor prefix.
pub(super) fn thinking_style(model: &str) -> ThinkingStyle {
    THINKING_STYLES
        .iter()
        .find(|(prefix, _)| model.starts_with(prefix))
        .map_or(ThinkingStyle::Budget, |(_, thinking_style)| *thinking_style)
}

/// Returns the thinking style on other platforms, which may lack the beta that
/// [`ThinkingStyle::Bound`] uses.
pub(super) fn platform_style(model: &str) -> ThinkingStyle {
    match thinking_style(model) {
        ThinkingStyle::Bound => ThinkingStyle::Adaptive,
        style => style,
    }
}

/// Returns the fields that configure thinking in a request to the Claude model `model` on another
/// platform. `is_missing`: the last tool calls come from a turn without thinking.
pub(super) fn platform_thinking(endpoint: &Endpoint, model: &str, level: Thinking, is_missing: bool) -> Option<Value> {
    #[skip_serializing_none]
    #[derive(Serialize)]
    struct Fields {
        thinking: Option<ThinkingConfig>,
        output_config: Option<OutputConfig>,
    }
    let style = platform_style(&catalog::bare_name(model));
    let level = if is_missing && matches!(style, ThinkingStyle::Budget) { Thinking::Off } else { level };
    let (thinking, output_config) = thinking_config(endpoint, style, level, max_tokens(endpoint));
    let fields = thinking.is_some() || output_config.is_some();
    fields.then(|| serde_json::to_value(Fields { thinking, output_config }).unwrap_or_default())
}

/// Returns the fields `thinking` and `output_config`.
pub(super) fn thinking_config(
    endpoint: &Endpoint,
    thinking_style: ThinkingStyle,
    thinking: Thinking,
    max_tokens: u32,
) -> (Option<ThinkingConfig>, Option<OutputConfig>) {
    let adaptive = |block_binding| {
        let level = if thinking == Thinking::Off { Thinking::Low } else { thinking };
        let effort = endpoint.effort(level).and_then(Effort::name).unwrap_or_else(|| level.coarse().to_owned());
        (Some(ThinkingConfig::Adaptive { display: "summarized", block_binding }), Some(OutputConfig { effort }))
    };
    match (thinking_style, thinking) {
        (ThinkingStyle::Bound, _) => adaptive(Some(json!({ "prefix_mismatch_behavior": "drop_block" }))),
        (ThinkingStyle::ByDefault, Thinking::Off) => (Some(ThinkingConfig::Disabled), None),
        (ThinkingStyle::Adaptive | ThinkingStyle::Budget, Thinking::Off) => (None, None),
        (ThinkingStyle::Adaptive | ThinkingStyle::ByDefault, _) => adaptive(None),
        (ThinkingStyle::Budget, level) => {
            let budget_tokens = match endpoint.effort(level) {
                Some(Effort::Tokens(tokens)) => tokens,
                _ => budget(level),
            };
            // The budget must be at least 1024 and less than max_tokens. Leave half for the answer.
            let budget_tokens = budget_tokens.min(max_tokens / 2);
            ((budget_tokens >= 1024).then_some(ThinkingConfig::Enabled { budget_tokens }), None)
        }
    }
}

/// Returns the token budget for a thinking level.
fn budget(level: Thinking) -> u32 {
    match level {
        Thinking::Off | Thinking::Minimal => 1024,
        Thinking::Low => 4096,
        Thinking::Medium => 12_000,
        Thinking::High => 24_000,
        Thinking::XHigh => 32_000,
        Thinking::Max => 64_000,
    }
}
