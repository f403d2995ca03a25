//! Remembered permissions for MCP tools: valid only for the same server and the same definition.

use nuncio::internal::config::{AccessKind, Policy, Rule};
use nuncio::internal::options::Mode;
use nuncio::internal::permission::rules::{PermissionRequest, Rules, decide};
use serde_json::{Value, json};

use super::{SERVER, call};
use crate::harness::{Home, Reply};

/// One call per turn.
fn turns(calls: &[Value]) -> Value {
    calls.iter().flat_map(|call| [call.clone(), json!({"text": "end"})]).collect()
}

#[tokio::test]
async fn changed_tool_requires_permission_again() {
    let home = super::home(&[]);
    let echo = call("mcp__docs__echo", json!({"text": "a"}));
    let change = call("mcp__docs__grow", json!({"name": "echo"}));
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
    let echo = call("mcp__theirs__echo", json!({"text": "a"}));
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

#[test]
fn remembered_rule_without_a_definition_does_not_apply() {
    let rule = |pattern: Option<&str>, policy| Rule {
        tool: Some("mcp__docs__echo".into()),
        kind: Some(AccessKind::Mcp),
        path: None,
        pattern: pattern.map(Into::into),
        policy,
    };
    let cases = [
        (rule(None, Policy::Allow), Policy::Ask),
        (rule(Some("sha256:1"), Policy::Allow), Policy::Allow),
        (rule(Some("sha256:2"), Policy::Allow), Policy::Ask),
        (rule(None, Policy::Deny), Policy::Deny),
    ];
    for (rule, expected) in cases {
        let request =
            PermissionRequest { definition: Some("sha256:1"), ..PermissionRequest::new("mcp__docs__echo", AccessKind::Mcp) };
        let rules = Rules { session: vec![rule.clone()], ..Rules::default() };
        assert_eq!(decide(&rules, Mode::Ask, Policy::Ask, &request).policy, expected, "{rule:?}");
        let settings = Rules { user: vec![Rule { pattern: None, ..rule.clone() }], ..Rules::default() };
        assert_eq!(decide(&settings, Mode::Ask, Policy::Ask, &request).policy, rule.policy, "rules of the settings apply");
    }
}
