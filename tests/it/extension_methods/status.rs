//! Lists of tools, agents and models, and the status of the server.

use serde_json::{Value, json};

use super::refused;
use harness::{Home, Reply};

#[tokio::test]
async fn status_tools_agents_and_models_are_listed() {
    let home = Home::new();
    home.env("ANTHROPIC_API_KEY", "key");
    let model = home.script(json!([{"tool_calls": [{"name": "bash", "input": {"command": "true"}}]}]));
    let mut agent = home.start(&["--model", &model]).await;
    let status = agent.call("_nuncio/status", json!({})).await;
    assert_eq!(status["sessions"], json!({"open": 0, "busy": 0, "waiting": 0}));
    assert_eq!((&status["version"], &status["model"]), (&json!(env!("CARGO_PKG_VERSION")), &json!(model)));
    assert!(status["uptimeMs"].is_u64(), "{status}");

    let tools = agent.call("_nuncio/tool/list", json!({})).await["tools"].as_array().unwrap().clone();
    let names: Vec<(&str, &str)> =
        tools.iter().map(|tool| (tool["name"].as_str().unwrap(), tool["kind"].as_str().unwrap())).collect();
    assert!(names.contains(&("read", "read")) && names.contains(&("bash", "execute")), "{names:?}");
    let whole = |tool: &Value| tool["inputSchema"]["type"] == "object" && !tool["description"].as_str().unwrap().is_empty();
    assert!(tools.iter().all(whole), "{tools:?}");
    let agents = agent.call("_nuncio/agent/list", json!({})).await;
    assert_eq!(agents["agents"], json!([{"name": "nuncio", "kind": "native", "version": env!("CARGO_PKG_VERSION")}]));
    let models = agent.call("_nuncio/model/list", json!({})).await;
    assert_eq!((&models["default"], &models["models"][0]["id"]), (&json!(model), &json!(model)));
    let of_key = |model: &Value| model["id"].as_str().unwrap().starts_with("anthropic/");
    assert!(models["models"].as_array().unwrap().iter().any(of_key), "{models}");

    agent.otherwise = Reply::Never;
    let session = agent.new_session(&home).await;
    agent.new_session(&home).await;
    let prompt = agent.prompt(&session, "go").await;
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    assert_eq!(agent.call("_nuncio/status", json!({})).await["sessions"], json!({"open": 2, "busy": 1, "waiting": 1}));
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&prompt).await.unwrap();
    refused(&mut agent, &[("_nuncio/status", json!({"stray": 1}), -32602, "stray")]).await;
    agent.finish().await;
}

/// Users see a label, what the tool accesses, and whether a call needs approval in the mode of the
/// session or by a rule.
#[tokio::test]
async fn tools_have_label_category_and_approval() {
    let home = Home::new();
    home.config("[[permissions.rules]]\ntool = \"fetch\"\npolicy = \"deny\"\n");
    let (mut agent, session) = home.session(json!([]), &[]).await;
    let modes = ["ask", "accept-edits", "plan", "auto"];
    // Name, label, category, and the decision in each mode.
    let cases = [
        ("read", "Read file", "file", ["allow"; 4]),
        ("write", "Write file", "file", ["ask", "allow", "deny", "allow"]),
        ("bash", "Run command", "command", ["ask", "ask", "deny", "allow"]),
        ("bash_output", "Read background output", "other", ["allow"; 4]),
        ("fetch", "Fetch page", "network", ["deny"; 4]),
        ("plan", "Update plan", "other", ["allow"; 4]),
    ];
    for (at, mode) in modes.into_iter().enumerate() {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        let tools = agent.call("_nuncio/tool/list", json!({"sessionId": session})).await["tools"].clone();
        for (name, label, category, approvals) in &cases {
            let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == *name).unwrap();
            let shown = [&tool["label"], &tool["category"], &tool["approval"]].map(|field| field.as_str().unwrap());
            assert_eq!(shown, [*label, *category, approvals[at]], "{name} in {mode}");
        }
    }
    // Without a session: as in a new one.
    let tools = agent.call("_nuncio/tool/list", json!({})).await["tools"].clone();
    let approval = |name: &str| tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()["approval"].clone();
    assert_eq!([approval("write"), approval("fetch")], [json!("ask"), json!("deny")]);
    refused(&mut agent, &[("_nuncio/tool/list", json!({"sessionId": "x"}), -32002, "x")]).await;
    agent.finish().await;
}
