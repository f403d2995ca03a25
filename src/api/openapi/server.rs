//! The operations of the routes that call no method, or any method.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::parts::{error_responses, header};
use crate::api::Route;
use crate::hub::TerminalReport;

pub(super) fn operations(generator: &mut SchemaGenerator) -> Vec<(Route, Value)> {
    let metrics_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let ready = "Needs no token. Status 503 gives the reason in `details.reason`: `draining` (it is shutting down), `store` (its \
                 store cannot be reached) or `lease` (its lease as a node has ended).";
    let healthy = json!({ "type": "object", "required": ["status"], "properties": { "status": { "const": "ok" } } });
    let json = |schema: Value| content("application/json", schema);
    vec![
        (
            Route::get("/health"),
            ServerOperation::new("health", "Reports that the server is running", "Needs no token.", json(healthy.clone()))
                .open()
                .build(),
        ),
        (
            Route::get("/ready"),
            ServerOperation::new("ready", "Reports whether the server accepts new work", ready, json(healthy)).open().build(),
        ),
        (
            Route::get("/v1/openapi.json"),
            ServerOperation::new("openapi", "Returns this document", "OpenAPI 3.1.", json(json!({ "type": "object" }))).build(),
        ),
        (
            Route::get("/metrics"),
            ServerOperation::new(
                "metrics",
                "Returns counters and gauges",
                "In the format of Prometheus (OpenMetrics 1.0). Needs a token for all sessions.",
                content(metrics_type, json!({ "type": "string" })),
            )
            .build(),
        ),
        (Route::post("/hook"), hook(generator)),
        (Route::post("/rpc"), rpc(generator)),
        (Route::post("/mcp"), mcp()),
    ]
}

/// Describes `POST /hook`: a hook of Claude Code, or the status of another program.
fn hook(generator: &mut SchemaGenerator) -> Value {
    let doc = "A hook of Claude Code in a terminal, which reports the status of that session, or the status of any other program. The \
               response is empty: nuncio has no opinion about the call.";
    let mut directory = header("X-Workspace-Path", "The directory in which the program works.", json!({ "type": "string" }));
    directory["required"] = true.into();
    directory["example"] = "/home/me/project".into();
    let schema = generator.subschema_for::<TerminalReport>();
    let example = json!({ "hook_event_name": "Stop", "session_id": "8c1b1f0e-4f0a-4a43-9a3c-2f1f8a3f5a10" });
    ServerOperation::new("hook", "Reports the status of an agent in a terminal", doc, Map::new())
        .parameter(directory)
        .body(json!(schema), example)
        .build()
}

/// Describes `POST /rpc`: the method table as JSON-RPC.
fn rpc(generator: &mut SchemaGenerator) -> Value {
    let doc = "JSON-RPC 2.0: the methods of this document under the names in their descriptions, and those of ACP. A list of calls is a \
               batch. Errors of a call are in its response, with status 200. `GET /rpc` upgrades to a WebSocket, which also has \
               subscriptions to events.";
    let definitions = generator.definitions_mut();
    definitions.insert("RpcCall".into(), call("_nuncio/status"));
    definitions.insert("RpcResponse".into(), response());
    let one_or_list = |name: &str| {
        let one = json!({ "$ref": format!("#/components/schemas/{name}") });
        json!({ "oneOf": [one.clone(), { "type": "array", "items": one }] })
    };
    let (request, responses) = (one_or_list("RpcCall"), one_or_list("RpcResponse"));
    ServerOperation::new("rpc", "Calls methods over JSON-RPC", doc, content("application/json", responses))
        .body(request, json!({ "jsonrpc": "2.0", "id": 1, "method": "_nuncio/status", "params": {} }))
        .build()
}

/// Describes `POST /mcp`: the MCP server for hosted agents.
fn mcp() -> Value {
    let doc = "nuncio's MCP server with the transport streamable HTTP, without sessions (modelcontextprotocol.io). The token is one that \
               nuncio gives to a hosted agent; it names the agent's session. `Accept` must name application/json and text/event-stream. \
               A notification is answered with status 202.";
    let answer = json!({ "type": "object", "additionalProperties": true });
    ServerOperation::new("mcp", "Sends a message to nuncio's MCP server", doc, content("application/json", answer))
        .body(call("tools/list"), json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }))
        .build()
}

/// Returns the schema of a JSON-RPC call.
fn call(method: &str) -> Value {
    json!({
        "type": "object",
        "description": "A JSON-RPC call; without an id, a notification.",
        "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": { "const": "2.0" },
            "id": { "type": ["integer", "string", "null"] },
            "method": { "type": "string", "examples": [method] },
            "params": { "type": "object", "additionalProperties": true },
        },
    })
}

/// Returns the schema of the response to a JSON-RPC call.
fn response() -> Value {
    json!({
        "type": "object",
        "description": "The response to a JSON-RPC call: a result or an error.",
        "required": ["jsonrpc", "id"],
        "properties": {
            "jsonrpc": { "const": "2.0" },
            "id": { "type": ["integer", "string", "null"] },
            "result": { "type": "object", "additionalProperties": true },
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": { "type": "integer" },
                    "message": { "type": "string" },
                    "data": { "type": "object", "additionalProperties": true },
                },
            },
        },
    })
}

fn content(media: &str, schema: Value) -> Map<String, Value> {
    Map::from_iter([(media.to_owned(), json!({ "schema": schema }))])
}

/// An operation without a method.
struct ServerOperation(Value);

impl ServerOperation {
    /// Creates an operation that needs a token. A response without `content` is empty.
    fn new(id: &str, summary: &str, doc: &str, content: Map<String, Value>) -> ServerOperation {
        let mut success = json!({ "description": "Success" });
        if !content.is_empty() {
            success["content"] = content.into();
        }
        let mut responses = Map::from_iter([("200".to_string(), success)]);
        error_responses(&mut responses);
        ServerOperation(json!({
            "operationId": id,
            "summary": summary,
            "description": doc,
            "tags": ["server"],
            "security": [{ "token": [] }],
            "parameters": [],
            "responses": responses,
        }))
    }

    /// Lets the operation be called without a token.
    fn open(mut self) -> ServerOperation {
        self.0["security"] = json!([]);
        self
    }

    fn parameter(mut self, parameter: Value) -> ServerOperation {
        self.0["parameters"].as_array_mut().into_iter().for_each(|all| all.push(parameter.clone()));
        self
    }

    fn body(mut self, schema: Value, example: Value) -> ServerOperation {
        self.0["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema, "example": example } } });
        self
    }

    fn build(self) -> Value {
        self.0
    }
}
