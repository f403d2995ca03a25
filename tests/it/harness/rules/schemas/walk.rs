//! The schemas inside a schema.

use serde_json::Value;

/// A schema with its path, such as `properties.list.items`.
pub struct InnerSchema<'a> {
    pub path: Vec<String>,
    pub schema: &'a Value,
}

impl InnerSchema<'_> {
    /// Returns the path as a tuple of Python, as OpenAI reports it.
    pub fn context(&self) -> String {
        let parts: Vec<String> = self.path.iter().map(|part| format!("'{part}'")).collect();
        format!("({})", parts.join(", "))
    }
}

/// Keywords with one schema, with a list of schemas, and with schemas by name.
const ONE: &[&str] = &[
    "items",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "additionalItems",
    "unevaluatedProperties",
    "unevaluatedItems",
];
const LISTS: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems", "items"];
const NAMED: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Returns a schema and all schemas inside it.
pub fn schemas(root: &Value) -> Vec<InnerSchema<'_>> {
    let mut found = Vec::new();
    collect(root, Vec::new(), &mut found);
    found
}

fn collect<'a>(schema: &'a Value, path: Vec<String>, found: &mut Vec<InnerSchema<'a>>) {
    let Some(fields) = schema.as_object() else { return };
    found.push(InnerSchema { path: path.clone(), schema });
    let below = |parts: &[&str]| path.iter().cloned().chain(parts.iter().map(|part| (*part).to_owned())).collect::<Vec<_>>();
    for (key, value) in fields {
        match value {
            Value::Object(_) if ONE.contains(&key.as_str()) => collect(value, below(&[key]), found),
            Value::Object(named) if NAMED.contains(&key.as_str()) => {
                for (name, value) in named {
                    collect(value, below(&[key, name]), found);
                }
            }
            Value::Array(list) if LISTS.contains(&key.as_str()) => {
                for (index, value) in list.iter().enumerate() {
                    collect(value, below(&[key, &index.to_string()]), found);
                }
            }
            _ => {}
        }
    }
}
