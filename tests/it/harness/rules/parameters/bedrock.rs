//! Parameters and cache points that Bedrock refuses.

use serde_json::Value;

use crate::rules::model;
use crate::rules::names::constraint;
use crate::rules::refusal::Refusals;
use crate::rules::view::View;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    let config = &view.body["inferenceConfig"];
    for name in ["temperature", "topP"] {
        if let Some(value) = config[name].as_f64().filter(|value| !(0.0..=1.0).contains(value)) {
            let place = format!("inferenceConfig.{name}");
            let words = constraint(&value.to_string(), &place, "Member must have value less than or equal to 1");
            refused.add(38, &*place, words);
        }
    }
    if config["maxTokens"].as_i64().is_some_and(|tokens| tokens < 1) {
        let words = constraint("0", "inferenceConfig.maxTokens", "Member must have value greater than or equal to 1");
        refused.add(38, "inferenceConfig.maxTokens", words);
    }
    let without_stops = view.is_model(&["grok"]) || model::version(view.model, "gpt-").is_some_and(|version| version >= (5, 6));
    if config["stopSequences"].as_array().is_some_and(|stops| !stops.is_empty()) && without_stops {
        refused.add(38, "inferenceConfig.stopSequences", "This model doesn't support the stopSequences field.");
    }
    let choice = &view.body["toolConfig"]["toolChoice"];
    if !choice["tool"].is_null() && !view.is_model(&["claude", "nova"]) {
        refused.add(38, "toolConfig.toolChoice.tool", "This model doesn't support the toolConfig.toolChoice.tool field.");
    }
    let thinking = &view.body["additionalModelRequestFields"]["thinking"]["type"];
    if thinking == "enabled" && (!choice["tool"].is_null() || !choice["any"].is_null()) {
        refused.add(38, "toolConfig.toolChoice", "Thinking may not be enabled when tool_choice forces tool use.");
    }
    cache_points(view, refused);
}

/// A cache point is never first, and its lifetime does not rise.
fn cache_points(view: &View<'_>, refused: &mut Refusals) {
    let body = view.body;
    let messages = body["messages"].as_array().into_iter().flatten().map(|message| &message["content"]);
    let lists = [&body["toolConfig"]["tools"], &body["system"]].into_iter().chain(messages);
    let mut is_short = false;
    for list in lists.filter_map(Value::as_array) {
        if list.first().is_some_and(|first| first.get("cachePoint").is_some()) {
            refused.add(38, "cachePoint", "A cachePoint cannot be the first block.");
        }
        for point in list.iter().filter_map(|block| block.get("cachePoint")) {
            let is_long = point["ttl"] == "1h";
            if is_long && is_short {
                refused.add(38, "cachePoint.ttl", "A cachePoint with ttl '1h' must not come after a cachePoint with ttl '5m'.");
            }
            is_short |= !is_long;
        }
    }
}
