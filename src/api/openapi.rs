//! The OpenAPI 3.1 document of the REST routes, generated from the method table and its types.

mod parts;
mod server;
mod shape;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};
use serde_with::skip_serializing_none;

use self::parts::{error_responses, header};
use super::dispatch::agent_status::StatusChange;
use super::dispatch::method::{MethodKind, MethodRow};
use super::dispatch::route::Route;
use super::dispatch::schemas::optional;
use super::table::METHODS;
use crate::error::KINDS;
use crate::event::Event;

/// The body of every error response.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Envelope {
    pub error: ErrorBody,
}

/// An error of the error table.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorBody {
    /// Stable code of the error, for branching.
    pub code: String,
    /// Description of the error, for people.
    pub message: String,
    /// Next step for the user: a command or a setting.
    pub hint: Option<String>,
    /// Id of the request, also in the server's log.
    pub request_id: String,
    pub details: Option<Value>,
}

/// The operation groups, each with its tag and description.
const TAGS: [(&str, &str); 14] = [
    ("info", "Version and capabilities of the server."),
    ("sessions", "Sessions, their prompts, messages, turns and files."),
    ("commands", "Slash commands of a session."),
    ("comparisons", "Several agents with the same prompt."),
    ("settings", "The user's settings: what applies, and changes by the owner."),
    ("files", "Files of the directory of a session."),
    ("workspaces", "Git worktrees for sessions."),
    ("permissions", "Open permission requests and their answers."),
    ("tools", "Tools that models can call."),
    ("agents", "Agents that a session can run."),
    ("models", "Models that a session can use."),
    ("status", "Status of the server."),
    ("events", "Events of one session or of all sessions, as server-sent events."),
    ("server", "Health, metrics, this document, and the routes of other protocols: JSON-RPC, MCP and hooks."),
];

pub(crate) fn openapi() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for (row, route) in METHODS.iter().flat_map(|row| row.routes.iter().map(move |route| (row, *route))) {
        let operation = operation(row, route, &mut generator);
        add(&mut paths, route, operation);
    }
    for (route, operation) in server::operations(&mut generator) {
        add(&mut paths, route, operation);
    }
    let envelope = generator.subschema_for::<Envelope>();
    generator.subschema_for::<Event>();
    generator.subschema_for::<StatusChange>();
    let schemas = generator.take_definitions(true);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "nuncio",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The methods that `nuncio acp` serves over stdio, as REST, and their events as server-sent events.",
            "contact": { "name": "nuncio", "url": env!("CARGO_PKG_REPOSITORY") },
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:8686" }],
        "security": [{ "token": [] }],
        "tags": TAGS.map(|(name, description)| json!({ "name": name, "description": description })),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": errors(&envelope),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "description": "The owner token (file `token` in nuncio's data directory), or a token created with `nuncio token new`." } },
        },
    });
    shape::shape(&mut document);
    document
}

fn add(paths: &mut Map<String, Value>, route: Route, operation: Value) {
    let path = paths.entry(route.path).or_insert_with(|| json!({}));
    path[route.verb.to_lowercase()] = operation;
}

/// Creates one response for each HTTP status of the error table. Its description lists the error
/// codes with this status.
fn errors(envelope: &Schema) -> Value {
    let mut responses = Map::new();
    for row in KINDS {
        let codes: Vec<&str> = KINDS.iter().filter(|other| other.http == row.http).map(|other| other.code).collect();
        responses.entry(format!("E{}", row.http)).or_insert_with(|| {
            let mut response = json!({
                "description": codes.join(", "),
                "content": { "application/json": { "schema": envelope, "example": { "error": { "code": row.code, "message": "description of the error", "requestId": "req_01" } } } },
            });
            if row.http == 503 || row.http == 429 {
                response["headers"] = json!({ "Retry-After": { "description": "Seconds", "schema": { "type": "integer" } } });
            }
            response
        });
    }
    Value::Object(responses)
}

fn operation(row: &MethodRow, route: Route, generator: &mut SchemaGenerator) -> Value {
    let (params, result) = ((row.types.params)(generator), (row.types.result)(generator));
    let example: Map<String, Value> = serde_json::from_str(row.example).unwrap_or_default();
    let mut fields = OperationFields(params, example);
    let mut parameters: Vec<Value> = fields.captured(route.path);
    let is_stream = row.kind == MethodKind::Stream;
    let mut operation = Map::new();
    operation.insert("operationId".into(), route.operation_id.map_or_else(|| operation_id(row.name), String::from).into());
    operation.insert("x-method".into(), row.name.into());
    operation.insert("summary".into(), row.doc.into());
    let what = if is_stream { "stream" } else { "method" };
    operation.insert("description".into(), format!("The {what} `{}`.", row.name).into());
    operation.insert("tags".into(), json!([if is_stream { "events" } else { tag(route.path) }]));
    if is_stream {
        // No query parameter for the session: it is part of the path.
        fields.without("sessionId");
    }
    if matches!(route.verb, "POST" | "PUT" | "PATCH") {
        parameters.extend(headers(row));
        operation.insert("requestBody".into(), request_body(fields, route));
    } else {
        parameters.extend(fields.query());
        parameters.extend(headers(row));
    }
    operation.insert("parameters".into(), parameters.into());
    let mut responses = if is_stream { stream_responses() } else { call_responses(row, route, result) };
    error_responses(&mut responses);
    operation.insert("responses".into(), responses.into());
    Value::Object(operation)
}

