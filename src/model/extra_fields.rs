//! Adds the fields that the user set to the body of a request, and removes those that a server
//! refused.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::error::{ModelError, Retry};

/// Adds `fields` to a JSON object. Objects are merged; other values are replaced. The other fields
/// of the body stay byte for byte.
pub(super) fn merge(body: Vec<u8>, fields: &Map<String, Value>) -> Result<Vec<u8>, ModelError> {
    if fields.is_empty() {
        return Ok(body);
    }
    merged(&body, fields).map_err(|error| ModelError::new(Retry::Never, format!("adding the fields of the setting body: {error}")))
}

fn merged(body: &[u8], fields: &Map<String, Value>) -> serde_json::Result<Vec<u8>> {
    let mut object: BTreeMap<&str, Box<RawValue>> = serde_json::from_slice(body)?;
    for (name, value) in fields {
        let value = match object.get(name.as_str()) {
            Some(existing) if value.is_object() => {
                let mut existing = serde_json::from_str(existing.get())?;
                merge_value(&mut existing, value);
                to_raw_value(&existing)?
            }
            _ => to_raw_value(value)?,
        };
        object.insert(name, value);
    }
    serde_json::to_vec(&object)
}

/// Removes fields from a JSON object. Each field is given by the names of nested objects.
pub(super) fn remove(body: Vec<u8>, fields: &[Vec<String>]) -> Result<Vec<u8>, ModelError> {
    if fields.is_empty() {
        return Ok(body);
    }
    let failed = |error| ModelError::new(Retry::Never, format!("removing the fields that the server refused: {error}"));
    let mut object: Value = serde_json::from_slice(&body).map_err(failed)?;
    for path in fields {
        let Some((name, parents)) = path.split_last() else { continue };
        let parent = parents.iter().try_fold(&mut object, |at, name| at.get_mut(name));
        if let Some(Value::Object(parent)) = parent {
            parent.shift_remove(name);
        }
    }
    serde_json::to_vec(&object).map_err(failed)
}

fn merge_value(below: &mut Value, above: &Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                merge_value(below.entry(name).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above.clone(),
    }
}
