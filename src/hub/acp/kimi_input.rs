//! Inputs of the calls of Kimi Code. Its permission request has no input, and the update with
//! `rawInput` follows only after it. Before the request, the first text of the call's content is
//! the input as JSON, of which each update has a longer part (`toolCallDeltaToSessionUpdate` in its
//! package `kimi-code`).

use serde_json::Value;

/// Returns the input of a call that has not ended, once its text is complete.
pub(super) fn input(update: &Value) -> Option<Value> {
    // After the end of the call, its content is the output.
    if update["status"] == "completed" || update["status"] == "failed" {
        return None;
    }
    let texts = update["content"].as_array()?.iter().filter_map(|entry| entry["content"]["text"].as_str());
    let input: Value = texts.take(1).find_map(|text| crate::json::from_str(text).ok())?;
    input.is_object().then_some(input)
}