/// Describes the headers that requests of a method may have.
fn headers(row: &MethodRow) -> Vec<Value> {
    let mut headers = Vec::new();
    if row.creates() {
        let doc = "A repeated request with the same key returns the first response and has no other effect.";
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" });
        headers.push(header("Idempotency-Key", doc, schema));
    }
    match row.kind {
        MethodKind::Call | MethodKind::Notification => {}
        MethodKind::Turn => {
            let doc = "`respond-async`: answers as soon as the turn has started. Other preferences are ignored (RFC 7240).";
            headers.push(header("Prefer", doc, json!({ "type": "string", "examples": ["respond-async"] })));
        }
        MethodKind::Stream => {
            let doc = "Cursor of the last event that the client received; takes precedence over `after`.";
            headers.push(header("Last-Event-ID", doc, json!({ "type": "integer", "minimum": 0 })));
        }
    }
    headers
}

fn request_body(fields: OperationFields, route: Route) -> Value {
    let mut body = fields.body();
    if route.takes_file {
        let file = json!({ "type": "string", "format": "binary" });
        body["content"]["multipart/form-data"] =
            json!({ "schema": { "type": "object", "required": ["file"], "properties": { "file": file } } });
    }
    body
}

/// Describes the successful responses of a method, by status.
fn call_responses(row: &MethodRow, route: Route, mut result: Schema) -> Map<String, Value> {
    if result.get("type").is_some_and(|kind| kind == "null") {
        result = json_schema!({ "type": "object" });
    }
    let mut responses = Map::new();
    let mut answer = json!({ "description": "Success", "content": { "application/json": { "schema": result } } });
    if route.gives_file {
        answer["content"]["*/*"] = json!({ "schema": { "type": "string", "format": "binary", "description": "The content of the file, unless the client accepts only JSON." } });
    }
    if row.kind == MethodKind::Turn {
        answer["content"]["text/event-stream"] =
            json!({ "schema": { "type": "string", "description": "The events of the turn, if `Accept` requests them." } });
        let turn = json!({ "type": "object", "required": ["turnId"], "properties": { "turnId": { "type": "string" } } });
        responses.insert("202".into(), json!({ "description": "Started", "content": { "application/json": { "schema": turn } } }));
    }
    responses.insert(route.status.to_string(), answer);
    responses
}

/// Describes the successful response of a stream.
fn stream_responses() -> Map<String, Value> {
    let doc = "Frames `id: CURSOR`, `data: Event`; one `event: synced` at the end of the history; comments as heartbeats. \
               In the stream of all sessions also `event: agent.status`, `data: AgentStatusEvent`, without an id: all rows first, then \
               the rows that change.";
    let schema = json!({ "type": "string", "contentMediaType": "application/json", "contentSchema": { "$ref": "#/components/schemas/Event" } });
    Map::from_iter([("200".to_string(), json!({ "description": doc, "content": { "text/event-stream": { "schema": schema } } }))])
}

/// Converts a method name to an operation ID: `_nuncio/session/get` → `session_get`.
fn operation_id(name: &str) -> String {
    name.trim_start_matches("_nuncio/").replace('/', "_")
}

/// Returns the tag of a route: the first path component after `/v1`, or `server` without one.
fn tag(path: &str) -> &str {
    path.split('/').nth(2).unwrap_or("server")
}

/// The fields of a method's params that are not yet part of the path, the query or the body, and
/// their example values.
struct OperationFields(Schema, Map<String, Value>);

impl OperationFields {
    /// Removes a field. Returns its schema, and whether it is required.
    fn without(&mut self, name: &str) -> (Value, bool) {
        let schema = self.0.get_mut("properties").and_then(Value::as_object_mut).and_then(|all| all.shift_remove(name));
        let required = optional(&mut self.0, name);
        (schema.unwrap_or_else(|| json!({ "type": "string" })), required)
    }

    fn parameter(&mut self, name: &str, place: &str) -> Value {
        let (mut schema, required) = self.without(name);
        let doc = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
        // A parameter cannot be null, only absent.
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|one| one != "null");
            if let [one] = types.as_slice() {
                schema["type"] = one.clone();
            }
        }
        if let Some(Value::Array(any)) = schema.get_mut("anyOf") {
            any.retain(|one| one["type"] != "null");
            if let [one] = any.as_slice() {
                schema = one.clone();
            }
        }
        if schema.get("default").is_some_and(Value::is_null) {
            schema.as_object_mut().and_then(|schema| schema.shift_remove("default"));
        }
        let required = required || place == "path";
        let mut parameter = json!({ "name": name, "in": place, "required": required, "schema": schema });
        if let Some(doc) = doc {
            parameter["description"] = doc;
        }
        if let Some(example) = self.1.shift_remove(name) {
            parameter["example"] = example;
        }
        parameter
    }

    fn captured(&mut self, path: &str) -> Vec<Value> {
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        names.map(|name| self.parameter(name, "path")).collect()
    }

    fn query(&mut self) -> Vec<Value> {
        let names: Vec<String> =
            self.0.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect();
        // `_meta` is an object, which a query cannot represent.
        names.iter().filter(|name| *name != "_meta").map(|name| self.parameter(name, "query")).collect()
    }

    fn body(self) -> Value {
        let required = self.0.get("required").and_then(Value::as_array).is_some_and(|required| !required.is_empty());
        let mut schema = self.0;
        // A union gets no `additionalProperties`, because its variants list their own fields.
        if schema.get("anyOf").is_none() && schema.get("oneOf").is_none() {
            schema.insert("additionalProperties".into(), false.into());
        }
        let mut content = json!({ "schema": schema });
        if !self.1.is_empty() {
            content["example"] = Value::Object(self.1);
        }
        json!({ "required": required, "content": { "application/json": content } })
    }
}
