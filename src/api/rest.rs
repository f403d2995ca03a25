//! Conversion between `_meta.nuncio` of ACP and the plain fields of REST.

use serde_json::{Map, Value};

/// Moves plain fields into `_meta.nuncio`.
pub fn into_meta(params: &mut Map<String, Value>, fields: &[&str]) {
    for field in fields {
        let Some(value) = params.shift_remove(*field) else { continue };
        let meta = params.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(meta) = meta else { return };
        if let Value::Object(ours) = meta.entry("nuncio").or_insert_with(|| Value::Object(Map::new())) {
            ours.insert((*field).into(), value);
        }
    }
}

/// Moves the fields of `_meta.nuncio` of a result, and of the objects in its lists, to the top
/// level.
pub fn to_rest(result: &mut Value) {
    let Value::Object(object) = result else { return };
    if let Some(Value::Object(meta)) = object.get_mut("_meta")
        && let Some(Value::Object(ours)) = meta.shift_remove("nuncio")
    {
        if meta.is_empty() {
            object.shift_remove("_meta");
        }
        object.extend(ours);
    }
    for list in object.values_mut().filter_map(Value::as_array_mut) {
        list.iter_mut().for_each(to_rest);
    }
}
