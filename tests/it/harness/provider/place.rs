//! Places in the body of a request, as the errors of providers write them.

use serde_json::Value;

/// Returns the path to the first string of a body that contains a text: `messages.0.content.1.text`
/// if `dotted`, else `messages[0].content[1].text`. Empty if no string contains it.
pub fn place(body: &Value, needle: &str, dotted: bool) -> String {
    let mut path = String::new();
    find(body, needle, dotted, &mut path);
    path.trim_start_matches('.').to_owned()
}

fn find(value: &Value, needle: &str, dotted: bool, path: &mut String) -> bool {
    let length = path.len();
    let fields: Vec<(String, &Value)> = match value {
        Value::String(text) => return text.contains(needle),
        Value::Array(values) => {
            let index = |index| if dotted { format!(".{index}") } else { format!("[{index}]") };
            values.iter().enumerate().map(|(at, value)| (index(at), value)).collect()
        }
        Value::Object(fields) => fields.iter().map(|(name, value)| (format!(".{name}"), value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => return false,
    };
    for (step, value) in fields {
        path.push_str(&step);
        if find(value, needle, dotted, path) {
            return true;
        }
        path.truncate(length);
    }
    false
}
