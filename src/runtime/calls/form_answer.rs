//! Checks the answer to a form of an MCP server against the form's schema.

use serde_json::{Map, Value};

/// Adds the defaults of fields that the answer lacks, and checks the required fields and the types.
/// The error is a message.
pub fn complete(schema: &Value, mut content: Map<String, Value>) -> Result<Map<String, Value>, String> {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(default) = field.get("default").filter(|default| !default.is_null())
            && content.get(name).is_none_or(Value::is_null)
        {
            content.insert(name.clone(), default.clone());
        }
        if content.get(name).is_some_and(Value::is_null) {
            content.shift_remove(name);
        }
        if let Some(value) = content.get(name) {
            check(field, value).map_err(|why| format!("{name}: {why}"))?;
        }
    }
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match required.find(|name| !content.contains_key(*name)) {
        Some(name) => Err(format!("{name}: is required")),
        None => Ok(content),
    }
}

/// Checks the type of a value, and that it is one of the field's values.
fn check(field: &Value, value: &Value) -> Result<(), String> {
    let fits = match field["type"].as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some("array") => value.is_array(),
        _ => true,
    };
    if !fits {
        return Err(format!("expected {}, got {value}", field["type"].as_str().unwrap_or_default()));
    }
    let known = match (field["enum"].as_array(), field["oneOf"].as_array()) {
        (Some(values), _) => values.contains(value),
        (None, Some(values)) => values.iter().any(|known| known["const"] == *value),
        (None, None) => true,
    };
    if known { Ok(()) } else { Err(format!("{value} is not one of the values")) }
}
