//! Turns that go on after the end of a client that asked for it: an editor whose window is loaded
//! again, updated or closed.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use harness::steps::{asks, bash, calls_one};
use harness::{Agent, Editor, Home, Manner, Reply, bounded, gone, poll};

const WAITS: &str = "until [ -e go ]; do sleep 0.01; done";

/// An editor that asks for it, and its session. The agent has these flags.
async fn editor(home: &Home, steps: Value, flags: &[&str]) -> (Agent, String) {
    let model = home.script(steps);
    let mut agent = home.start(&[&["--model", &model], flags].concat()).await;
    agent.call("initialize", introduction(json!({}))).await;
    let session = agent.new_session(home).await;
    (agent, session)
}

fn introduction(capabilities: Value) -> Value {
    json!({"protocolVersion": 1, "clientCapabilities": capabilities, "_meta": {"nuncio": {"finishTurns": true}}})
}

/// Sends a message, which starts a turn.
async fn send(agent: &mut Agent, session: &str, text: &str) {
    let parts = [json!({"type": "text", "text": text})];
    agent.call("_nuncio/session/message", json!({"sessionId": session, "parts": parts})).await;
}

/// The next window of the editor, which follows the session.
async fn next_window(home: &Home, session: &str) -> Agent {
    let mut next = home.start(&[]).await;
    next.replies = [Reply::Never].into();
    next.call("initialize", introduction(json!({}))).await;
    next.load(home, session).await;
    next
}

