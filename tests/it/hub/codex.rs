//! Codex as a hosted agent, played by a script.

use serde_json::{Value, json};

use super::turn;
use super::turn_ends::running;
use super::{bodies, home_of, session};
use harness::{Home, Reply, text, tool};

pub const CODEX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hub/codex.py");

async fn home(flags: &[&str]) -> Home {
    home_of("codex", CODEX, flags, "").await
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
    agent.turn(&session, "say it").await;
    agent.finish().await;
    let usage = bodies(&home, &session, &["usage.updated"]).await;
    let tokens: Vec<&Value> = usage.iter().map(|body| &body["inputTokens"]).collect();
    assert_eq!(tokens, [100, 100]);
    assert_eq!((&usage[0]["contextTokens"], &usage[0]["contextWindow"]), (&json!(101), &json!(258_400)));
    // Codex repeats its warning in each turn.
    assert_eq!(bodies(&home, &session, &["notice"]).await.len(), 1);
}

#[tokio::test]
async fn client_decides_about_commands() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    let pick = |option: &str| Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": option}}));
    for (prompt, reply, said, status, made) in [
        ("run touch made", pick("decline"), "[decline]", "failed", false),
        ("run touch made", Reply::Error, "[decline]", "failed", false),
        ("unannounced touch made", pick("decline"), "[decline]", "failed", false),
        ("unannounced touch made", pick("accept"), "[accept]", "completed", true),
        ("run echo made", pick("acceptForSession"), "[acceptForSession]", "completed", true),
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
async fn rules_and_repeated_questions_are_decided_without_the_client() {
    let home = home(&[]).await;
    home.config(&(home.config_text() + "[permissions]\nrules = [{tool = \"bash\", pattern = \"touch *\", policy = \"allow\"}]\n"));
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    assert_eq!(turn(&mut agent, &session, "run touch made", &[]).await.0, "[accept]");
    agent.finish().await;
    let home = self::home(&[]).await;
    let (mut agent, session) = super::session(&home, &["--mode", "ask"]).await;
    assert_eq!(turn(&mut agent, &session, "again", &[Reply::Pick("reject_once")]).await.0, "[decline][decline][decline]");
    agent.finish().await;
    assert_eq!(bodies(&home, &session, &["permission.requested"]).await.len(), 1);
}

#[tokio::test]
async fn changes_of_files_are_shown_as_differences() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    let (said, updates) = turn(&mut agent, &session, "edit", &[Reply::Pick("allow_once")]).await;
    let call = tool(&updates, 0);
    assert_eq!((said.as_str(), &call["kind"], &call["status"]), ("[accept]", &json!("edit"), &json!("completed")));
    let path = |name: &str| json!(home.work().join(name));
    assert_eq!(call["content"][0]["path"], path("new.txt"));
    let second = &call["content"][1];
    assert_eq!(
        (&second["path"], &second["oldText"], &second["newText"]),
        (&path("a.txt"), &json!("same\nold\n"), &json!("same\nnew\n"))
    );
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "accept-edits"})).await;
    assert_eq!(turn(&mut agent, &session, "edit", &[]).await.0, "[accept]");
    agent.finish().await;
}

#[tokio::test]
async fn destination_of_a_move_is_evaluated() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &["--mode", "accept-edits"]).await;
    assert_eq!(turn(&mut agent, &session, "move b.txt", &[]).await.0, "[accept]");
    let (said, updates) = turn(&mut agent, &session, "move ../b.txt", &[Reply::Pick("reject_once")]).await;
    let call = tool(&updates, 0);
    assert_eq!((said.as_str(), &call["title"]), ("[decline]", &json!("Edit a.txt → ../b.txt")));
    assert_eq!(call["locations"][1]["path"], json!(home.work().join("../b.txt")));
    agent.finish().await;
}

