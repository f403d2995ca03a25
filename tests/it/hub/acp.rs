//! Reports of an ACP agent become events and updates.

use serde_json::{Value, json};

use super::{bodies, home, hosted, session};
use harness::{Agent, Home, session_updates, text, tool};

#[tokio::test]
async fn result_has_the_last_answer_and_the_denials() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.turn(&session, "say").await;
    let first = agent.call("_nuncio/session/result", json!({"sessionId": session})).await;
    agent.turn(&session, "say").await;
    let second = agent.call("_nuncio/session/result", json!({"sessionId": session})).await;
    for result in [first, second] {
        assert_eq!((&result["agent"], &result["answer"], &result["denied"]), (&json!("other"), &json!("Hello, world"), &json!(0)));
    }
    agent.finish().await;
}

#[tokio::test]
async fn messages_and_thoughts_are_forwarded() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (stop, updates) = agent.turn(&session, "say it").await;
    assert_eq!(stop, "end_turn");
    assert_eq!(text(&updates, "agent_message_chunk"), "Hello, world");
    assert_eq!(text(&updates, "agent_thought_chunk"), "thinking");
    agent.finish().await;
    let messages = bodies(&home, &session, &["message.completed"]).await;
    let texts: Vec<(&str, &str)> =
        messages.iter().map(|body| (body["role"].as_str().unwrap(), body["parts"][0]["text"].as_str().unwrap())).collect();
    assert_eq!(texts, [("user", "say it"), ("thought", "thinking"), ("assistant", "Hello, world")]);
    let foreign = bodies(&home, &session, &["session.updated"]).await;
    assert!(foreign.iter().any(|body| body["agentSession"] == "foreign-1"), "{foreign:?}");
}

/// The agent does not receive the command as a prompt.
#[tokio::test]
async fn compaction_that_the_agent_lacks_is_refused() {
    let home = home(&["lacks-compact"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    for prompt in ["/compact", "/compact keep the names"] {
        let refused = agent.failure(&session, prompt).await;
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("/compact is not supported by the agent other"), "{prompt}: {refused}");
        assert_eq!(refused["data"]["code"], "unsupported", "{prompt}: {refused}");
    }
    let (_, updates) = agent.turn(&session, "history").await;
    let received = text(&updates, "agent_message_chunk");
    assert!(received.ends_with("history") && !received.contains("compact"), "{received}");
    agent.finish().await;
    let listed = home.run(&["sessions", "list"], "").await.stdout;
    assert!(listed.ends_with("  other\n"), "{listed}");
}

/// Commands of a hosted agent are its own, also those that nuncio does not know.
#[tokio::test]
async fn unknown_slash_command_is_forwarded_to_the_agent() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (stop, updates) = agent.turn(&session, "/nosuch now").await;
    let received = text(&updates, "agent_message_chunk");
    assert!(stop == "end_turn" && received.ends_with("/nosuch now"), "{received}");
    agent.finish().await;
}

#[tokio::test]
async fn title_kind_and_input_of_a_call_may_follow_its_start() {
    let home = home(&[]).await;
    home.put("a.txt", "one\n");
    let (mut agent, session) = session(&home, &[]).await;
    let (_, updates) = agent.turn(&session, "late").await;
    let call = tool(&updates, 0);
    assert_eq!((&call["title"], &call["kind"], &call["status"]), (&json!("cat a.txt"), &json!("read"), &json!("completed")));
    assert_eq!(call["rawInput"], json!({"path": "a.txt"}));
    assert_eq!(call["locations"], json!([{"path": home.work().join("a.txt"), "line": 3}]));
    assert_eq!(call["content"][0]["content"]["text"], "one");
    let replayed = agent.load(&home, &session).await;
    assert_eq!(tool(&replayed, 0)["title"], "cat a.txt");
    agent.finish().await;
}

