//! Refuses schemas with keywords that are not covered or that have a wrong value.

use regex::Regex;
use serde_json::{Map, Value};

use super::values::{list_of, shown};

/// Keywords whose value is one schema.
const SCHEMAS: &[&str] = &["items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"];
/// Keywords whose value is a list of schemas.
const LISTS: &[&str] = &["prefixItems", "allOf", "anyOf", "oneOf"];
/// Keywords whose value is an object of schemas.
const MAPS: &[&str] = &["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Keywords that constrain values and are not covered.
const REFUSED: &[&str] =
    &["unevaluatedProperties", "unevaluatedItems", "additionalItems", "dependencies", "$dynamicRef", "$recursiveRef"];
const TYPES: &[&str] = &["null", "boolean", "object", "array", "number", "integer", "string"];

/// Checks that a schema and its subschemas can be applied.
pub(super) fn check_schema(root: &Value, schema: &Value, place: &str) -> Result<(), String> {
    let object = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(object) => object,
        other => return Err(format!("#{place}: expected an object or a boolean, got {}", shown(other))),
    };
    if let Some(refused) = REFUSED.iter().find(|keyword| object.contains_key(**keyword)) {
        return Err(format!("#{place}: the keyword {refused} is not supported"));
    }
    let types = list_of(object.get("type"));
    if let Some(unknown) = types.iter().find(|kind| !kind.as_str().is_some_and(|kind| TYPES.contains(&kind))) {
        return Err(format!("#{place}/type: unknown type {}", shown(unknown)));
    }
    if let Some(reference) = object.get("$ref")
        && reference.as_str().and_then(|reference| resolve(root, reference)).is_none()
    {
        return Err(format!("#{place}/$ref: {} is not in this schema", shown(reference)));
    }
    let patterns = object.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    for pattern in patterns.map(String::as_str).chain(object.get("pattern").and_then(Value::as_str)) {
        Regex::new(pattern).map_err(|_| format!("#{place}: the pattern {pattern:?} is not supported"))?;
    }
    for keyword in SCHEMAS.iter().filter(|keyword| object.contains_key(**keyword)) {
        check_schema(root, &object[*keyword], &format!("{place}/{keyword}"))?;
    }
    for keyword in LISTS.iter().filter(|keyword| object.contains_key(**keyword)) {
        let list = object[*keyword].as_array().ok_or_else(|| format!("#{place}/{keyword}: expected a list"))?;
        for (index, schema) in list.iter().enumerate() {
            check_schema(root, schema, &format!("{place}/{keyword}/{index}"))?;
        }
    }
    for keyword in MAPS.iter().filter(|keyword| object.contains_key(**keyword)) {
        let map = object[*keyword].as_object().ok_or_else(|| format!("#{place}/{keyword}: expected an object"))?;
        for (name, schema) in map {
            check_schema(root, schema, &format!("{place}/{keyword}/{name}"))?;
        }
    }
    Ok(())
}

/// Returns the schema that a reference within the document names: `#` or `#/$defs/name`.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}
