//! Servers that a client gives with `session/new` and `session/load`, and servers of projects.

use serde_json::{Value, json};

use super::{SERVER, setting, text, turn};
use harness::Home;
use harness::steps::calls_one;

fn given(name: &str) -> Value {
    json!({"name": name, "command": "/usr/bin/env", "args": ["python3", SERVER], "env": [{"name": "GIVEN", "value": "$HOME"}]})
}

#[tokio::test]
async fn servers_of_the_client_are_used_after_new_and_load() {
    let home = Home::new();
    let steps = json!([calls_one("mcp__theirs__environment", json!({"name": "GIVEN"})), {"text": "end"}]);
    let model = home.script(steps);
    let flags = ["--mode", "auto", "--model", &model];
    let mut agent = home.start(&flags).await;
    let initialized = agent.call("initialize", json!({"protocolVersion": 1})).await;
    assert_eq!(initialized["agentCapabilities"]["mcpCapabilities"]["http"], true);
    let made = agent.call("session/new", json!({"cwd": home.work(), "mcpServers": [given("theirs")]})).await;
    let session = made["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(text(&turn(&mut agent, &session, 1).await[0]), "$HOME", "a literal value, no variable of nuncio");
    agent.finish().await;
    let mut agent = home.start(&flags).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let load = json!({"sessionId": session, "cwd": home.work(), "mcpServers": [given("theirs")]});
    agent.call("session/load", load).await;
    assert_eq!(text(&turn(&mut agent, &session, 1).await[0]), "$HOME");
    agent.finish().await;
}

#[tokio::test]
async fn unusable_servers_of_the_client_are_errors() {
    let home = Home::new();
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let cases = [
        (
            json!([{"type": "sse", "name": "old", "url": "http://127.0.0.1:1/sse", "headers": []}]),
            "the transport \"sse\" is not supported",
        ),
        (json!([{"type": "http", "name": "x", "url": "ftp://host/", "headers": []}]), "the scheme must be http or https"),
        (json!([given("x"), given("x")]), "two servers have this name"),
    ];
    for (servers, message) in cases {
        let error = agent.request("session/new", json!({"cwd": home.work(), "mcpServers": servers})).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn servers_of_a_project_start_only_after_trust() {
    needs_linux!("sandbox");
    let home = Home::new();
    home.put(".nuncio/config.toml", &setting("docs", &[]));
    let step = || json!([calls_one("mcp__docs__echo", json!({"text": "hi"}))]);
    let (mut agent, session) = home.session(step(), &["--mode", "auto"]).await;
    assert!(text(&turn(&mut agent, &session, 1).await[0]).contains("there is no tool mcp__docs__echo"));
    agent.finish().await;
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    let (mut agent, session) = home.session(step(), &["--mode", "auto"]).await;
    assert_eq!(text(&turn(&mut agent, &session, 1).await[0]), "hi");
    agent.finish().await;
}

#[tokio::test]
async fn changed_program_of_a_server_revokes_trust() {
    needs_linux!("sandbox");
    let home = Home::new();
    let script = std::fs::read_to_string(SERVER).unwrap();
    home.put("sub/server.py", &script);
    home.put(".nuncio/config.toml", "[mcp.docs]\ncommand = [\"python3\", \"server.py\"]\ncwd = \"sub\"\n");
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    for (program, code) in [(script.clone(), 0), (script + "# changed\n", 2)] {
        home.put("sub/server.py", &program);
        let ran = home.run(&["tool", "--mode", "auto", "mcp__docs__echo", r#"{"text":"hi"}"#], "").await;
        assert_eq!(ran.code, code, "{ran:?}");
    }
}