#[tokio::test]
async fn call_without_announcement_and_call_without_end_are_recorded() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (_, updates) = agent.turn(&session, "unannounced").await;
    let call = tool(&updates, 0);
    assert_eq!((&call["title"], &call["status"]), (&json!("made a file"), &json!("completed")));
    assert_eq!(call["content"][0]["newText"], "x");
    let (stop, updates) = agent.turn(&session, "open").await;
    assert_eq!((stop.as_str(), &tool(&updates, 0)["status"]), ("end_turn", &json!("failed")));
    agent.finish().await;
}

#[tokio::test]
async fn plan_usage_and_commands_are_forwarded() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (_, updates) = agent.turn(&session, "plan").await;
    let plan = updates.iter().find(|update| update["sessionUpdate"] == "plan").unwrap();
    assert_eq!(plan["entries"][0]["content"], "first");
    let usage = updates.iter().find(|update| update["sessionUpdate"] == "usage_update").unwrap();
    assert_eq!((&usage["used"], &usage["size"], &usage["cost"]["amount"]), (&json!(1200), &json!(200_000), &json!(0.25)));
    agent.turn(&session, "say").await;
    let updates = session_updates(&agent.frames, &session);
    let last = updates.iter().rfind(|update| update["sessionUpdate"] == "available_commands_update").unwrap();
    assert_eq!(last["availableCommands"][0]["name"], "web");
    let report = agent.call("_nuncio/session/context", json!({"sessionId": session})).await;
    assert_eq!((&report["tokens"], &report["contextWindow"]), (&json!(1200), &json!(200_000)));
    agent.finish().await;
}

#[tokio::test]
async fn unknown_messages_are_skipped() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (stop, updates) = agent.turn(&session, "garbage").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk")), ("end_turn", "still here".to_owned()));
    agent.finish().await;
}

#[tokio::test]
async fn text_of_many_deltas_is_complete() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (_, updates) = agent.turn(&session, "many 3000").await;
    let expected: String = (0..3000).map(|number| format!("{number} ")).collect();
    assert_eq!(text(&updates, "agent_message_chunk"), expected);
    agent.finish().await;
}

#[tokio::test]
async fn agent_gets_directory_servers_and_its_mode_plan() {
    let home = home(&[]).await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let servers = json!([{"name": "docs", "command": "/bin/true", "args": ["-x"], "env": [{"name": "A", "value": "$B"}]}]);
    let params = json!({"cwd": home.work(), "mcpServers": servers, "_meta": {"nuncio": {"agent": "other"}}});
    let session = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
    let (_, updates) = agent.turn(&session, "cwd").await;
    assert_eq!(text(&updates, "agent_message_chunk"), home.work().to_string_lossy());
    let (_, updates) = agent.turn(&session, "history").await;
    let said = text(&updates, "agent_message_chunk");
    let given: Value = serde_json::from_str(said.split(" / ").next().unwrap().strip_prefix("servers ").unwrap()).unwrap();
    assert_eq!(given[0], servers[0]);
    // nuncio's own server knows the session.
    assert_eq!((&given[1]["name"], &given[1]["args"][0], &given[1]["args"][1]), (&json!("nuncio"), &json!("mcp"), &json!("serve")));
    let variables = given[1]["env"].as_array().unwrap();
    assert!(variables.contains(&json!({"name": "NUNCIO_SESSION", "value": session})), "{variables:?}");
    let mut modes = Vec::new();
    for mode in ["plan", "ask"] {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        let (_, updates) = agent.turn(&session, "mode").await;
        modes.push(text(&updates, "agent_message_chunk"));
    }
    assert_eq!(modes, ["plan", "default"]);
    agent.finish().await;
}

