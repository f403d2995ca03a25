//! The calls of the HTTP bridge that concern one session, for tests of access control.

use serde_json::{Value, json};

/// Every call that changes a session, with a valid body: method, path and body.
/// The last one deletes it.
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

/// The path of each route that reads a session.
pub fn reading_paths(session: &str) -> Vec<String> {
    let routes = session_routes().into_iter().filter(|(method, _)| method == "GET");
    routes.map(|(_, path)| path.replace("{sessionId}", session).replace("{name}", "a.txt")).collect()
}

/// Method and path of each published route of one session or permission request.
pub fn session_routes() -> Vec<(String, String)> {
    let published: Value = serde_json::from_str(include_str!("../../../schema/openapi.json")).unwrap();
    let paths = published["paths"].as_object().unwrap().iter();
    let paths = paths.filter(|(path, _)| path.contains("{sessionId}") || path.contains("{permissionId}"));
    paths
        .flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone())))
        .collect()
}
