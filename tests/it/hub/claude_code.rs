//! Claude Code as a hosted agent, played by a script.

use serde_json::{Value, json};

use super::turn;
use super::{bodies, home_of, session};
use harness::{Home, Reply, gone, session_updates, text, tool};

pub const CLAUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hub/claude.py");

async fn home(flags: &[&str]) -> Home {
    home_of("claude-code", CLAUDE, flags, "").await
}

#[tokio::test]
async fn messages_thoughts_and_usage_are_forwarded() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (stop, updates) = agent.turn(&session, "say it").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "Hello, world"));
    assert_eq!(text(&updates, "agent_thought_chunk"), "thinking");
    let (_, updates) = agent.turn(&session, "whole").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "never streamed");
    let updates = session_updates(&agent.frames, &session);
    let last = updates.iter().rfind(|update| update["sessionUpdate"] == "available_commands_update").unwrap();
    assert_eq!(last["availableCommands"][0]["name"], "web");
    agent.finish().await;
    let usage = bodies(&home, &session, &["usage.updated"]).await;
    assert_eq!((&usage[0]["inputTokens"], &usage[0]["contextTokens"]), (&json!(100), &json!(100)));
    // Claude Code reports the cost of the process.
    assert!(usage[0]["cost"] == usage[1]["cost"] && !usage[0]["cost"].is_null(), "{usage:?}");
}

#[tokio::test]
async fn client_decides_about_calls() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    let pick = |option: &str| Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": option}}));
    for (prompt, reply, said, status, made) in [
        ("run touch made", pick("reject_once"), "[deny]", "failed", false),
        ("run touch made", Reply::Error, "[deny]", "failed", false),
        ("unannounced touch made", pick("allow_once"), "[allow]", "completed", true),
        // The rule counts for the session, and is not saved in the project.
        ("run echo made", pick("allow_always"), "[allow session]", "completed", true),
    ] {
        let (answer, updates) = turn(&mut agent, &session, prompt, &[reply]).await;
        let call = tool(&updates, 0);
        assert_eq!((answer.as_str(), &call["status"]), (said, &json!(status)), "{prompt}");
        assert_eq!((&call["kind"], home.get("made").is_some()), (&json!("execute"), made), "{prompt}");
    }
    let asked = agent.frames.iter().find(|frame| frame["method"] == "session/request_permission").unwrap();
    assert_eq!(asked["params"]["toolCall"]["title"], "touch made");
    agent.finish().await;
    let ended = bodies(&home, &session, &["tool.completed"]).await;
    assert_eq!(ended.last().unwrap()["output"][0]["text"], "made\n");
}

#[tokio::test]
async fn rules_modes_and_repeated_questions_are_decided_without_the_client() {
    let home = home(&["no-suggestions"]).await;
    home.put("a.txt", "old");
    let rules = "[permissions]\nrules = [{tool = \"bash\", pattern = \"echo *\", policy = \"allow\"}]\n";
    home.config(&(home.config_text() + rules));
    let (mut agent, session) = session(&home, &["--mode", "accept-edits"]).await;
    assert_eq!(turn(&mut agent, &session, "run echo x", &[]).await.0, "[allow]");
    let (said, updates) = turn(&mut agent, &session, "edit", &[]).await;
    let call = tool(&updates, 0);
    assert_eq!((said.as_str(), &call["kind"], &call["content"][0]["newText"]), ("[allow]", &json!("edit"), &json!("new")));
    assert_eq!(turn(&mut agent, &session, "question", &[]).await.0, "[deny]");
    assert_eq!(turn(&mut agent, &session, "again", &[Reply::Pick("reject_once")]).await.0, "[deny][deny][deny]");
    let asked = agent.frames.iter().find(|frame| frame["method"] == "session/request_permission").unwrap();
    assert_eq!(asked["params"]["options"].as_array().unwrap().len(), 2);
    agent.finish().await;
    assert_eq!(bodies(&home, &session, &["permission.requested"]).await.len(), 1);
}