#[tokio::test]
async fn tools_plan_and_unknown_messages() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    let (said, updates) = turn(&mut agent, &session, "tools", &[Reply::Pick("allow_always")]).await;
    assert_eq!(said, "accept session decline {'permissions': {}}");
    let (mcp, web) = (tool(&updates, 0), tool(&updates, 1));
    assert_eq!((&mcp["title"], &mcp["content"][0]["content"]["text"]), (&json!("docs: find"), &json!("found")));
    assert_eq!((&web["title"], &web["status"]), (&json!("Search the web: weather"), &json!("completed")));
    let plan = updates.iter().find(|update| update["sessionUpdate"] == "plan").unwrap();
    assert_eq!((&plan["entries"][0]["content"], &plan["entries"][0]["status"]), (&json!("first"), &json!("in_progress")));
    let (stop, updates) = agent.turn(&session, "garbage").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "still here"));
    agent.finish().await;
}

#[tokio::test]
async fn mode_plan_is_a_sandbox_without_writing() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let mut found = Vec::new();
    for mode in ["plan", "ask"] {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        let (_, updates) = agent.turn(&session, "settings").await;
        let said: Value = serde_json::from_str(&text(&updates, "agent_message_chunk")).unwrap();
        found.push((said["approvalPolicy"].clone(), said["sandboxPolicy"]["type"].clone()));
    }
    assert_eq!(found, [(json!("never"), json!("readOnly")), (json!("untrusted"), json!("readOnly"))]);
    agent.finish().await;
}

#[tokio::test]
async fn thread_gets_servers_and_configuration() {
    let config = "config = '''{\"sandbox_mode\": \"danger-full-access\", \"model\": \"${CHOSEN}\"}'''\n";
    let home = home_of("codex", CODEX, &[], config).await;
    home.env("CHOSEN", "mock-2");
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let servers = json!([{"name": "docs", "command": "/bin/true", "args": ["-x"], "env": [{"name": "A", "value": "1"}]}]);
    let params = json!({"cwd": home.work(), "mcpServers": servers, "_meta": {"nuncio": {"agent": "other"}}});
    let session = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
    let (_, updates) = agent.turn(&session, "history").await;
    let said = text(&updates, "agent_message_chunk");
    let given: Value = serde_json::from_str(said.split(" / ").next().unwrap().strip_prefix("thread/start ").unwrap()).unwrap();
    let docs = json!({"command": "/bin/true", "args": ["-x"], "env": {"A": "1"}});
    assert_eq!((&given["config"]["model"], &given["config"]["mcp_servers"]["docs"]), (&json!("mock-2"), &docs));
    assert_eq!((&given["sandbox"], &given["approvalPolicy"]), (&json!("danger-full-access"), &json!("untrusted")));
    agent.finish().await;
}

