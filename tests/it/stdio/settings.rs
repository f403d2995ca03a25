//! Modes and options of a session, its updates, and authentication.

use serde_json::{Value, json};

use harness::{Agent, Home, kinds, notices};

/// The current value of an option.
fn value(options: &Value, id: &str) -> Value {
    let found = options.as_array().unwrap().iter().find(|option| option["id"] == id);
    found.unwrap_or_else(|| panic!("no option {id}: {options}"))["currentValue"].clone()
}

/// The last update of a kind.
fn last(agent: &Agent, session: &str, kind: &str) -> Value {
    agent.updates(session).into_iter().rfind(|update| update["sessionUpdate"] == kind).unwrap_or(Value::Null)
}

#[tokio::test]
async fn modes_and_options_stay_consistent() {
    let home = Home::new();
    let mut agent = home.start(&["--model", &home.script(json!([])), "--mode", "accept-edits"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let made = agent.call("session/new", json!({"cwd": home.work()})).await;
    let session = made["sessionId"].as_str().unwrap().to_string();
    assert_eq!(made["modes"]["currentModeId"], "accept-edits");
    let modes: Vec<&str> =
        made["modes"]["availableModes"].as_array().unwrap().iter().map(|mode| mode["id"].as_str().unwrap()).collect();
    assert_eq!(modes, ["ask", "accept-edits", "plan", "auto"]);
    let categories: Vec<&Value> = made["configOptions"].as_array().unwrap().iter().map(|option| &option["category"]).collect();
    assert_eq!(categories, ["mode", "model", "thought_level"]);
    assert_eq!(value(&made["configOptions"], "mode"), "accept-edits");

    // Both methods send both updates.
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await;
    assert_eq!(last(&agent, &session, "current_mode_update")["currentModeId"], "plan");
    assert_eq!(value(&last(&agent, &session, "config_option_update")["configOptions"], "mode"), "plan");
    let set = agent.call("session/set_config_option", json!({"sessionId": session, "configId": "mode", "value": "auto"})).await;
    assert_eq!(value(&set["configOptions"], "mode"), "auto");
    assert_eq!(last(&agent, &session, "current_mode_update")["currentModeId"], "auto");
    for (option, to) in [("thinking", "high"), ("model", "ollama/other")] {
        let set = agent.call("session/set_config_option", json!({"sessionId": session, "configId": option, "value": to})).await;
        assert_eq!(value(&set["configOptions"], option), to);
        assert_eq!(value(&last(&agent, &session, "config_option_update")["configOptions"], option), to);
    }
    for (option, to, word) in [
        ("mode", "x", "x"),
        ("thinking", "x", "x"),
        ("model", "nonsense", "PROVIDER/NAME"),
        ("model", "x/y", "x"),
        ("size", "x", "size"),
    ] {
        let params = json!({"sessionId": session, "configId": option, "value": to});
        let error = agent.request("session/set_config_option", params).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
    agent.finish().await;

    // The options persist.
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let loaded = agent.call("session/load", json!({"sessionId": session, "cwd": home.work()})).await;
    assert_eq!(loaded["modes"]["currentModeId"], "auto");
    assert_eq!(value(&loaded["configOptions"], "thinking"), "high");
    assert_eq!(value(&loaded["configOptions"], "model"), "ollama/other");
    agent.finish().await;
}

#[tokio::test]
async fn session_reports_title_usage_and_commands() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "hello"}]), &[]).await;
    let (_, updates) = agent.turn(&session, "\n  The first line  \nand another").await;
    assert_eq!(last(&agent, &session, "session_info_update")["title"], "The first line");
    let usage = last(&agent, &session, "usage_update");
    assert!(usage["used"].as_u64().unwrap() > 0 && usage["size"].as_u64().unwrap() >= usage["used"].as_u64().unwrap(), "{usage}");
    let commands = last(&agent, &session, "available_commands_update");
    assert!(commands["availableCommands"].as_array().unwrap().iter().any(|command| command["name"] == "review"), "{commands}");
    assert!(kinds(&updates).contains(&"usage_update"));
    agent.finish().await;
}

#[tokio::test]
async fn notices_are_sent_only_to_clients_that_support_them() {
    let home = Home::new();
    let servers = json!([
        {"name": "one", "command": "/bin/true", "args": [], "env": []},
        {"type": "http", "name": "two", "url": "http://127.0.0.1:1/", "headers": []},
    ]);
    for (capabilities, told) in [(json!({"session": {"notices": {}}}), true), (json!({}), false), (json!({"session": {}}), false)] {
        let model = home.script(json!([{"error": {"status": 503, "times": 1}, "text": "at last"}]));
        let mut agent = home.start(&["--model", &model]).await;
        agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
        let made = agent.call("session/new", json!({"cwd": home.work(), "mcpServers": servers})).await;
        let session = made["sessionId"].as_str().unwrap().to_string();
        agent.turn(&session, "go").await;
        let updates = agent.updates(&session);
        let titles = notices(&updates);
        assert_eq!(titles.len(), if told { 3 } else { 0 }, "{titles:?}");
        if told {
            assert_eq!(titles[..2], ["MCP server one failed", "MCP server two failed"]);
            assert!(titles[2].contains("503"), "{titles:?}");
        }
        agent.finish().await;
    }
}

#[tokio::test]
async fn logged_out_client_cannot_open_or_prompt_sessions() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    let error = agent.request("authenticate", json!({"methodId": "magic"})).await.unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
    assert!(error["message"].as_str().unwrap().contains("methodId"), "{error}");
    assert_eq!(agent.call("logout", json!({})).await, json!({}));
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    for (method, params) in [
        ("session/new", json!({"cwd": home.work()})),
        ("session/load", json!({"sessionId": session, "cwd": home.work()})),
        ("session/resume", json!({"sessionId": session, "cwd": home.work()})),
        ("session/prompt", prompt),
    ] {
        let error = agent.request(method, params).await.unwrap_err();
        assert_eq!(error["code"], -32000, "{method}: {error}");
    }
    assert_eq!(agent.call("authenticate", json!({"methodId": "environment"})).await, json!({}));
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
}

#[tokio::test]
async fn error_without_api_key_names_the_variable() {
    let home = Home::new();
    let mut agent = home.start(&["--model", "anthropic/claude-sonnet-5"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let error = agent.request("authenticate", json!({"methodId": "environment"})).await.unwrap_err();
    assert_eq!(error["code"], -32000, "{error}");
    let session = agent.new_session(&home).await;
    let id = agent.prompt(&session, "go").await;
    let failed = agent.answer(&id).await.unwrap_err();
    for error in [error, failed] {
        assert!(error.to_string().contains("ANTHROPIC_API_KEY"), "{error}");
    }
    agent.finish().await;
}
