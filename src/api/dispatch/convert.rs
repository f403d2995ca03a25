//! Conversions between nuncio's values and those of ACP and REST: session ids, times and
//! `_meta.nuncio`.

use serde_json::{Map, Value};

use crate::id::SessionId;
use crate::protocol::acp;

pub(crate) fn session_id(id: &acp::SessionId) -> SessionId {
    SessionId::from(&*id.0)
}

pub(crate) fn acp_id(id: &SessionId) -> acp::SessionId {
    acp::SessionId::new(id.as_str())
}

/// Moves the given fields from the top level of `params` into `_meta.nuncio`. A `_meta` of a wrong
/// type stays, and is refused when the params are read.
pub(crate) fn into_meta(params: &mut Map<String, Value>, fields: &[&str]) {
    for field in fields {
        let Some(value) = params.shift_remove(*field) else { continue };
        let Some(meta) = object_field(params, "_meta") else { return };
        let Some(ours) = object_field(meta, "nuncio") else { return };
        ours.insert((*field).into(), value);
    }
}

/// Returns the object in a field, and creates it if the field is absent or `null`. `None` if the
/// field has another type.
fn object_field<'a>(object: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Map<String, Value>> {
    let value = object.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

/// Moves the fields in `_meta.nuncio` to the top level, in a result and in the objects of its
/// lists.
pub(crate) fn to_rest(result: &mut Value) {
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
