//! Params of a wrong shape.

use serde_json::{Value, json};

use harness::Home;

/// A method, params, and the place in the error. serde would accept each: a list as the fields of a
/// struct in their order, a number as the index of a variant.
fn cases() -> Vec<(&'static str, Value, &'static str)> {
    let server = |server: Value| json!({"cwd": "/", "mcpServers": [server]});
    let text = json!([{"type": "text", "text": "go"}]);
    let budget = |budget: Value| json!({"nuncio": {"budget": budget}});
    vec![
        ("session/prompt", json!({"prompt": text, "_meta": budget(json!([null, null]))}), "_meta.nuncio.budget: must be an object"),
        ("session/new", json!({"cwd": "/", "_meta": budget(json!([1]))}), "_meta.nuncio.budget: must be an object"),
        ("session/new", json!({"cwd": "/", "_meta": {"nuncio": ["scripted"]}}), "_meta.nuncio: must be an object"),
        ("session/list", json!({"_meta": {"nuncio": [true, true]}}), "_meta.nuncio: must be an object"),
        ("session/fork", json!({"_meta": {"nuncio": ["title"]}}), "_meta.nuncio: must be an object"),
        ("session/prompt", json!({"prompt": [["text", "go"]]}), "prompt[0]: must be an object"),
        ("session/prompt", json!({"prompt": [{"type": 0, "text": "go"}]}), "prompt[0].type: must be a string"),
        (
            "session/prompt",
            json!({"prompt": [{"type": "resource", "resource": ["text", "file:///x"]}]}),
            "resource: must be an object",
        ),
        ("session/new", server(json!(["x", "true", [], []])), "mcpServers[0]: must be an object"),
        (
            "session/new",
            server(json!({"name": "x", "command": "true", "args": [], "env": [["A", "b"]]})),
            "env[0]: must be an object",
        ),
        ("_nuncio/workspace/set_metadata", json!({"workspaceId": "work_1", "metadata": ["a"]}), "metadata"),
    ]
}

#[tokio::test]
async fn list_is_no_object_and_number_is_no_name() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    for (method, mut params, place) in cases() {
        params["sessionId"] = json!(session);
        let error = agent.request(method, params.clone()).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{params}: {error}");
        assert!(error["message"].as_str().unwrap().contains(place), "{params}: {error}");
    }
    agent.finish().await;
}
