//! Unknown fields of REST requests are errors that name the nearest known field; JSON-RPC ignores
//! them in ACP's methods.

use nuncio::internal::api::METHODS;
use serde_json::{Value, json};

use harness::{Answer, Home};

/// The message of an `invalid_params` error.
fn invalid_params_message(answer: &Answer, what: &str) -> String {
    assert_eq!(answer.error(), (400, "invalid_params".into()), "{what}: {answer:?}");
    answer.json()["error"]["message"].as_str().unwrap().into()
}

/// Method, path (`{s}` is a session), body (empty: none), the unknown field, and the suggested
/// field (empty: any).
const CASES: &[(&str, &str, &str, &str, &str)] = &[
    ("POST", "/v1/sessions", r#"{"workspace_path": "/"}"#, "workspace_path", ""),
    ("POST", "/v1/sessions", r#"{"system_prompt": "x"}"#, "system_prompt", "systemPrompt"),
    ("POST", "/v1/sessions", r#"{"Mode": "plan"}"#, "Mode", "mode"),
    ("POST", "/v1/sessions", r#"{"dir": "/", "additional_dirs": []}"#, "dir", ""),
    ("POST", "/v1/sessions", r#"{"mcpServers": [{"name": "a", "comand": "b"}]}"#, "mcpServers[0].comand", "command"),
    ("POST", "/v1/sessions", r#"{"mcpServers": [{"type": "http", "name": "a", "uri": "b"}]}"#, "mcpServers[0].uri", "url"),
    ("POST", "/v1/sessions?titel=x", "{}", "titel", "title"),
    ("POST", "/v1/sessions/{s}/prompt", r#"{"prompt": [], "message": 1}"#, "message", ""),
    ("POST", "/v1/sessions/{s}/prompt", r#"{"prompt": [{"type": "text", "text": "a", "txet": 1}]}"#, "prompt[0].txet", "text"),
    (
        "POST",
        "/v1/sessions/{s}/prompt",
        r#"{"prompt": [{"type": "resource", "resource": {"uri": "a", "text": "b", "mime": "c"}}]}"#,
        "prompt[0].resource.mime",
        "mimeType",
    ),
    ("POST", "/v1/sessions/{s}/messages", r#"{"parts": [{"type": "text", "text": "a"}], "auto_run": 1}"#, "auto_run", "autoRun"),
    ("POST", "/v1/sessions/{s}/messages", r#"{"parts": [{"type": "text", "text": "a", "texts": 1}]}"#, "parts[0].texts", "text"),
    ("POST", "/v1/sessions/{s}/resume", r#"{"cwdd": "/"}"#, "cwdd", "cwd"),
    ("POST", "/v1/sessions/{s}/cancel", r#"{"reason": "x"}"#, "reason", ""),
    ("POST", "/v1/permissions/none", r#"{"option": "x"}"#, "option", "optionId"),
    ("PUT", "/v1/sessions/{s}/mode", r#"{"mode": "plan"}"#, "mode", "modeId"),
    ("PUT", "/v1/sessions/{s}/config/mode", r#"{"value": "plan", "valu": 1}"#, "valu", "value"),
    ("DELETE", "/v1/sessions/{s}?force=true", "", "force", ""),
    ("GET", "/v1/sessions?directory=/", "", "directory", ""),
    ("GET", "/v1/sessions?cwdd=/", "", "cwdd", "cwd"),
    ("GET", "/v1/sessions/{s}/messages?limits=1", "", "limits", "limit"),
    ("GET", "/v1/sessions/{s}/events?afte=0", "", "afte", "after"),
    ("GET", "/v1/events?type=x", "", "type", "types"),
    ("GET", "/v1/permissions?session_id=x", "", "session_id", "sessionId"),
    ("GET", "/v1/status?verbose=1", "", "verbose", ""),
];

#[tokio::test]
async fn unknown_field_of_a_rest_request_is_refused_with_the_nearest_known_one() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let session = server.new_session(&home).await;
    for (method, path, body, field, nearest) in CASES {
        let what = format!("{method} {path} {body}");
        let mut ask = server.ask(method, &path.replace("{s}", &session));
        if !body.is_empty() {
            ask = ask.header("content-type", "application/json").body(*body);
        }
        let answer = ask.send().await;
        let message = invalid_params_message(&answer, &what);
        assert!(message.starts_with(&format!("{field}: unknown field")), "{what}: {message}");
        assert!(nearest.is_empty() || message.contains(&format!("`{nearest}`")), "{what}: {message}");
    }
    let form = "--b\r\ncontent-disposition: form-data; name=\"title\"\r\n\r\nx\r\n--b\r\n\
                content-disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nx\r\n--b--\r\n";
    let path = format!("/v1/sessions/{session}/attachments");
    let sent = server.ask("POST", &path).header("content-type", "multipart/form-data; boundary=b").body(form).send().await;
    assert!(invalid_params_message(&sent, "a form").contains("title: unknown field"), "{sent:?}");
    // The refused requests created no session.
    let listed = server.get("/v1/sessions?empty=true").expect(200).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    server.stop().await;
}

/// `null` in a request means that the field is absent.
#[tokio::test]
async fn fields_of_a_new_session_apply_beside_a_meta_of_null() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    for meta in [json!(null), json!({}), json!({"nuncio": null}), json!({"nuncio": {}})] {
        let body = json!({"_meta": meta, "cwd": home.work(), "mode": "plan"});
        let created = server.post("/v1/sessions", &body).expect(201).await;
        assert_eq!(created["modes"]["currentModeId"], "plan", "{meta}");
        let wrong = json!({"_meta": meta, "cwd": home.work(), "mode": 4005});
        let wrong = server.post("/v1/sessions", &wrong).send().await;
        assert!(invalid_params_message(&wrong, "a mode of 4005").contains("mode: invalid type"), "{meta}: {wrong:?}");
    }
    server.stop().await;
}

/// Covers every route of `METHODS`, including new ones.
#[tokio::test]
async fn every_route_refuses_an_unknown_field() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    for (entry, route) in METHODS.iter().flat_map(|entry| entry.routes.iter().map(move |route| (entry, route))) {
        let path: String =
            route.path.split('/').map(|part| if part.starts_with('{') { "/none" } else { part }).collect::<Vec<_>>().join("/");
        let path = path.replace("//", "/");
        let answer = match route.verb {
            "GET" | "DELETE" => server.ask(route.verb, &format!("{path}?bogusField=1")).send().await,
            verb => {
                let mut body: Value = serde_json::from_str(entry.example).unwrap();
                body["bogusField"] = 1.into();
                server.ask(verb, &path).json(&body).send().await
            }
        };
        let message = invalid_params_message(&answer, entry.name);
        assert!(message.contains("bogusField: unknown field"), "{}: {message}", entry.name);
    }
    server.stop().await;
}

/// ACP's types treat such a value as absent.
#[tokio::test]
async fn value_of_a_wrong_type_is_not_silently_ignored_on_rest() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "done"}]), &[]).await;
    let session = server.new_session(&home).await;
    let text = |extra: Value| {
        let mut block = json!({"type": "text", "text": "a"});
        block.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"prompt": [block]})
    };
    for (body, field) in [
        (text(json!({"_meta": 5})), "prompt[0]._meta"),
        (text(json!({"annotations": "x"})), "prompt[0].annotations"),
        (text(json!({"annotations": {"audience": ["nobody"]}})), "prompt[0].annotations"),
        (text(json!({"annotations": {"priority": "high"}})), "prompt[0].annotations"),
        (json!({"prompt": [{"type": "resource_link", "name": "a", "uri": "b", "size": 1.5}]}), "prompt[0].size"),
        (json!({"prompt": [], "_meta": []}), "_meta"),
    ] {
        let answer = server.post(&format!("/v1/sessions/{session}/prompt"), &body).send().await;
        let message = invalid_params_message(&answer, &body.to_string());
        assert!(message.starts_with(&format!("{field}: ")), "{body}: {message}");
    }
    let right = text(json!({"_meta": {"any": 1}, "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": null}}));
    server.post(&format!("/v1/sessions/{session}/prompt"), &right).expect(200).await;
    server.stop().await;
}

#[tokio::test]
async fn unknown_field_of_an_acp_method_is_ignored_over_json_rpc() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "done"}]), &[]).await;
    let call = async |method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer: Value = serde_json::from_str(&server.post("/rpc", &request).send().await.body).unwrap();
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    };
    let made = call("session/new", json!({"cwd": home.work(), "mcpServers": [], "workspace_path": "/"})).await;
    let block = json!({"type": "text", "text": "a", "extra": 1, "_meta": 5});
    let ended = call("session/prompt", json!({"sessionId": made["sessionId"], "prompt": [block], "unknown": true})).await;
    assert_eq!(ended["stopReason"], "end_turn");
    server.stop().await;
}
