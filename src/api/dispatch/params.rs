//! Decodes params by their type. serde accepts more than the schema of a type: a list as the fields
//! of a struct in their order, and a number as the index of a variant. Both are refused here.

use schemars::{JsonSchema, Schema};
use serde::Deserializer;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::schemas::standalone;
use crate::error::{Error, Result};

/// Decodes the value of the field `field` of params. An error names the invalid field.
pub(crate) fn decode<T: DeserializeOwned + JsonSchema>(field: &str, value: Value) -> Result<T> {
    check_types(&standalone(T::json_schema), field, &value)?;
    deserialize(field, value)
}

/// Returns params as an object; `null` has no fields.
pub(crate) fn object(params: Value) -> Result<Map<String, Value>> {
    match params {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Map::new()),
        _ => Err(Error::invalid_params("params: must be an object")),
    }
}

/// Refuses a list where the schema of the field `field`, or of all params if it is empty, has an
/// object, and a number where it has the name of a variant.
pub(crate) fn check_types(schema: &Schema, field: &str, value: &Value) -> Result<()> {
    let types = FieldTypes { root: schema, alternatives: vec![schema.as_value()] };
    let Some((path, problem)) = types.mismatch(value) else { return Ok(()) };
    let field = if field.is_empty() && path.is_empty() { "params" } else { field };
    Err(invalid(field, &path, problem))
}

/// Decodes the value of the field `field`, or all params if it is empty, whose types were checked.
pub(crate) fn deserialize<'de, T: DeserializeOwned>(
    field: &str,
    value: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<T> {
    serde_path_to_error::deserialize(value).map_err(|error| invalid(field, &error.path().to_string(), &error.inner().to_string()))
}

/// Creates the error of the part at `path` of the field `field`.
fn invalid(field: &str, path: &str, problem: &str) -> Error {
    let path = if path == "." { "" } else { path };
    let dot = if field.is_empty() || path.is_empty() || path.starts_with('[') { "" } else { "." };
    match (field, path) {
        ("", "") => Error::invalid_params(problem),
        _ => Error::invalid_params(format!("{field}{dot}{path}: {problem}")),
    }
}

/// The types that a schema accepts at a place.
struct FieldTypes<'a> {
    /// The schema with all definitions.
    root: &'a Schema,
    /// Schemas of which a value must match one or more.
    alternatives: Vec<&'a Value>,
}

impl<'a> FieldTypes<'a> {
    /// Returns the path and the problem of the first list in the place of an object, or number in
    /// the place of a variant's name.
    fn mismatch(mut self, value: &Value) -> Option<(String, &'static str)> {
        if matches!(value, Value::Null | Value::Bool(_) | Value::String(_)) {
            return None;
        }
        self.resolve();
        // ACP drops such a value if it is invalid.
        if self.alternatives.iter().any(|schema| schema["x-deserialize-default-on-error"] == true) {
            return None;
        }
        match value {
            Value::Array(_) if self.accepts("object") && !self.accepts("array") => Some((String::new(), "must be an object")),
            Value::Number(_) if self.names_variants() && !self.accepts("number") && !self.accepts("integer") => {
                Some((String::new(), "must be a string"))
            }
            Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
                let (below, problem) = self.below(|schema| schema.get("items")).mismatch(item)?;
                Some((joined(&format!("[{index}]"), &below), problem))
            }),
            Value::Object(fields) => fields.iter().find_map(|(name, field)| {
                let field_schema = |schema: &'a Value| {
                    let declared = schema.get("properties").and_then(|properties| properties.get(name));
                    declared.or_else(|| schema.get("additionalProperties"))
                };
                let (below, problem) = self.below(field_schema).mismatch(field)?;
                Some((joined(name, &below), problem))
            }),
            _ => None,
        }
    }

    /// Replaces references and combined schemas by what they consist of.
    fn resolve(&mut self) {
        let mut index = 0;
        while let Some(&schema) = self.alternatives.get(index) {
            let reference = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
            self.alternatives.extend(reference.and_then(|pointer| self.root.pointer(pointer)));
            for combined in ["anyOf", "oneOf", "allOf"] {
                self.alternatives.extend(schema[combined].as_array().into_iter().flatten());
            }
            index += 1;
        }
    }

    fn accepts(&self, kind: &str) -> bool {
        self.alternatives.iter().any(|schema| match &schema["type"] {
            Value::String(one) => one == kind,
            Value::Array(several) => several.iter().any(|one| one == kind),
            _ => false,
        })
    }

    /// Returns whether the place has the name of a variant.
    fn names_variants(&self) -> bool {
        self.alternatives.iter().any(|schema| schema["const"].is_string() || schema["enum"].is_array())
    }

    fn below(&self, part: impl Fn(&'a Value) -> Option<&'a Value>) -> FieldTypes<'a> {
        let alternatives = self.alternatives.iter().filter_map(|schema| part(schema)).collect();
        FieldTypes { root: self.root, alternatives }
    }
}

/// Joins the name of a field, or the index of an item, and the path below it.
fn joined(place: &str, below: &str) -> String {
    let dot = if below.is_empty() || below.starts_with('[') { "" } else { "." };
    format!("{place}{dot}{below}")
}
