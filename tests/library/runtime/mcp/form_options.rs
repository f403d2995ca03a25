//! Forms of MCP servers as the options of a permission request.

use nuncio::internal::content::{Form, FormAnswer};
use nuncio::internal::runtime::calls::form_options::{FormOption, form_options};
use serde_json::{Value, json};

#[track_caller]
fn check(properties: Value, required: Value, expected: &[(&str, &str, Value)]) {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let form = Form { server: "docs".into(), message: "?".into(), schema, link: None };
    let shown = form_options(&form).unwrap_or_default().into_iter().map(|FormOption { option, answer }| {
        let answer = match answer {
            FormAnswer::Accepted(content) => Value::Object(content),
            other => json!(format!("{other:?}")),
        };
        (option.option_id, option.name, answer)
    });
    let expected = expected.iter().map(|(id, name, answer)| (id.to_string(), name.to_string(), answer.clone()));
    assert_eq!(shown.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn forms_with_one_choice_become_options() {
    let decline = ("decline", "Decline", json!("Declined"));
    check(json!({}), json!([]), &[("accept", "Accept", json!({})), decline.clone()]);
    let boolean = json!({"sure": {"type": "boolean"}, "note": {"type": "string"}});
    let yes_no = [("yes", "Yes", json!({"sure": true})), ("no", "No", json!({"sure": false})), decline.clone()];
    check(boolean, json!(["sure"]), &yes_no);
    let values = [("value_1", "Red", json!({"c": "r"})), ("value_2", "b", json!({"c": "b"})), decline];
    check(json!({"c": {"type": "string", "enum": ["r", "b"], "enumNames": ["Red"]}}), json!([]), &values);
    check(json!({"c": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b"}]}}), json!(["c"]), &values);
}

#[test]
fn other_forms_have_no_options() {
    check(json!({"name": {"type": "string"}}), json!(["name"]), &[]);
    check(json!({"a": {"type": "boolean"}, "b": {"type": "boolean"}}), json!(["a", "b"]), &[]);
    check(json!({"a": {"type": "boolean"}, "b": {"type": "boolean"}}), json!([]), &[]);
    let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    check(json!({"a": {"type": "string", "enum": many}}), json!(["a"]), &[]);
}