#[tokio::test]
async fn withdrawn_question_ends() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.otherwise = Reply::Never;
    let id = agent.prompt(&session, "withdrawn").await;
    agent.until_question().await;
    home.put("asked", "");
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "end_turn");
    agent.finish().await;
    assert_eq!(bodies(&home, &session, &["permission.resolved"]).await[0]["outcome"], "cancelled");
}

#[tokio::test]
async fn calls_of_subagents_plan_and_unknown_messages() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (_, updates) = agent.turn(&session, "subagent").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "done");
    let (task, read) = (tool(&updates, 0), tool(&updates, 1));
    assert_eq!((&task["title"], &read["title"]), (&json!("Task look"), &json!("Read /a")));
    assert_eq!(task["content"][0]["content"]["text"], "result of task-1");
    let plan = updates.iter().find(|update| update["sessionUpdate"] == "plan").unwrap();
    assert_eq!(plan["entries"][0]["content"], "first");
    let (stop, updates) = agent.turn(&session, "garbage").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "still here"));
    agent.finish().await;
}

#[tokio::test]
async fn mode_of_the_agent_follows_the_mode_plan() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let mut found = Vec::new();
    for mode in ["plan", "ask"] {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        found.push(turn(&mut agent, &session, "mode", &[]).await.0);
    }
    assert_eq!(found, ["plan", "default"]);
    agent.finish().await;
}

#[tokio::test]
async fn arguments_have_servers_and_settings_without_secrets() {
    let home = home_of("claude-code", CLAUDE, &[], "config = '{\"model\": \"${CHOSEN}\"}'\n").await;
    home.env("CHOSEN", "mock-2");
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let servers = json!([{"name": "docs", "command": "/bin/true", "args": ["-x"], "env": [{"name": "A", "value": "secret"}]}]);
    let params = json!({"cwd": home.work(), "mcpServers": servers, "_meta": {"nuncio": {"agent": "other"}}});
    let session = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
    let arguments: Vec<String> = serde_json::from_str(&turn(&mut agent, &session, "arguments", &[]).await.0).unwrap();
    assert!(!arguments.iter().any(|argument| argument.contains("mock-2")), "{arguments:?}");
    let after = |name: &str| &arguments[arguments.iter().position(|argument| argument == name).unwrap() + 1];
    assert_eq!(after("--setting-sources"), "user");
    // The settings are in a private file while the process runs.
    assert_eq!(turn(&mut agent, &session, "settings", &[]).await.0, format!("[{}, {{\"model\": \"mock-2\"}}]", 0o600));
    assert!(std::fs::exists(after("--settings")).unwrap());
    let docs = json!({"type": "stdio", "command": "/bin/true", "args": ["-x"], "env": {"A": "${NUNCIO_MCP_0}"}});
    assert_eq!(serde_json::from_str::<Value>(after("--mcp-config")).unwrap()["mcpServers"]["docs"], docs);
    assert!(arguments.contains(&"--strict-mcp-config".to_owned()), "{arguments:?}");
    assert_eq!(turn(&mut agent, &session, "env NUNCIO_MCP_0", &[]).await.0, "secret");
    agent.finish().await;
    assert!(!std::fs::exists(after("--settings")).unwrap());
}

#[tokio::test]
async fn failures_have_a_cause() {
    for (flags, text, code, message) in [
        (&["broken"][..], "say", "agent_unavailable", "its process ended with exit code 1: unknown option"),
        // The result has the subtype `success`.
        (&[], "error", "model_error", "API Error: 400 bad request"),
        (&[], "login", "unauthenticated", "Please run /login"),
        (&[], "silent", "model_error", "it ended the turn without an answer"),
        (&[], "crash", "agent_unavailable", "its process ended with exit code 3: out of memory"),
    ] {
        let home = home(flags).await;
        let (mut agent, session) = session(&home, &[]).await;
        let failed = agent.failure(&session, text).await;
        assert_eq!(failed["data"]["code"], code, "{failed}");
        assert!(failed["message"].as_str().unwrap().starts_with(&format!("agent other: {message}")), "{failed}");
        agent.finish().await;
    }
}

