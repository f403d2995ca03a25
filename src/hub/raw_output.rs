//! The results of the tools of hosted agents as text. Agents report JSON of many shapes.

use serde_json::{Map, Value};

/// Fields that contain the whole text of a result, in the order of preference.
const TEXTS: &[&str] = &["formatted_output", "aggregated_output", "output", "error", "result", "content"];
/// Fields that contain the text of a value in one of those fields.
const INNER_TEXTS: &[&str] = &["text", "message"];
/// Maximum nesting depth of a result that is shown as lines.
const DEPTH_MAX: usize = 4;

/// Returns a result as text: the text that it contains, else its fields, one per line.
pub(super) fn text(output: &Value) -> String {
    contained(output, 0).unwrap_or_else(|| {
        let mut lines = String::new();
        add_lines(output, 0, &mut lines);
        lines
    })
}

/// Returns the text of a result that is JSON in a string, or `None` for another string.
pub(super) fn decoded(output: &str) -> Option<String> {
    let value: Value = serde_json::from_str(output).ok().filter(|value: &Value| value.is_object() || value.is_array())?;
    Some(text(&value))
}

/// Returns the text in a field that contains the text of a result.
fn contained(output: &Value, depth: usize) -> Option<String> {
    match output {
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) if depth < DEPTH_MAX => {
            let streams: Vec<&str> = ["stdout", "stderr"].iter().filter_map(|name| fields.get(*name)?.as_str()).collect();
            match streams.iter().any(|text| !text.is_empty()) {
                true => Some(streams.concat()),
                false => {
                    let inner = if depth > 0 { INNER_TEXTS } else { &[] };
                    TEXTS.iter().chain(inner).find_map(|name| contained(fields.get(*name)?, depth + 1))
                }
            }
        }
        // The content blocks of MCP and ACP.
        Value::Array(blocks) if !blocks.is_empty() && depth < DEPTH_MAX => {
            let text = |block: &Value| match block["type"].as_str()? {
                "text" => block["text"].as_str().map(String::from),
                "content" => contained(&block["content"], depth + 1),
                other => Some(format!("[{other}]")),
            };
            blocks.iter().map(text).collect::<Option<Vec<String>>>().map(|texts| texts.join("\n"))
        }
        _ => None,
    }
}

fn add_lines(value: &Value, depth: usize, lines: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) if depth < DEPTH_MAX => add_fields(fields, depth, lines),
        Value::Array(items) if depth < DEPTH_MAX => {
            for item in items {
                match simple(item) {
                    Some(text) => *lines += &format!("{indent}- {text}\n"),
                    None => {
                        *lines += &format!("{indent}-\n");
                        add_lines(item, depth + 1, lines);
                    }
                }
            }
        }
        // Keep a text of several lines unchanged.
        Value::String(text) => *lines += &format!("{}\n", text.trim_end_matches('\n')),
        other => *lines += &format!("{indent}{other}\n"),
    }
}

fn add_fields(fields: &Map<String, Value>, depth: usize, lines: &mut String) {
    let indent = "  ".repeat(depth);
    for (name, value) in fields {
        match simple(value) {
            Some(text) => *lines += &format!("{indent}{name}: {text}\n"),
            None => {
                *lines += &format!("{indent}{name}:\n");
                add_lines(value, depth + 1, lines);
            }
        }
    }
}

/// Returns a value that fits on one line as text.
fn simple(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.contains('\n') => Some(text.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(items) if items.is_empty() => Some("none".into()),
        Value::Object(fields) if fields.is_empty() => Some("none".into()),
        Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
