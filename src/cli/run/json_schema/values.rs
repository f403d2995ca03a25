//! JSON values as JSON Schema compares and shows them.

use std::collections::HashSet;

use regex::Regex;
use serde_json::Value;

/// Maximum length of a value in a mismatch, in characters.
const SHOWN_CHARS_MAX: usize = 80;

/// Returns the values of a keyword that is a list or one value.
pub(super) fn list_of(value: Option<&Value>) -> &[Value] {
    match value {
        None => &[],
        Some(Value::Array(list)) => list,
        Some(one) => std::slice::from_ref(one),
    }
}

pub(super) fn has_type(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(is_integer),
        _ => value.is_string(),
    }
}

pub(super) fn is_integer(number: f64) -> bool {
    (number - number.round()).abs() < 1e-9
}

/// Returns whether two values are equal in JSON Schema: 1 and 1.0 are.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let names: HashSet<&String> = one.keys().collect();
            names == other.keys().collect() && one.iter().all(|(name, value)| same(value, &other[name]))
        }
        _ => one == other,
    }
}

/// Returns whether a pattern matches somewhere in a text. The schema was checked, so the pattern is
/// valid.
pub(super) fn matches_pattern(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text))
}

/// Returns a value for a message, shortened.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
