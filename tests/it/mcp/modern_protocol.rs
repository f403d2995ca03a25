//! Servers that speak only protocol 2026-07-28: without `initialize`, and with requests to the
//! client as results of calls.

use serde_json::{Value, json};

use super::{home, text, turn};
use harness::Home;
use harness::steps::calls_one;

#[tokio::test]
async fn server_without_initialize_is_used() {
    let home = home(&["modern"]);
    let checked = home.run(&["mcp", "check"], "").await;
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.stdout.contains("modern 7 (protocol 2026-07-28)"), "{checked:?}");
    let steps = json!([calls_one("mcp__docs__echo", json!({"text": "hi"})), {"text": "end"}]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    assert_eq!(text(&turn(&mut agent, &session, 1).await[0]), "hi");
    agent.finish().await;
}

#[tokio::test]
async fn call_that_needs_input_is_repeated_with_it() {
    let home = Home::new();
    home.config(&(super::setting("docs", &["modern", "asks"]) + "sampling = true\n"));
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let steps =
        json!([calls_one("mcp__docs__ask", json!({"message": "Who?", "schema": schema})), {"text": "Forty-two."}, {"text": "end"}]);
    let model = home.script(steps);
    let mut agent = home.start(&["--model", &model, "--mode", "auto"]).await;
    let capabilities = json!({"elicitation": {"form": {}}});
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = agent.new_session(&home).await;
    agent.forms.push_back(json!({"action": "accept", "content": {"name": "Ada"}}));
    let finished = turn(&mut agent, &session, 1).await;
    let answers: Value = serde_json::from_str(&text(&finished[0])).unwrap_or_else(|_| panic!("{}", finished[0]));
    assert_eq!(answers[0], json!([{"action": "accept", "content": {"name": "Ada"}}, 1]), "{answers}");
    assert_eq!(answers[1]["content"]["text"], "Forty-two.", "{answers}");
    agent.finish().await;
}
