//! Rules 5 and 8: arrays, objects and patterns, as OpenAI, Moonshot, Bedrock and local servers
//! check them.

use serde_json::Value;

use super::ToolSchema;
use super::walk::{InnerSchema, schemas};
use crate::provider::Protocol;
use crate::rules::refusal::Refusals;
use crate::rules::{Platform, pattern};

pub fn check(found: &ToolSchema<'_>, refused: &mut Refusals) {
    for inner in schemas(found.schema) {
        if found.view.is_like_openai() {
            members(found, &inner, refused);
        }
        if found.view.platform == Platform::Moonshot {
            moonshot(found, &inner, refused);
        }
        if let Some(text) = inner.schema["pattern"].as_str() {
            patterns(found, &inner, text, refused);
        }
    }
}

/// Rule 5: an array has `items`, an object has `properties`.
fn members(found: &ToolSchema<'_>, inner: &InnerSchema<'_>, refused: &mut Refusals) {
    let is = |name: &str| inner.schema["type"] == name;
    let context = inner.context();
    if is("array") && inner.schema.get("items").is_none() {
        found.refuse(5, refused, &format!("In context={context}, array schema missing items."));
    }
    // No report names a nested object that is a map.
    let is_map = !inner.path.is_empty() && inner.schema["additionalProperties"].is_object();
    if is("object") && inner.schema.get("properties").is_none() && !is_map {
        found.refuse(5, refused, &format!("In context={context}, object schema missing properties."));
    }
}

/// Rule 5 at Moonshot: each property has a type.
fn moonshot(found: &ToolSchema<'_>, inner: &InnerSchema<'_>, refused: &mut Refusals) {
    for (name, property) in inner.schema["properties"].as_object().into_iter().flatten() {
        let described = ["type", "$ref", "anyOf"].iter().any(|word| property.get(word).is_some());
        if !described {
            let path = inner.path.join(".");
            found.refuse(5, refused, &format!("At path '{path}.properties.{name}': type is not defined"));
        }
    }
    if let Value::Array(_) = inner.schema["items"] {
        found.refuse(5, refused, &format!("At path '{}.items': must be an object", inner.path.join(".")));
    }
}

/// Rule 8: patterns compile.
fn patterns(found: &ToolSchema<'_>, inner: &InnerSchema<'_>, text: &str, refused: &mut Refusals) {
    let view = found.view;
    if view.is_like_openai() && !pattern::compiles(text) {
        found.refuse(8, refused, &format!("In context={}, '{text}' is not a 'regex'.", inner.context()));
    }
    if view.is_at(&[Platform::LlamaCpp, Platform::LmStudio]) {
        let anchored = text.starts_with('^') && text.ends_with('$');
        let classes = ["\\d", "\\D", "\\s", "\\S", "\\w", "\\W"].iter().any(|class| text.contains(class));
        if !anchored {
            let words = "failed to parse grammar: Pattern must start with '^' and end with '$'";
            refused.add(8, found.place(), words);
        } else if classes {
            refused.add(8, found.place(), "failed to parse grammar");
        }
    }
    let is_strict_model = view.is_model(&["grok-4.6", "grok-4.7", "grok-4-6", "grok-4-7", "kimi-k3"]);
    if view.protocol == Protocol::Bedrock && is_strict_model && pattern::looks_around(text) {
        found.refuse(8, refused, "look-around in a pattern is not supported");
    }
}