#[tokio::test]
async fn options_of_the_agent_are_set_and_kept_after_restart() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.turn(&session, "say").await;
    let set = |option: &str, value: &str| json!({"sessionId": session, "configId": option, "value": value});
    let wrong = agent.request("session/set_config_option", set("agent.mode", "fast")).await;
    assert_eq!(wrong.unwrap_err()["data"]["hint"], "values: default, plan");
    agent.call("session/set_config_option", set("agent.model", "large")).await;
    let options = agent.call("session/set_config_option", set("agent.mode", "plan")).await;
    let ids: Vec<&str> = options["configOptions"].as_array().unwrap().iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["mode", "agent.model", "agent.mode"]);
    agent.finish().await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.load(&home, &session).await;
    for (prompt, value) in [("mode", "plan"), ("model", "large")] {
        let (_, updates) = agent.turn(&session, prompt).await;
        assert_eq!(text(&updates, "agent_message_chunk"), value);
    }
    agent.finish().await;
}

#[tokio::test]
async fn system_prompt_that_the_agent_would_ignore_is_refused() {
    let home = home(&[]).await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let prompt = json!({"mode": "append", "content": [{"type": "text", "text": "Rhyme."}]});
    let params = json!({"cwd": home.work(), "mcpServers": [], "systemPrompt": prompt, "_meta": {"nuncio": {"agent": "other"}}});
    let error = agent.request("session/new", params).await.unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
    assert!(error["message"].as_str().unwrap().contains("systemPrompt: the agent other"), "{error}");
    agent.finish().await;
}

#[tokio::test]
async fn boolean_option_of_the_agent_is_boolean_for_clients_that_support_it() {
    let boolean = json!({"session": {"configOptions": {"boolean": {}}}});
    for (capabilities, is_boolean) in [(boolean, true), (json!({}), false)] {
        let home = home(&["switch"]).await;
        let mut agent = home.start(&[]).await;
        agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
        let params = json!({"cwd": home.work(), "mcpServers": [], "_meta": {"nuncio": {"agent": "other"}}});
        let session = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
        agent.turn(&session, "say").await;
        let value = if is_boolean { json!(true) } else { json!("true") };
        let mut set = json!({"sessionId": session, "configId": "agent.fast", "value": value});
        if is_boolean {
            set["type"] = json!("boolean");
        }
        let options = agent.call("session/set_config_option", set).await;
        let fast = options["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == "agent.fast").unwrap();
        // The agent receives the value before its next turn.
        let (kind, before) = if is_boolean { ("boolean", json!(false)) } else { ("select", json!("false")) };
        assert_eq!((&fast["type"], &fast["currentValue"]), (&json!(kind), &before), "{fast}");
        let (_, updates) = agent.turn(&session, "fast").await;
        assert_eq!(text(&updates, "agent_message_chunk"), "True");
        let loaded = agent.call("session/resume", json!({"sessionId": session, "cwd": home.work(), "mcpServers": []})).await;
        let fast = loaded["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == "agent.fast").unwrap();
        assert_eq!(fast["currentValue"], value, "{fast}");
        let wrong = json!({"sessionId": session, "configId": "agent.fast", "value": "perhaps"});
        assert_eq!(agent.request("session/set_config_option", wrong).await.unwrap_err()["code"], -32602);
        agent.finish().await;
    }
}

/// Starts nuncio again and loads the session.
async fn again(home: &Home, agent: Agent, session: &str) -> Agent {
    agent.kill().await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.load(home, session).await;
    agent
}

#[tokio::test]
async fn mode_before_plan_is_set_again_after_a_restart() {
    // The agent loads the session with the mode that it had last.
    let home = home(&["keeps-mode"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await;
    agent.turn(&session, "mode").await;
    let mut agent = again(&home, agent, &session).await;
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "ask"})).await;
    let (_, updates) = agent.turn(&session, "mode").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "default");
    agent.finish().await;
}