#[tokio::test]
async fn retry_and_refusal() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    assert_eq!(agent.turn(&session, "retry").await.0, "end_turn");
    assert_eq!(agent.turn(&session, "aborted").await.0, "refusal");
    agent.finish().await;
    let notices = bodies(&home, &session, &["notice"]).await;
    assert!(notices.iter().any(|notice| notice["description"] == "attempt 1 of 10: overloaded (status 529)"), "{notices:?}");
}

#[tokio::test]
async fn cancelled_turn_ends_and_the_next_one_works() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let id = agent.prompt(&session, "wait").await;
    agent.until_update("tool_call").await;
    agent.cancel(&session, &id).await;
    assert_eq!(tool(&agent.updates(&session), 0)["status"], "failed");
    assert_eq!(turn(&mut agent, &session, "say", &[]).await.0, "Hello, world");
    agent.finish().await;
}

#[tokio::test]
async fn cancel_answers_the_open_question() {
    let home = home(&["deaf"]).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.otherwise = Reply::Never;
    let id = agent.prompt(&session, "run touch made").await;
    agent.until_question().await;
    agent.cancel(&session, &id).await;
    agent.finish().await;
    assert_eq!(home.get("made"), None);
    assert_eq!(bodies(&home, &session, &["permission.resolved"]).await[0]["outcome"], "cancelled");
}

#[tokio::test]
async fn process_that_ignores_an_interrupt_is_ended_with_its_descendants() {
    let home = home(&["deaf"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let id = agent.prompt(&session, "fork").await;
    agent.until_update("tool_call").await;
    agent.cancel(&session, &id).await;
    let (said, _) = turn(&mut agent, &session, "history", &[]).await;
    assert!(said.starts_with("resumed "), "{said}");
    let marker = agent.marker.clone();
    agent.kill().await;
    gone(&marker).await;
}

#[tokio::test]
async fn session_is_resumed_or_reported_as_lost() {
    let home = home(&[]).await;
    let (mut agent, first) = session(&home, &[]).await;
    agent.turn(&first, "say it").await;
    agent.kill().await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.load(&home, &first).await;
    let (said, _) = turn(&mut agent, &first, "history", &[]).await;
    agent.finish().await;
    let foreign = bodies(&home, &first, &["session.updated"]).await;
    let id = foreign.iter().find_map(|body| body["agentSession"].as_str()).unwrap();
    assert_eq!(said, format!("resumed {id} / history"));
    let home = self::home(&["forgets"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.failure(&session, "crash").await;
    let lost = agent.failure(&session, "say").await;
    assert_eq!(lost["data"]["hint"], "create a new session");
    assert!(lost["message"].as_str().unwrap().contains("cannot be resumed: No conversation found"), "{lost}");
    agent.finish().await;
}

#[tokio::test]
async fn check_reports_the_version_and_the_modes() {
    let home = home(&[]).await;
    let ran = home.run(&["agents", "check", "--json"], "").await;
    assert!(ran.stdout.contains("\"mode\"") && !ran.stdout.contains("problem\":\""), "{ran:?}");
}

#[tokio::test]
async fn models_are_an_option() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    assert_eq!(turn(&mut agent, &session, "model", &[]).await.0, "m-1");
    let set = json!({"sessionId": session, "configId": "agent.model", "value": "deep"});
    let options = agent.call("session/set_config_option", set).await;
    let models = options["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == "agent.model").unwrap();
    assert_eq!((&models["currentValue"], &models["options"][1]["name"]), (&json!("default"), &json!("Deep")));
    assert_eq!(turn(&mut agent, &session, "model", &[]).await.0, "deep");
    agent.finish().await;
}
