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
pub struct FormOption {
    pub option: PermissionOption,
    pub answer: FormAnswer,
}

/// Returns the options for a form that asks for one value out of a few: a form without fields, or
/// with one field that is a boolean or one of a few texts. Optional fields are omitted. Other forms
/// return `None`.
pub fn form_options(form: &Form) -> Option<Vec<FormOption>> {
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
