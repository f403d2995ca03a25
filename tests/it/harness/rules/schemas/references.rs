//! Rule 6: references resolve.

use serde_json::Value;

use super::ToolSchema;
use super::walk::schemas;
use crate::rules::Platform;
use crate::rules::refusal::Refusals;

pub fn check(found: &ToolSchema<'_>, refused: &mut Refusals) {
    for inner in schemas(found.schema) {
        let Some(reference) = inner.schema["$ref"].as_str() else { continue };
        if !resolves(found.schema, reference) {
            found.refuse(6, refused, &format!("In context={}, reference can not be resolved: {reference}", inner.context()));
        }
        if found.view.platform != Platform::Moonshot {
            continue;
        }
        let path = inner.path.join(".");
        if !reference.starts_with("#/$defs/") {
            found.refuse(6, refused, &format!("At path '{path}': $ref must start with #/$defs/"));
        }
        if inner.schema.as_object().is_some_and(|fields| fields.len() > 1) {
            found.refuse(6, refused, &format!("At path '{path}': keywords next to $ref are not allowed"));
        }
    }
}

/// Returns whether a reference names a part of the schema: by a pointer, an anchor or an id.
fn resolves(root: &Value, reference: &str) -> bool {
    let named = |name: &str, key: &str| schemas(root).iter().any(|inner| inner.schema[key] == name);
    match reference.strip_prefix('#') {
        Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => root.pointer(pointer).is_some(),
        Some(anchor) => named(anchor, "$anchor") || named(reference, "$id"),
        None => named(reference, "$id"),
    }
}
