//! Schemas of the inputs and outputs of the MCP server's tools.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// Generates the JSON schema of a type, without references.
pub(super) fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = SchemaGenerator::new(settings).into_root_schema_for::<T>().to_value();
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

/// Returns the description of a schema, in one line.
pub(super) fn description(schema: &JsonObject) -> String {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " ")
}
