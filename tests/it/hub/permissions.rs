//! Permission requests of hosted agents: rules, mode and clients decide; without an answer, the
//! call is denied.

use serde_json::{Value, json};

use super::claude_code::CLAUDE;
use super::codex::CODEX;
use super::{AGENT, bodies, home, home_of, session, setting, trust};
use harness::{Agent, Home, Reply, text};

/// Runs a turn that asks once. Returns the agent's answer in its text, and the number of questions
/// that reached the client.
async fn answered(agent: &mut Agent, session: &str, prompt: &str, replies: &[Reply]) -> (String, usize) {
    let before = agent.questions();
    agent.replies = replies.iter().cloned().collect();
    agent.otherwise = Reply::Error;
    let (_, updates) = agent.turn(session, prompt).await;
    (text(&updates, "agent_message_chunk"), agent.questions() - before)
}

#[tokio::test]
async fn client_answers_with_the_options_of_the_agent() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    let pick = |option: &str| Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": option}}));
    for (reply, said, made) in
        [(pick("no"), "[no]", false), (Reply::Error, "[no]", false), (pick("maybe"), "[no]", false), (pick("tool"), "[tool]", true)]
    {
        let result = answered(&mut agent, &session, "run touch made", std::slice::from_ref(&reply)).await;
        assert_eq!(result, (said.into(), 1), "{reply:?}");
        assert_eq!(home.get("made").is_some(), made, "{reply:?}");
    }
    let asked = agent.frames.iter().find(|frame| frame["method"] == "session/request_permission").unwrap();
    let params = &asked["params"];
    assert_eq!(
        (&params["toolCall"]["title"], &params["options"][1]["name"]),
        (&json!("touch made"), &json!("Always, for this server"))
    );
    agent.finish().await;
}

#[tokio::test]
async fn rules_and_mode_decide_without_a_question() {
    let home = Home::new();
    let rules = "[permissions]\nrules = [{tool = \"bash\", pattern = \"rm *\", policy = \"deny\"}, {tool = \"bash\", pattern = \"touch *\", policy = \"allow\"}]\n";
    home.config(&(rules.to_owned() + &setting("other", &[])));
    trust(&home).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    let mut results = Vec::new();
    for command in ["touch made", "rm made", "touch x; rm made"] {
        results.push(answered(&mut agent, &session, &format!("run {command}"), &[]).await);
    }
    assert_eq!(results, [("[yes]".into(), 0), ("[no]".into(), 0), ("[no]".into(), 0)]);
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).await;
    assert_eq!(answered(&mut agent, &session, "run echo hello", &[]).await, ("[yes]".into(), 0));
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await;
    assert_eq!(answered(&mut agent, &session, "run echo hello", &[]).await, ("[no]".into(), 0));
    agent.finish().await;
    let resolved = bodies(&home, &session, &["permission.resolved"]).await;
    let by: Vec<&str> = resolved.iter().map(|body| body["by"].as_str().unwrap()).collect();
    assert_eq!(by, ["rule", "rule", "rule", "mode", "mode"]);
}

#[tokio::test]
async fn repeated_question_gets_the_same_denial() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    let result = answered(&mut agent, &session, "again", &[Reply::Pick("reject_once")]).await;
    assert_eq!(result, ("[no][no][no]".into(), 1));
    agent.finish().await;
}

#[tokio::test]
async fn cancel_answers_the_open_question() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.otherwise = Reply::Never;
    let id = agent.prompt(&session, "run touch made").await;
    agent.until_question().await;
    agent.cancel(&session, &id).await;
    assert_eq!(text(&agent.updates(&session), "agent_message_chunk"), "[cancelled]");
    agent.finish().await;
    assert_eq!(home.get("made"), None);
    let resolved: Vec<Value> = bodies(&home, &session, &["permission.resolved"]).await;
    assert_eq!(resolved[0]["outcome"], "cancelled");
}

#[tokio::test]
async fn questions_that_are_open_at_the_end_of_a_turn_are_answered() {
    for (kind, script, answer) in [("acp", AGENT, "[cancelled]"), ("claude-code", CLAUDE, "[deny]"), ("codex", CODEX, "[cancel]")] {
        let home = home_of(kind, script, &[], "").await;
        let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
        agent.otherwise = Reply::Never;
        let id = agent.prompt(&session, "leave").await;
        agent.until_question().await;
        home.put("asked", "");
        assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "end_turn", "{kind}");
        let (_, updates) = agent.turn(&session, "left").await;
        assert_eq!(text(&updates, "agent_message_chunk"), answer.repeat(2), "{kind}");
        agent.finish().await;
        let resolved = bodies(&home, &session, &["permission.resolved"]).await;
        assert!(!resolved.is_empty() && resolved.iter().all(|body| body["outcome"] == "cancelled"), "{kind}: {resolved:?}");
    }
}

#[tokio::test]
async fn question_is_denied_without_a_client() {
    let home = home(&[]).await;
    let ran = home.run(&["run", "--agent", "other", "--mode", "ask", "run touch made"], "").await;
    assert!(ran.stdout.contains("[no]"), "{ran:?}");
    assert_eq!(home.get("made"), None);
}

#[tokio::test]
async fn agent_without_mode_plan_is_refused_in_mode_plan() {
    let home = home(&["no-plan"]).await;
    let (mut agent, session) = session(&home, &["--mode", "plan"]).await;
    assert_eq!(agent.failure(&session, "say").await["data"]["code"], "unsupported");
    agent.finish().await;
}
