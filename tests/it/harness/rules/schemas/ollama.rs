//! Rule 7 at Ollama, whose server reads schemas into typed fields.

use serde_json::Value;

use super::ToolSchema;
use crate::provider::Protocol;
use crate::rules::refusal::Refusals;

pub fn check(found: &ToolSchema<'_>, refused: &mut Refusals) {
    if found.view.protocol != Protocol::Ollama {
        return;
    }
    let schema = found.schema;
    let words =
        |kind: &str, field: &str| format!("json: cannot unmarshal {kind} into Go struct field ToolFunctionParameters.{field}");
    if !matches!(schema["type"], Value::String(_) | Value::Null) {
        found.refuse(7, refused, &words("array", "type"));
    }
    let properties = &schema["properties"];
    let are_objects = properties.as_object().is_none_or(|fields| fields.values().all(Value::is_object));
    if !properties.is_object() && !properties.is_null() || !are_objects {
        found.refuse(7, refused, &words("bool", "properties"));
    }
    let required = &schema["required"];
    if !required.is_null() && !required.as_array().is_some_and(|names| names.iter().all(Value::is_string)) {
        found.refuse(7, refused, &words("value", "required"));
    }
}