#[tokio::test]
async fn option_that_the_agent_does_not_take_is_reported() {
    let home = home(&["stubborn"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.turn(&session, "say").await;
    for (option, value) in [("agent.mode", "plan"), ("agent.model", "large")] {
        agent.call("session/set_config_option", json!({"sessionId": session, "configId": option, "value": value})).await;
    }
    agent.turn(&session, "say").await;
    let shown = bodies(&home, &session, &["notice"]).await;
    let shown: Vec<(&Value, &Value)> = shown.iter().map(|notice| (&notice["title"], &notice["description"])).collect();
    let title = |option: &str, value: &str| json!(format!("The option {option} of the agent was not set to {value}"));
    let why = |option: &str, value: &str| json!(format!("agent other: the option {option} is {value}"));
    let expected =
        [(title("model", "large"), why("model", "small, not large")), (title("mode", "plan"), why("mode", "default, not plan"))];
    assert_eq!(shown, expected.iter().map(|(title, why)| (title, why)).collect::<Vec<_>>());
    // The session mode `plan` needs the agent's mode.
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await;
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "say"}]});
    let failed = agent.request("session/prompt", prompt).await.unwrap_err();
    assert_eq!(failed["message"], "agent other: the option mode is default, not plan");
    agent.finish().await;
}

#[tokio::test]
async fn running_total_of_the_cost_is_counted_once() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.turn(&session, "cost 0.25").await;
    agent.turn(&session, "cost 0.5").await;
    let mut agent = again(&home, agent, &session).await;
    agent.turn(&session, "cost 0.75").await;
    // An agent that was started again may count from zero.
    let mut agent = again(&home, agent, &session).await;
    agent.turn(&session, "cost 0.125").await;
    agent.finish().await;
    let usage = bodies(&home, &session, &["usage.updated"]).await;
    let costs: Vec<&Value> = usage.iter().map(|body| &body["cost"]).collect();
    assert_eq!(costs, [0.25, 0.25, 0.25, 0.125]);
}

#[tokio::test]
async fn pieces_of_the_output_are_joined() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (_, updates) = agent.turn(&session, "deltas").await;
    assert_eq!(tool(&updates, 0)["content"][0]["content"]["text"], "one\ntwo\n");
    agent.finish().await;
}

#[tokio::test]
async fn next_process_loads_the_session_after_the_agent_has_ended() {
    let home = home(&["lingers"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.turn(&session, "say").await;
    // A client that provides files takes the idle session to its own process.
    let mut next = home.start(&[]).await;
    next.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": true}}})).await;
    next.load(&home, &session).await;
    let (_, updates) = next.turn(&session, "say").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "Hello, world");
    assert_eq!(home.get("../fake-log").unwrap(), "ended\nloaded\n");
    next.finish().await;
    agent.finish().await;
}

#[tokio::test]
async fn session_continues_in_the_agent_after_restart() {
    let home = home(&[]).await;
    let (mut agent, first) = session(&home, &[]).await;
    agent.turn(&first, "say it").await;
    agent.kill().await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let replayed = agent.load(&home, &first).await;
    assert_eq!(text(&replayed, "agent_message_chunk"), "Hello, world");
    let (_, updates) = agent.turn(&first, "history").await;
    // The agent replays an old answer, which the log has already.
    assert_eq!(text(&updates, "agent_message_chunk"), "loaded foreign-1 / history");
    // claude-agent-acp uses the user's settings only.
    let (_, updates) = agent.turn(&first, "meta").await;
    let meta: Value = serde_json::from_str(&text(&updates, "agent_message_chunk")).unwrap();
    assert_eq!(meta["claudeCode"]["options"], json!({"settingSources": ["user"], "strictMcpConfig": true}));
    let second = hosted(&mut agent, &home, "other").await;
    let (_, updates) = agent.turn(&second, "say").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "Hello, world");
    agent.finish().await;
}

#[tokio::test]
async fn results_are_shown_as_text() {
    let home = home(&[]).await;
    let ran = home.run(&["run", "--agent", "other", "raw"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    for (title, lines) in [("● tool 0 · ", " s\n  first line\n  second line\n"), ("● tool 1 · ", " s\n  name: a.txt\n  size: 3\n")]
    {
        assert!(ran.stderr.contains(title) && ran.stderr.contains(lines), "{ran:?}");
    }
    assert!(!ran.stderr.contains('{'), "{ran:?}");
}
