//! nuncio hosts nuncio over ACP.

use serde_json::{Value, json};

use super::turn_ends::running;
use super::{allowed, bodies, hosted, trust};
use harness::steps::bash;
use harness::{Agent, Home, Reply, poll, text, tool};

/// Settings for nuncio as the hosted agent `[agents.NAME]`, with a scripted model.
pub fn native(home: &Home, name: &str, steps: Value) -> String {
    let script = home.script(steps);
    let script = script.strip_prefix("scripted:").unwrap();
    let program = harness::program();
    format!("[agents.{name}]\nkind = \"fake\"\ncommand = [\"{program}\"]\nconfig = \"{script}\"\n")
}

/// Settings for nuncio as the hosted agent `inner`, with a scripted model.
pub fn inner(home: &Home, steps: Value) -> String {
    allowed(&["inner"]) + &native(home, "inner", steps)
}

async fn start(steps: Value) -> (Home, Agent, String) {
    let home = Home::new();
    home.config(&inner(&home, steps));
    trust(&home).await;
    let mut agent = home.start(&["--mode", "ask"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = hosted(&mut agent, &home, "inner").await;
    (home, agent, session)
}

#[tokio::test]
async fn calls_and_permissions_pass_through_both() {
    let steps = json!([bash("echo made > made"), {"text": "done"}, bash("echo no > refused"), {"text": "stopped"}]);
    let (home, mut agent, session) = start(steps).await;
    agent.replies = [Reply::Pick("allow_once"), Reply::Pick("reject_once")].into();
    let (stop, updates) = agent.turn(&session, "first").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "done"));
    assert_eq!((&tool(&updates, 0)["status"], home.get("made").as_deref()), (&json!("completed"), Some("made\n")));
    let (_, updates) = agent.turn(&session, "second").await;
    assert_eq!((&tool(&updates, 0)["status"], home.get("refused")), (&json!("failed"), None));
    // The hosted nuncio resumes its session in a new process, in which its script starts again.
    agent.finish().await;
    let mut agent = home.start(&["--mode", "ask"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.load(&home, &session).await;
    agent.replies = [Reply::Pick("allow_once")].into();
    let (_, updates) = agent.turn(&session, "third").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "done");
    agent.finish().await;
    assert_eq!(bodies(&home, &session, &["permission.requested"]).await.len(), 3);
}

/// The list of sessions names the agent of a session, also in another process.
#[tokio::test]
async fn list_of_sessions_names_the_agent() {
    let (home, mut agent, session) = start(json!([{"text": "done"}])).await;
    agent.turn(&session, "go").await;
    let mut other = home.start(&[]).await;
    other.call("initialize", json!({"protocolVersion": 1})).await;
    for agent in [&mut agent, &mut other] {
        let listed = agent.call("session/list", json!({})).await["sessions"].clone();
        let found = listed.as_array().unwrap().iter().find(|one| one["sessionId"] == session).unwrap();
        assert_eq!(found["_meta"]["nuncio"]["agent"], "inner", "{listed}");
    }
    other.finish().await;
    agent.finish().await;
}

#[tokio::test]
async fn cancel_reaches_the_command_of_the_hosted_agent() {
    let (home, mut agent, session) = start(json!([bash("sleep 600")])).await;
    let id = agent.prompt(&session, "x").await;
    agent.until("the start", |frame| frame["params"]["update"]["status"] == "in_progress").await;
    poll("the command", || !running(&agent.marker, "sleep 600").is_empty()).await;
    agent.cancel(&session, &id).await;
    assert_eq!(running(&agent.marker, "sleep 600"), [0; 0]);
    agent.finish().await;
    // The hosted nuncio got the cancel: it was not killed during the turn.
    let updated = bodies(&home, &session, &["session.updated"]).await;
    let inner = updated.iter().find_map(|body| body["agentSession"].as_str()).unwrap();
    let data = home.data().join("agents/inner").display().to_string();
    let shown = home.run(&["sessions", "show", inner, "--json", "--store", "sqlite", "--data-dir", &data], "").await;
    let mut types: Vec<Value> = shown.lines().into_iter().map(|mut event| event["body"]["type"].take()).collect();
    types.retain(|kind| kind.as_str().unwrap().starts_with("turn."));
    assert_eq!(types, ["turn.started", "turn.cancelled"]);
}

#[tokio::test]
async fn task_delegates_to_a_hosted_agent_down_to_the_depth_limit() {
    // Each level delegates again. The levels of the hosted nuncio run the same script.
    let deeper = json!([{"tool_calls": [{"name": "task", "input": {"prompt": "deeper"}}]}, {"text": "inner answer"}]);
    let home = Home::new();
    home.config(&inner(&home, deeper));
    trust(&home).await;
    let task = json!({"tool_calls": [{"name": "task", "input": {"prompt": "go", "agent": "inner"}}]});
    let (mut agent, session) = home.session(json!([task, {"text": "done"}]), &[]).await;
    let (_, updates) = agent.turn(&session, "delegate").await;
    assert_eq!(tool(&updates, 0)["status"], "completed", "{}", tool(&updates, 0));
    agent.finish().await;
    let result = &bodies(&home, &session, &["tool.completed"]).await[0];
    assert_eq!(result["output"][0]["text"], "inner answer");
    // The sessions of the hosted nuncio are in its own data directory.
    let data = home.data().join("agents/inner");
    let started = bodies(&home, &session, &["child.started"]).await;
    let inner = bodies(&home, started[0]["childSessionId"].as_str().unwrap(), &["session.updated"]).await;
    let mut next = inner.iter().find_map(|body| body["agentSession"].as_str().map(String::from));
    let (mut levels, mut refused) = (0, 0);
    while let Some(id) = next {
        let shown =
            home.run(&["sessions", "show", &id, "--json", "--store", "sqlite", "--data-dir", data.to_str().unwrap()], "").await;
        refused += shown.stdout.matches("at most 3 levels of subagents").count();
        levels += 1;
        let child = shown.lines().into_iter().find(|event| event["body"]["type"] == "child.started");
        next = child.and_then(|event| event["body"]["childSessionId"].as_str().map(String::from));
    }
    assert_eq!((levels, refused > 0), (2, true));
}
