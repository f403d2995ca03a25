//! The check of the answer to a form of an MCP server.

use nuncio::internal::runtime::calls::form_answer::complete;
use serde_json::{Value, json};

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
