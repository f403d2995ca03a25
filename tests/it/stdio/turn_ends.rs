//! Ends of turns and sessions: no call starts after a cancel or a close, and the answer to a failed
//! turn comes last.

use std::time::Duration;

use serde_json::{Value, json};

use harness::{Agent, Home, bounded, session_updates, text};

/// Maximum time of each wait.
const BOUND: Duration = Duration::from_secs(8);

/// The answer to a request, which may be an error. Panics after `BOUND`.
async fn answered(agent: &mut Agent, id: &Value, what: &str) -> Result<Value, Value> {
    tokio::time::timeout(BOUND, agent.answer(id)).await.unwrap_or_else(|_| panic!("{what}: no answer in {BOUND:?}"))
}

#[tokio::test]
async fn waiting_call_does_not_start_after_cancel() {
    let home = Home::new();
    let bash = |command: String| json!({"name": "bash", "input": {"command": command}});
    let mut calls: Vec<Value> = (0..8).map(|_| bash("sleep 20".into())).collect();
    calls.extend((0..6).map(|number| bash(format!("touch f{number}"))));
    let (mut agent, session) = home.session(json!([{"tool_calls": calls}]), &["--mode", "auto"]).await;
    let id = agent.prompt(&session, "go").await;
    agent.until("a call that runs", |frame| frame["params"]["update"]["status"] == "in_progress").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(answered(&mut agent, &id, "the prompt").await.unwrap()["stopReason"], "cancelled");
    agent.finish().await;
    let began: Vec<String> = (0..6).map(|number| format!("f{number}")).filter(|name| home.get(name).is_some()).collect();
    assert_eq!(began, Vec::<String>::new(), "begun after the cancel");
    let log = home.log(&session).await;
    let ended = log.iter().filter(|event| event["body"]["type"] == "tool.completed");
    let ends: Vec<&Value> = ended.map(|event| &event["body"]["status"]).collect();
    assert_eq!(ends, vec!["failed"; 14]);
    assert_eq!(log.last().unwrap()["body"]["type"], "turn.cancelled");
}

#[tokio::test]
async fn prompt_right_after_close_is_refused_or_cancellable() {
    let home = Home::new();
    let bash = json!({"tool_calls": [{"name": "bash", "input": {"command": "sleep 60"}}]});
    let (mut agent, first) = home.session(json!([bash, {"text": "done"}]), &["--mode", "auto"]).await;
    let mut sessions = vec![first];
    for _ in 0..5 {
        sessions.push(agent.new_session(&home).await);
    }
    for session in &sessions {
        let close = agent.send("session/close", json!({"sessionId": session})).await;
        let prompt = agent.prompt(session, "go").await;
        answered(&mut agent, &close, "the close").await.unwrap();
        // The prompt is refused, or runs and is cancelled.
        agent.notify("session/cancel", json!({"sessionId": session})).await;
        if let Ok(ended) = answered(&mut agent, &prompt, "a cancelled prompt behind a close").await {
            assert_eq!(ended["stopReason"], "cancelled");
        }
    }
    agent.finish().await;
    for session in &sessions {
        let log = home.log(session).await;
        let count = |kind: &str| log.iter().filter(|event| event["body"]["type"] == kind).count();
        assert_eq!(count("turn.started"), count("turn.cancelled"), "{log:#?}");
        let model = home.script(json!([{"text": "mine"}]));
        let ran = home.run(&["run", "--model", &model, "--resume", session, "go"], "").await;
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "mine\n"), "{ran:?}");
    }
}

#[tokio::test]
async fn session_running_a_prompt_after_close_is_busy_in_other_processes() {
    let home = Home::new();
    let (mut agent, first) = home.session(json!([{"text": "slow", "delay_ms": 60_000}]), &[]).await;
    let mut sessions = vec![first];
    for _ in 0..5 {
        sessions.push(agent.new_session(&home).await);
    }
    for session in &sessions {
        let close = agent.send("session/close", json!({"sessionId": session})).await;
        let prompt = agent.prompt(session, "go").await;
        answered(&mut agent, &close, "the close").await.unwrap();
        // The first title of the session, or the answer to the prompt.
        let heard_of = |frame: &Value| {
            let of_session = frame["params"]["sessionId"] == *session;
            of_session && frame["params"]["update"]["sessionUpdate"] == "session_info_update" || frame["id"] == prompt
        };
        let known = agent.frames.iter().find(|frame| heard_of(frame)).cloned();
        let frame = match known {
            Some(frame) => frame,
            None => {
                let next = tokio::time::timeout(BOUND, agent.until("the prompt is heard of", heard_of));
                next.await.unwrap_or_else(|_| panic!("nothing is heard of the prompt for {BOUND:?}"))
            }
        };
        let runs = frame["id"] != prompt;
        let seen = bounded("the session is listed", async {
            loop {
                let listed = home.run(&["sessions", "list", "--json"], "").await.lines();
                let seen = listed.into_iter().find(|listed| listed["sessionId"] == *session);
                // A session is listed once its first message is committed.
                if seen.is_some() || !runs {
                    break seen.unwrap_or_default();
                }
            }
        });
        let seen = seen.await;
        assert_eq!(seen["status"] == "busy", runs, "runs: {runs}; another process: {seen}");
        agent.notify("session/cancel", json!({"sessionId": session})).await;
        let ended = answered(&mut agent, &prompt, "the prompt").await;
        assert_eq!(ended.is_ok(), runs, "{ended:?}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn failed_turn_is_answered_after_its_last_update() {
    let home = Home::new();
    let long: String = (0..20_000).map(|number| format!("word {number} to fill the pipe ")).collect();
    let steps = json!([
        {"text": long, "chunk_chars": 5000, "tool_calls": [{"name": "list"}, {"name": "list"}]},
        {"error": {"status": 400}},
    ]);
    let (mut agent, session) = home.session(steps, &[]).await;
    let before = agent.frames.len();
    let id = agent.prompt(&session, "go").await;
    // The client does not read until another process sees the end of the turn.
    let over = async { while home.log(&session).await.last().unwrap()["body"]["type"] != "turn.failed" {} };
    tokio::time::timeout(BOUND, over).await.expect("the turn fails");
    let error = answered(&mut agent, &id, "the prompt").await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("400"), "{error}");
    let answer = agent.frames.len();
    agent.call("session/list", json!({})).await;
    let late = session_updates(&agent.frames[answer..], &session);
    assert_eq!(late.len(), 0, "updates after the answer, the first of them {:.300}", late[0].to_string());
    let updates = session_updates(&agent.frames[before..], &session);
    assert_eq!(text(&updates, "agent_message_chunk"), long);
    agent.finish().await;
}
