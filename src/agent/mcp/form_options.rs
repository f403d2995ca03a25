//! A form of an MCP server as the options of a permission request.

use serde_json::{Map, Value};

use crate::content::{Form, FormAnswer, PermissionOption, PermissionOptionKind};
use crate::workspace::one_line;

/// Maximum number of values of a field that a permission request offers as options.
const MCP_FORM_OPTIONS_MAX: usize = 20;
/// Maximum length of the name of an option, in characters.
const MCP_FORM_OPTION_CHARS_MAX: usize = 100;

/// An option of the request, and the corresponding answer.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::agent) struct FormOption {
    pub option: PermissionOption,
    pub answer: FormAnswer,
}

/// Returns the options for a form that asks for one value out of a few: a form without fields, or
/// with one field that is a boolean or one of a few texts. Optional fields are omitted. Other forms
/// return `None`.
pub(in crate::agent) fn form_options(form: &Form) -> Option<Vec<FormOption>> {
    use PermissionOptionKind::{AllowOnce, RejectOnce};
    let decline = || option("decline", "Decline", RejectOnce, FormAnswer::Declined);
    let properties = form.schema["properties"].as_object().filter(|properties| !properties.is_empty());
    let Some(properties) = properties else {
        let accepted = FormAnswer::Accepted(Map::new());
        return Some(vec![option("accept", "Accept", AllowOnce, accepted), decline()]);
    };
    let required: Vec<&str> = form.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let name = match (required.as_slice(), properties.len()) {
        ([name], _) => *name,
        ([], 1) => properties.keys().next()?,
        _ => return None,
    };
    let field = properties.get(name)?;
    let value = |value: Value| FormAnswer::Accepted(Map::from_iter([(name.to_owned(), value)]));
    if field["type"] == "boolean" {
        // A client that can only allow and reject answers with the first option of each kind.
        let yes = option("yes", "Yes", AllowOnce, value(true.into()));
        return Some(vec![yes, option("no", "No", RejectOnce, value(false.into())), decline()]);
    }
    let values = field_values(field).filter(|values| !values.is_empty() && values.len() <= MCP_FORM_OPTIONS_MAX)?;
    let options = values
        .into_iter()
        .enumerate()
        .map(|(index, (text, title))| option(&format!("value_{}", index + 1), &title, AllowOnce, value(text.into())));
    Some(options.chain([decline()]).collect())
}

fn option(id: &str, name: &str, kind: PermissionOptionKind, answer: FormAnswer) -> FormOption {
    let name = one_line(name.chars().take(MCP_FORM_OPTION_CHARS_MAX).collect());
    FormOption { option: PermissionOption { option_id: id.into(), name, kind }, answer }
}

/// Returns whether a form is shown as a permission request, because it asks for one choice.
pub(crate) fn is_choice(form: &Form) -> bool {
    form_options(form).is_some()
}

/// Returns the values of a field that is one of a few texts, with their titles. Returns `None` for
/// other fields.
pub(crate) fn field_values(field: &Value) -> Option<Vec<(String, String)>> {
    let text = |value: &Value| value.as_str().map(String::from);
    if let Some(values) = field["enum"].as_array() {
        let title = |index: usize, value: &str| text(&field["enumNames"][index]).unwrap_or_else(|| value.to_owned());
        let values = values.iter().enumerate().map(|(index, value)| text(value).map(|value| (value.clone(), title(index, &value))));
        return values.collect();
    }
    let values = field["oneOf"].as_array().or_else(|| field["anyOf"].as_array())?;
    values
        .iter()
        .map(|value| text(&value["const"]).map(|value_text| (value_text.clone(), text(&value["title"]).unwrap_or(value_text))))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
