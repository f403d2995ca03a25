//! Parts that all operations share.

use serde_json::{Map, Value, json};

use crate::error::KINDS;

/// Adds a response for each HTTP status of the error table.
pub(super) fn error_responses(responses: &mut Map<String, Value>) {
    for row in KINDS {
        responses.insert(row.http.to_string(), json!({ "$ref": format!("#/components/responses/E{}", row.http) }));
    }
}

/// Describes an optional header of requests.
pub(super) fn header(name: &str, doc: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "header", "required": false, "description": doc, "schema": schema })
}
