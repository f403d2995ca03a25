//! Parameters and cache breakpoints that Anthropic refuses.

use serde_json::Value;

use crate::rules::model;
use crate::rules::refusal::Refusals;
use crate::rules::view::View;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    thinking(view, refused);
    sampling(view, refused);
    effort(view, refused);
    breakpoints(view, refused);
    let body = view.body;
    if body["stop_sequences"].as_array().into_iter().flatten().any(|stop| stop.as_str().is_some_and(|stop| stop.trim().is_empty()))
    {
        refused.add(38, "stop_sequences", "stop_sequences: each stop sequence must contain non-whitespace");
    }
    if body["service_tier"].as_str().is_some_and(|tier| !["auto", "standard_only"].contains(&tier)) {
        refused.add(38, "service_tier", "service_tier: Input should be 'auto' or 'standard_only'");
    }
}

fn thinking(view: &View<'_>, refused: &mut Refusals) {
    let thinking = &view.body["thinking"];
    let choice = view.body["tool_choice"]["type"].as_str().unwrap_or_default();
    let is_forced = ["any", "tool"].contains(&choice);
    if thinking["type"] == "enabled" {
        if model::claude_from(view.model, (4, 7)) {
            let words = "thinking.type: \"enabled\" is not supported for this model. Use \"thinking.type.adaptive\".";
            refused.add(38, "thinking.type", words);
        }
        let budget = thinking["budget_tokens"].as_u64().unwrap_or_default();
        if budget < 1024 {
            refused.add(
                38,
                "thinking.budget_tokens",
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            );
        }
        if view.body["max_tokens"].as_u64().is_some_and(|most| budget >= most) {
            refused.add(38, "max_tokens", "`max_tokens` must be greater than `thinking.budget_tokens`.");
        }
        if is_forced {
            refused.add(38, "tool_choice", "Thinking may not be enabled when tool_choice forces tool use.");
        }
    }
    let refuses_forced = ["fable-5-1", "mythos-5-1", "opus-5-5", "sonnet-5-5"];
    if is_forced && view.is_model(&refuses_forced) {
        refused.add(38, "tool_choice", "tool_choice: forced tool use is not supported for this model.");
    }
}

fn sampling(view: &View<'_>, refused: &mut Refusals) {
    let body = view.body;
    let thinks = ["enabled", "adaptive"].iter().any(|kind| body["thinking"]["type"] == *kind);
    for name in ["temperature", "top_p", "top_k"].iter().filter(|name| !body[**name].is_null()) {
        if model::claude_from(view.model, (4, 7)) {
            refused.add(38, *name, format!("`{name}` is deprecated for this model."));
        }
    }
    if thinks && body["temperature"].as_f64().is_some_and(|value| value != 1.0) {
        refused.add(38, "temperature", "`temperature` may only be set to 1 when thinking is enabled.");
    }
    if thinks && !body["top_k"].is_null() {
        refused.add(38, "top_k", "`top_k` must be unset when thinking is enabled.");
    }
    if !body["temperature"].is_null() && !body["top_p"].is_null() {
        refused.add(38, "top_p", "`temperature` and `top_p` cannot both be specified for this model. Please use only one.");
    }
}

fn effort(view: &View<'_>, refused: &mut Refusals) {
    let effort = view.body["output_config"]["effort"].as_str().unwrap_or_default();
    let least = match effort {
        "max" => (4, 6),
        "xhigh" => (4, 7),
        _ => return,
    };
    if !model::claude_from(view.model, least) {
        refused.add(38, "output_config.effort", format!("This model does not support effort level '{effort}'."));
    }
}

/// At most four breakpoints, and none of an hour after one of five minutes.
fn breakpoints(view: &View<'_>, refused: &mut Refusals) {
    let mut found = Vec::new();
    for name in ["tools", "system", "messages"] {
        collect(&view.body[name], &mut found);
    }
    if found.len() > 4 {
        let words = format!("A maximum of 4 blocks with cache_control may be provided. Found {}.", found.len());
        refused.add(38, "cache_control", words);
    }
    let first_short = found.iter().position(|breakpoint| breakpoint["ttl"] != "1h").unwrap_or(found.len());
    if found[first_short..].iter().any(|breakpoint| breakpoint["ttl"] == "1h") {
        let words = "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that \
                     blocks are processed in the following order: `tools`, `system`, `messages`.";
        refused.add(38, "cache_control.ttl", words);
    }
}

fn collect<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        // Schemas and arguments have fields of any name.
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(name, _)| !["input", "input_schema"].contains(&name.as_str())) {
                match name.as_str() {
                    "cache_control" => found.extend(Some(value).filter(|value| value.is_object())),
                    _ => collect(value, found),
                }
            }
        }
        _ => {}
    }
}
