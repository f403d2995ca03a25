//! Fields of forms: their order, their defaults, and those that are required.

use serde_json::{Value, json};

use super::{setting, text};
use harness::steps::calls_one;
use harness::{Home, notices, tool};

/// Shows the form `schema` to a client that accepts with each of the contents. Returns the form that
/// the client saw, the answers that the server got, and the titles of the notices.
async fn answers(schema: &Value, contents: &[Value]) -> (Value, Vec<Value>, Vec<String>) {
    let home = Home::new();
    home.config(&setting("docs", &["asks"]));
    let step = calls_one("mcp__docs__ask", json!({"message": "What now?", "schema": schema}));
    let model = home.script(json!(vec![step; contents.len()]));
    let mut agent = home.start(&["--model", &model, "--mode", "auto"]).await;
    let capabilities = json!({"elicitation": {"form": {}}, "session": {"notices": {}}});
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = agent.new_session(&home).await;
    agent.forms.extend(contents.iter().map(|content| json!({"action": "accept", "content": content})));
    let (_, updates) = agent.turn(&session, "go").await;
    let shown = agent.frames.iter().find(|frame| frame["method"] == "elicitation/create").unwrap();
    let form = shown["params"]["requestedSchema"].clone();
    let got = (0..contents.len()).map(|index| serde_json::from_str(&text(&tool(&updates, index))).unwrap()).collect();
    let titles = notices(&updates).into_iter().map(String::from).collect();
    agent.finish().await;
    (form, got, titles)
}

#[tokio::test]
async fn fields_keep_the_order_of_the_server() {
    let schema: Value = serde_json::from_str(
        r#"{"type": "object", "properties": {"zip": {"type": "string"}, "name": {"type": "string"}, "age": {"type": "integer"}}}"#,
    )
    .unwrap();
    let (form, ..) = answers(&schema, &[json!({})]).await;
    let names: Vec<&String> = form["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["zip", "name", "age"], "{form}");
}

#[tokio::test]
async fn defaults_are_filled_and_required_fields_are_checked() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "Ada"},
            "age": {"type": "integer"},
            "sure": {"type": "boolean", "default": true},
        },
        "required": ["name", "age"],
    });
    let contents = [json!({"age": 36}), json!({"name": "Bob"}), json!({"age": "old"}), json!({"age": 1, "sure": false})];
    let (_, got, titles) = answers(&schema, &contents).await;
    let accepted = |content: Value| json!({"action": "accept", "content": content});
    assert_eq!(got[0], accepted(json!({"age": 36, "name": "Ada", "sure": true})));
    assert_eq!((&got[1]["action"], &got[2]["action"]), (&json!("decline"), &json!("decline")), "{got:?}");
    assert_eq!(got[3], accepted(json!({"age": 1, "sure": false, "name": "Ada"})));
    assert_eq!(titles.len(), 4, "{titles:?}");
}