/// The status of the last turn, and the types of all events.
async fn outcome(home: &Home, session: &str) -> (Value, Vec<String>) {
    let log = home.log(session).await;
    let types = log.iter().map(|event| event["body"]["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let end = log.iter().rfind(|event| event["body"]["type"].as_str().unwrap().starts_with("turn.")).unwrap().clone();
    (end["body"].clone(), types)
}

#[tokio::test]
async fn turn_and_its_queue_end_without_the_client() {
    let home = Home::new();
    let steps =
        json!([bash(&format!("touch begun; {WAITS}")), {"text": "The first."}, {"expect": "And then?", "text": "The second."}]);
    let (mut agent, session) = editor(&home, steps, &["--mode", "auto"]).await;
    send(&mut agent, &session, "go").await;
    home.appears("begun").await;
    send(&mut agent, &session, "And then?").await;
    agent.leave();
    let mut next = next_window(&home, &session).await;
    let row = next.call("session/list", json!({})).await["sessions"][0].clone();
    assert_eq!(row["_meta"]["nuncio"]["status"], "busy", "{row}");
    assert_eq!(row["_meta"]["nuncio"]["ownerPid"], agent.pid, "{row}");
    home.put("go", "");
    next.until("the second answer", |frame| frame.to_string().contains("The second.")).await;
    agent.ended().await;
    // The session can be used at once.
    next.finish().await;
    let (end, types) = outcome(&home, &session).await;
    assert_eq!(end["type"], "turn.completed");
    assert_eq!(types.iter().filter(|kind| *kind == "turn.completed").count(), 2, "{types:?}");
}

/// The next window works in the sessions that are idle, with its own files.
#[tokio::test]
async fn idle_sessions_are_for_the_next_window() {
    let home = Home::new();
    let steps = json!([bash(&format!("touch begun; {WAITS}")), {"text": "Done."}]);
    let (mut agent, session) = editor(&home, steps, &["--mode", "auto"]).await;
    let idle = agent.new_session(&home).await;
    send(&mut agent, &session, "go").await;
    home.appears("begun").await;
    agent.leave();
    let model = home.script(json!([{"text": "Here."}]));
    let mut next = home.start(&["--model", &model]).await;
    next.call("initialize", introduction(json!({}))).await;
    next.load(&home, &idle).await;
    let owner = async |next: &mut Agent| {
        let params = json!({"_meta": {"nuncio": {"empty": true}}});
        let rows = next.call("session/list", params).await["sessions"].clone();
        let row = rows.as_array().unwrap().iter().find(|row| row["sessionId"] == idle.as_str()).unwrap().clone();
        row["_meta"]["nuncio"]["ownerPid"].clone()
    };
    bounded("the idle session is released", async { while owner(&mut next).await == agent.pid {} }).await;
    send(&mut next, &idle, "hello").await;
    assert_eq!(owner(&mut next).await, next.pid);
    home.put("go", "");
    agent.ended().await;
    next.finish().await;
}

/// An editor whose settings name a fixed address starts its next process while the turn goes on.
#[tokio::test]
async fn address_of_the_http_server_is_free_for_the_next_process() {
    let home = Home::new();
    let model = home.script(json!([bash(&format!("touch begun; {WAITS}")), {"text": "Done."}]));
    let (mut agent, bridge) = home.start_with_bridge(&["--model", &model, "--mode", "auto"]).await;
    agent.call("initialize", introduction(json!({}))).await;
    let session = agent.new_session(&home).await;
    send(&mut agent, &session, "go").await;
    home.appears("begun").await;
    agent.leave();
    poll("the address is free", || std::net::TcpStream::connect(bridge.address).is_err()).await;
    let server = home.serve_at(&bridge.address.to_string(), &[]).await;
    home.put("go", "");
    agent.ended().await;
    assert_eq!(outcome(&home, &session).await.0["type"], "turn.completed");
    server.stop().await;
}

#[tokio::test]
async fn permission_request_waits_for_the_next_window() {
    let home = Home::new();
    let (mut agent, session) = editor(&home, json!([asks(), {"text": "Done."}]), &["--mode", "ask"]).await;
    agent.otherwise = Reply::Never;
    agent.send("_nuncio/session/message", json!({"sessionId": session, "parts": [{"type": "text", "text": "go"}]})).await;
    agent.until("the request", |frame| frame["method"] == "session/request_permission").await;
    agent.leave();
    let mut next = next_window(&home, &session).await;
    let open = next.call("_nuncio/permission/list", json!({"sessionId": session})).await["permissions"].clone();
    let id = open[0]["permissionId"].clone();
    assert!(id.is_string(), "{open}");
    assert!(open[0].get("deadlineMs").is_none(), "a request that waits has no deadline: {open}");
    next.call("_nuncio/permission/answer", json!({"permissionId": id, "outcome": "allow_once"})).await;
    next.until("the answer", |frame| frame.to_string().contains("Done.")).await;
    agent.ended().await;
    next.finish().await;
    assert_eq!(outcome(&home, &session).await.0["type"], "turn.completed");
}

/// The window has unsaved text, which its successor shows again.
#[tokio::test]
async fn file_with_unsaved_text_is_left_to_the_next_window() {
    let home = Home::new();
    let (file, _) = (home.put("a.txt", "saved\n"), home.put("b.txt", "saved\n"));
    let edit = |file: &str| calls_one("edit", json!({"file_path": file, "old_string": "saved", "new_string": "edited"}));
    let steps = json!([calls_one("read", json!({"file_path": "a.txt"})), bash(&format!("touch begun; {WAITS}")), edit("a.txt"),
        calls_one("write", json!({"file_path": "a.txt", "content": "new\n"})), calls_one("read", json!({"file_path": "b.txt"})), edit("b.txt"), {"text": "Done."}]);
    let model = home.script(steps);
    let mut agent = home.start(&["--model", &model, "--mode", "auto"]).await;
    agent.editor = Some(Editor::with_buffers(Manner::Buffers, &[(file, "typed\nsaved\n")]));
    agent.call("initialize", introduction(Editor::capabilities())).await;
    let session = agent.new_session(&home).await;
    send(&mut agent, &session, "go").await;
    agent.until("the command", |frame| frame.to_string().contains("touch begun")).await;
    home.appears("begun").await;
    agent.leave();
    home.put("go", "");
    agent.ended().await;
    assert_eq!(home.get("a.txt").as_deref(), Some("saved\n"));
    assert_eq!(home.get("b.txt").as_deref(), Some("edited\n"));
    let log = home.log(&session).await;
    let said = |index: usize| {
        let ended = log
            .iter()
            .filter(|event| event["body"]["type"].as_str().unwrap().starts_with("tool.") && !event["body"]["output"].is_null());
        ended.map(|event| event["body"]["output"].to_string()).nth(index).unwrap()
    };
    for index in [2, 3] {
        assert!(said(index).contains("unsaved text"), "{index}: {}", said(index));
    }
    assert_eq!(outcome(&home, &session).await.0["type"], "turn.completed");
}

#[tokio::test]
async fn turns_without_a_client_have_a_limit() {
    let home = Home::new();
    home.config("[acp]\nfinish_turns_s = 0\n");
    let (mut agent, session) = editor(&home, json!([bash(&format!("touch begun; {WAITS}"))]), &["--mode", "auto"]).await;
    send(&mut agent, &session, "go").await;
    home.appears("begun").await;
    agent.leave();
    agent.ended().await;
    assert_eq!(outcome(&home, &session).await.0["type"], "turn.cancelled");
}

#[tokio::test]
async fn signal_ends_turns_without_a_client() {
    let home = Home::new();
    let (mut agent, session) = editor(&home, json!([bash(&format!("touch begun; {WAITS}"))]), &["--mode", "auto"]).await;
    send(&mut agent, &session, "go").await;
    home.appears("begun").await;
    agent.leave();
    let next = next_window(&home, &session).await;
    kill_process(Pid::from_raw(agent.pid as i32).unwrap(), Signal::TERM).unwrap();
    agent.ended().await;
    next.finish().await;
    assert_eq!(outcome(&home, &session).await.0["type"], "turn.cancelled");
}

#[tokio::test]
async fn idle_agent_ends_with_its_client() {
    let home = Home::new();
    let (mut agent, session) = editor(&home, json!([{"text": "Done."}]), &[]).await;
    agent.turn(&session, "go").await;
    let marker = agent.marker.clone();
    agent.leave();
    agent.ended().await;
    gone(&marker).await;
}

/// The answer of `session/prompt` cannot be delivered, but its turn goes on.
#[tokio::test]
async fn turn_of_a_prompt_goes_on_too() {
    let home = Home::new();
    let (mut agent, session) =
        editor(&home, json!([bash(&format!("touch begun; {WAITS}")), {"text": "Done."}]), &["--mode", "auto"]).await;
    agent.send("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})).await;
    home.appears("begun").await;
    agent.leave();
    home.put("go", "");
    agent.ended().await;
    assert_eq!(outcome(&home, &session).await.0["type"], "turn.completed");
}
