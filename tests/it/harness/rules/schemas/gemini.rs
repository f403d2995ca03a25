//! Rule 9: the subset of OpenAPI that Gemini's field `parameters` takes.

use serde_json::Value;

use super::ToolSchema;
use super::walk::{InnerSchema, schemas};
use crate::provider::Protocol;
use crate::rules::refusal::Refusals;

/// Keywords that the server does not know.
const UNKNOWN: &[&str] = &[
    "$schema",
    "$ref",
    "$defs",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "const",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "uniqueItems",
    "contains",
    "allOf",
    "oneOf",
    "default",
];

pub fn check(found: &ToolSchema<'_>, refused: &mut Refusals) {
    if found.view.protocol != Protocol::Gemini || found.tool.field != "parameters" {
        return;
    }
    for inner in schemas(found.schema) {
        for (key, _) in inner.schema.as_object().into_iter().flatten().filter(|(key, _)| UNKNOWN.contains(&key.as_str())) {
            let words = format!("Invalid JSON payload received. Unknown name \"{key}\" at '{}': Cannot find field.", found.place());
            refused.add(9, found.place(), words);
        }
        values(found, &inner, refused);
    }
}

fn values(found: &ToolSchema<'_>, inner: &InnerSchema<'_>, refused: &mut Refusals) {
    let schema = inner.schema;
    let kind = schema["type"].as_str().unwrap_or_default().to_uppercase();
    let mut refuse = |words: &str| found.refuse(9, refused, &format!("{}: {words}", inner.path.join(".")));
    if schema["type"].is_array() {
        refuse("Proto field is not repeating, cannot start list.");
    }
    for value in schema["enum"].as_array().into_iter().flatten() {
        match value {
            Value::String(text) if !text.is_empty() => {}
            Value::String(_) => refuse("enum: cannot be empty"),
            _ => refuse("Invalid value (TYPE_STRING)"),
        }
    }
    if kind == "OBJECT" && schema["properties"].as_object().is_none_or(serde_json::Map::is_empty) {
        refuse("properties: should be non-empty for OBJECT type");
    }
    if kind == "ARRAY" && schema.get("items").is_none() {
        refuse("items: missing field.");
    }
    if schema.get("anyOf").is_some() && schema.as_object().is_some_and(|fields| fields.len() > 1) {
        refuse("when using any_of, it must be the only field set");
    }
    if kind == "STRING" && schema["format"].as_str().is_some_and(|format| !["enum", "date-time"].contains(&format)) {
        refuse("format: only 'enum' and 'date-time' are supported for STRING type");
    }
    let known = |name: &Value| name.as_str().is_some_and(|name| schema["properties"].get(name).is_some());
    if schema["required"].as_array().into_iter().flatten().any(|name| !known(name)) {
        refuse("required: property is not defined");
    }
}
