//! The calls of the HTTP bridge that concern one session, for tests of access control.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// Returns a call of each route that changes a session: method, path and a valid body. The last
/// call deletes the session.
pub fn changing_calls(session: &str, permission: &str) -> Vec<(&'static str, String, Value)> {
    let path = |rest: &str| format!("/v1/sessions/{session}{rest}");
    let part = json!([{"type": "text", "text": "x"}]);
    vec![
        ("POST", path("/prompt"), json!({"prompt": part})),
        ("POST", path("/messages"), json!({"parts": part})),
        ("POST", path("/messages"), json!({"parts": part, "delivery": "steer"})),
        ("POST", path("/turns/turn_1/retry"), json!({})),
        ("PUT", path("/queue/msg_1"), json!({"parts": part})),
        ("DELETE", path("/queue/msg_1"), json!({})),
        ("POST", path("/cancel"), json!({})),
        ("POST", path("/resume"), json!({})),
        ("POST", path("/close"), json!({})),
        ("POST", path("/fork"), json!({})),
        ("POST", path("/execute"), json!({"command": "true"})),
        ("POST", path("/background"), json!({})),
        ("DELETE", path("/jobs/1"), json!({})),
        ("POST", path("/rules/remove"), json!({"scope": "session", "rule": {"policy": "allow"}})),
        ("POST", path("/compact"), json!({})),
        ("POST", path("/archive"), json!({})),
        ("POST", path("/unarchive"), json!({})),
        ("POST", path("/attachments"), json!({"name": "a.txt", "data": "eA=="})),
        ("PUT", path("/mode"), json!({"modeId": "auto"})),
        ("PUT", path("/config/mode"), json!({"value": "auto"})),
        ("POST", format!("/v1/permissions/{permission}"), json!({"outcome": "allow_once"})),
        ("PUT", path("/messages"), json!({"messages": []})),
        ("PATCH", path(""), json!({"title": "x"})),
        ("DELETE", path(""), json!({})),
    ]
}

/// Returns the path of each route that reads a session.
pub fn reading_paths(session: &str) -> Vec<String> {
    let routes = session_routes().into_iter().filter(|(method, _)| method == "GET");
    routes.map(|(_, path)| path.replace("{sessionId}", session).replace("{name}", "a.txt").replace("{job}", "1")).collect()
}

/// Returns the method and the path of each published route of one session or permission request.
pub fn session_routes() -> Vec<(String, String)> {
    let of_session = |route: &&Route| route.path.contains("{sessionId}") || route.path.contains("{permissionId}");
    ROUTES.iter().filter(of_session).map(|route| (route.verb.clone(), route.path.clone())).collect()
}

/// Returns the HTTP method and the path of the first published route of a JSON-RPC method.
pub fn route(method: &str) -> Option<(&'static str, &'static str)> {
    ROUTES.iter().find(|route| route.method == method).map(|route| (route.verb.as_str(), route.path.as_str()))
}

struct Route {
    verb: String,
    path: String,
    method: String,
}

/// The published routes. Parsed once, because a test can make hundreds of calls.
static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let published: Value = serde_json::from_str(include_str!("../../../schema/openapi.json")).unwrap();
    let paths = published["paths"].as_object().unwrap().iter();
    let operations =
        paths.flat_map(|(path, verbs)| verbs.as_object().unwrap().iter().map(move |(verb, route)| (path, verb, route)));
    let route = |(path, verb, route): (&String, &String, &Value)| Route {
        verb: verb.to_uppercase(),
        path: path.clone(),
        method: route["x-method"].as_str().unwrap_or_default().to_owned(),
    };
    operations.map(route).collect()
});
