//! An editor with unsaved buffers, and a session that another process owns: the editor takes the
//! session if it is idle, because the owner cannot read the editor's unsaved buffers.

use serde_json::{Value, json};

use super::peer::{Kind, Peer};
use super::{assert_complete, home, kind, message, prompt, release, says, waits};
use harness::{Agent, Editor, Home, Manner, text, tool};

/// A server that owns an idle session, and an editor with an unsaved buffer of `a.txt`. The model of
/// the editor's process reads the file in each turn of the editor.
async fn editor_with_buffer(steps: Value) -> (Home, Peer, Agent, String) {
    let home = home();
    let file = home.put("a.txt", "saved\n");
    let mut server = Peer::start(Kind::Rest, &home, &home.script(steps), &["--mode", "auto"]).await;
    let session = server.new_session(&home).await;
    let read = json!({"tool_calls": [{"name": "read", "input": {"file_path": "a.txt"}}]});
    let model = home.script(json!([read, says("read"), says("for the server"), read, says("read")]));
    let mut agent = home.start(&["--model", &model]).await;
    agent.editor = Some(Editor::with_buffers(Manner::Buffers, &[(file, "typed\n")]));
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": Editor::capabilities()})).await;
    agent.load(&home, &session).await;
    (home, server, agent, session)
}

/// The texts of the model's answers in the session.
fn said(log: &[Value]) -> Vec<&str> {
    let by_model = log.iter().filter(|event| kind(event) == "message.completed" && event["body"]["role"] == "assistant");
    by_model.filter_map(|event| event["body"]["parts"][0]["text"].as_str()).collect()
}

/// The editor prompts: the model reads the unsaved buffer.
async fn assert_reads_buffer(agent: &mut Agent, session: &str) {
    let before = agent.editor.as_ref().unwrap().calls.len();
    let (stop, updates) = agent.turn(session, "look").await;
    assert!(stop == "end_turn" && text(&updates, "agent_message_chunk").ends_with("read"), "{updates:#?}");
    let call = tool(&updates, 0).to_string();
    assert!(call.contains("typed") && !call.contains("saved"), "{call}");
    assert_eq!(agent.editor.as_ref().unwrap().calls[before..], ["fs/read_text_file"]);
}

#[tokio::test]
async fn editor_takes_an_idle_session_for_its_unsaved_buffers() {
    let (home, mut server, mut agent, session) = editor_with_buffer(json!([says("base"), says("not asked")])).await;
    assert_reads_buffer(&mut agent, &session).await;
    // The prompt of the server's client runs in the process of the editor.
    assert_eq!(server.call("session/prompt", prompt(&session, "go")).await["stopReason"], "end_turn");
    assert_reads_buffer(&mut agent, &session).await;
    agent.finish().await;
    server.finish().await;
    let log = home.log(&session).await;
    assert_eq!(said(&log), ["base", "read", "for the server", "read"]);
    assert_complete(&log);
}

#[tokio::test]
async fn prompt_of_the_editor_waits_for_the_running_turn_of_the_owner() {
    let steps = json!([says("base"), waits(), says("after"), says("waited")]);
    let (home, mut server, mut agent, session) = editor_with_buffer(steps).await;
    server.call("_nuncio/session/message", message(&session, "go")).await;
    server.until(&session, "running", |_| home.get("started").is_some()).await;
    let id = agent.prompt(&session, "look").await;
    // A later call is answered after the prompt has reached the owner.
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).await;
    release(&home).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(agent.editor.as_ref().unwrap().calls, Vec::<String>::new());
    agent.finish().await;
    server.finish().await;
    let log = home.log(&session).await;
    assert_eq!(said(&log), ["base", "after", "waited"]);
    assert_complete(&log);
}