#[tokio::test]
async fn failures_have_a_cause() {
    for (flags, prompt, code, message) in [
        (
            &["broken"][..],
            "say",
            "agent_unavailable",
            "its process ended with exit code 1: config: approval_policy is no longer supported",
        ),
        (&[], "error", "model_error", "quota exceeded: until Monday"),
        (&[], "login", "unauthenticated", "not logged in"),
        (&[], "silent", "model_error", "the model said 400"),
        (&[], "crash", "agent_unavailable", "its process ended with exit code 3: out of memory"),
    ] {
        let home = home(flags).await;
        let (mut agent, session) = session(&home, &[]).await;
        let failed = agent.failure(&session, prompt).await;
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
    assert!(notices.iter().any(|notice| notice["description"] == "stream disconnected"), "{notices:?}");
}

#[tokio::test]
async fn cancelled_turn_leaves_no_command() {
    for (flags, prompt) in [(&[][..], "wait"), (&[], "fork"), (&["deaf"], "fork")] {
        let home = home(flags).await;
        let (mut agent, session) = session(&home, &[]).await;
        let id = agent.prompt(&session, prompt).await;
        agent.until_update("tool_call").await;
        agent.cancel(&session, &id).await;
        assert_eq!(tool(&agent.updates(&session), 0)["status"], "failed", "{flags:?} {prompt}");
        // Codex leaves the commands of an interrupted turn running, so its process is ended.
        let (_, updates) = agent.turn(&session, "history").await;
        assert_eq!(running(&agent.marker, "sleep 600"), [0; 0], "{flags:?} {prompt}");
        assert!(text(&updates, "agent_message_chunk").starts_with("thread/resume {\"threadId\": \"thread-1\""), "{updates:?}");
        agent.finish().await;
    }
}

#[tokio::test]
async fn cancel_answers_the_open_question() {
    let home = home(&[]).await;
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
async fn thread_is_resumed_or_reported_as_lost() {
    let home = home(&[]).await;
    let (mut agent, first) = session(&home, &[]).await;
    agent.turn(&first, "say it").await;
    agent.kill().await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.load(&home, &first).await;
    let (_, updates) = agent.turn(&first, "history").await;
    assert!(text(&updates, "agent_message_chunk").starts_with("thread/resume {\"threadId\": \"thread-1\""), "{updates:?}");
    agent.finish().await;
    let home = self::home(&["forgets"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.failure(&session, "crash").await;
    let lost = agent.failure(&session, "say").await;
    assert_eq!(lost["data"]["hint"], "create a new session");
    assert!(
        lost["message"].as_str().unwrap().contains("cannot be resumed: agent other: thread/resume: no rollout found"),
        "{lost}"
    );
    agent.finish().await;
}

#[tokio::test]
async fn check_reports_the_version_and_the_modes() {
    let home = home(&[]).await;
    let ran = home.run(&["agents", "check", "--json"], "").await;
    assert!(ran.stdout.contains("9.8.7") && ran.stdout.contains("mode"), "{ran:?}");
}

#[tokio::test]
async fn models_and_efforts_are_options() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (_, updates) = agent.turn(&session, "chosen").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "None None");
    let set = |option: &str, value: &str| json!({"sessionId": session, "configId": option, "value": value});
    // The option, its value, what Codex gets, and then the effort that is shown.
    for (option, value, given, effort) in [
        ("agent.effort", "high", "None high", Some("high")),
        ("agent.model", "deep", "deep high", Some("high")),
        ("agent.model", "plain", "plain none", None),
        ("agent.model", "mock", "mock high", Some("high")),
    ] {
        agent.call("session/set_config_option", set(option, value)).await;
        let (_, updates) = agent.turn(&session, "chosen").await;
        assert_eq!(text(&updates, "agent_message_chunk"), given, "{value}");
        let options = agent.call("session/set_config_option", set("agent.mode", "default")).await;
        let options = options["configOptions"].as_array().unwrap();
        let shown =
            options.iter().find(|option| option["id"] == "agent.effort").map(|option| option["currentValue"].as_str().unwrap());
        assert_eq!(shown, effort, "{value}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn message_steers_the_running_turn_or_follows_it() {
    for (flags, said, turns) in [(&[][..], "waiting[more]", 1), (&["unsteerable"], "waiting[steer me]thread/start", 2)] {
        let home = home(flags).await;
        let (mut agent, session) = session(&home, &[]).await;
        let before = agent.frames.len();
        let prompt = agent.prompt(&session, "steer me").await;
        agent.until_update("agent_message_chunk").await;
        let params = json!({"sessionId": session, "parts": [{"type": "text", "text": "more"}], "delivery": "steer"});
        agent.call("_nuncio/session/message", params).await;
        agent.answer(&prompt).await.unwrap();
        crate::queue::until_idle(&mut agent, &session).await;
        let text = text(&harness::session_updates(&agent.frames[before..], &session), "agent_message_chunk");
        assert!(text.starts_with(said), "{text}");
        agent.finish().await;
        assert_eq!(bodies(&home, &session, &["turn.started"]).await.len(), turns, "{flags:?}");
        let messages = bodies(&home, &session, &["message.completed"]).await;
        let users: Vec<&Value> =
            messages.iter().filter(|body| body["role"] == "user").map(|body| &body["parts"][0]["text"]).collect();
        assert_eq!(users, ["steer me", "more"], "{flags:?}");
    }
}
