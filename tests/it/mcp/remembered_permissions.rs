//! Remembered permissions for MCP tools: valid only for the same server and the same definition.

use serde_json::{Value, json};

use super::SERVER;
use harness::steps::calls_one;
use harness::{Home, Reply};

/// One call per turn.
fn turns(calls: &[Value]) -> Value {
    calls.iter().flat_map(|call| [call.clone(), json!({"text": "end"})]).collect()
}

#[tokio::test]
async fn changed_tool_requires_permission_again() {
    let home = super::home(&[]);
    let echo = calls_one("mcp__docs__echo", json!({"text": "a"}));
    let change = calls_one("mcp__docs__grow", json!({"name": "echo"}));
    let (mut agent, session) = home.session(turns(&[echo.clone(), echo.clone(), change, echo.clone(), echo]), &[]).await;
    agent.otherwise = Reply::Pick("allow_always");
    let mut asked = Vec::new();
    for _ in 0..5 {
        let before = agent.questions();
        agent.turn(&session, "go").await;
        asked.push(agent.questions() - before);
    }
    assert_eq!(asked, [1, 0, 1, 1, 0]);
    agent.finish().await;
}

#[tokio::test]
async fn other_server_of_the_same_name_requires_permission() {
    let home = Home::new();
    let given = |argument: &str, path: &str| {
        json!([{"name": "theirs", "command": "/usr/bin/env", "args": ["python3", SERVER, argument],
            "env": [{"name": "PYTHONPATH", "value": path}]}])
    };
    let echo = calls_one("mcp__theirs__echo", json!({"text": "a"}));
    let model = home.script(turns(&[echo]));
    let flags = ["--model", model.as_str()];
    let mut agent = home.start(&flags).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let made = agent.call("session/new", json!({"cwd": home.work(), "mcpServers": given("a=1", "/one")})).await;
    let session = made["sessionId"].as_str().unwrap().to_owned();
    agent.otherwise = Reply::Pick("allow_always");
    agent.turn(&session, "go").await;
    assert_eq!(agent.questions(), 1);
    agent.finish().await;
    for (argument, path, questions) in [("a=1", "/one", 0), ("a=2", "/one", 1), ("a=1", "/two", 1)] {
        let mut agent = home.start(&flags).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        agent.otherwise = Reply::Pick("reject_once");
        agent.call("session/load", json!({"sessionId": session, "cwd": home.work(), "mcpServers": given(argument, path)})).await;
        agent.turn(&session, "go").await;
        assert_eq!(agent.questions(), questions, "{argument} {path}");
        agent.finish().await;
    }
}
