//! Checks the answer to a form of an MCP server against the form's schema.

use serde_json::{Map, Value};

/// Adds the defaults of fields that the answer lacks, and checks the required fields and the types.
/// The error is a message.
pub(in crate::agent) fn complete(schema: &Value, mut content: Map<String, Value>) -> Result<Map<String, Value>, String> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(properties: Value, required: Value, content: Value, expected: Result<Value, &str>) {
        let schema = json!({ "properties": properties, "required": required });
        let completed = complete(&schema, content.as_object().expect("an object").clone());
        assert_eq!(completed.map(Value::Object), expected.map_err(String::from));
    }

    #[test]
    fn answers_are_completed_and_checked() {
        let name = json!({"name": {"type": "string", "default": "Ada"}});
        check(name.clone(), json!(["name"]), json!({}), Ok(json!({"name": "Ada"})));
        check(name.clone(), json!([]), json!({"name": null}), Ok(json!({"name": "Ada"})));
        check(name.clone(), json!([]), json!({"name": "Bob", "more": 1}), Ok(json!({"name": "Bob", "more": 1})));
        check(name, json!(["age"]), json!({}), Err("age: is required"));
        let age = json!({"age": {"type": "integer"}});
        check(age.clone(), json!([]), json!({"age": 1.5}), Err("age: expected integer, got 1.5"));
        check(age.clone(), json!([]), json!({"age": 2.0}), Ok(json!({"age": 2.0})));
        check(age, json!(["age"]), json!({"age": null}), Err("age: is required"));
        let colour = json!({"c": {"type": "string", "enum": ["r", "g"]}});
        check(colour.clone(), json!([]), json!({"c": "g"}), Ok(json!({"c": "g"})));
        check(colour, json!([]), json!({"c": "b"}), Err("c: \"b\" is not one of the values"));
        let titled = json!({"c": {"oneOf": [{"const": "r", "title": "Red"}]}});
        check(titled, json!([]), json!({"c": "Red"}), Err("c: \"Red\" is not one of the values"));
    }
}
