//! Lists of tools, agents and models, and the status of the server.

use serde_json::{Value, json};

use super::refused;
use crate::harness::{Home, Reply};

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
