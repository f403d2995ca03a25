//! Generates and modifies JSON Schemas of types.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

/// Generates a schema that contains all its definitions in `$defs`.
pub(crate) fn standalone(schema: fn(&mut SchemaGenerator) -> Schema) -> Schema {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut schema = schema(&mut generator);
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        schema.insert("$defs".into(), Value::Object(definitions));
    }
    schema
}

/// Makes a field optional. Returns whether it was required.
pub(crate) fn optional(schema: &mut Schema, name: &str) -> bool {
    let Some(Value::Array(required)) = schema.get_mut("required") else { return false };
    let before = required.len();
    required.retain(|one| one != name);
    let was = required.len() < before;
    if required.is_empty() {
        schema.remove("required");
    }
    was
}
