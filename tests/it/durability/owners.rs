//! Two processes on one data directory: one process owns a session, the other follows its events
//! and takes over after the first has ended.

use serde_json::{Value, json};

use harness::{Agent, Home, session_updates, text};

/// A slow first answer; later processes have their own script.
fn slow() -> Value {
    json!([{"text": "abcdefghijklmnopqrstuvwxyz", "chunk_chars": 1, "delay_ms": 20}, {"text": "and more ".repeat(500), "chunk_chars": 1, "delay_ms": 20}])
}

async fn start(home: &Home) -> Agent {
    let mut agent = home.start(&["--model", &home.script(json!([{"expect": "abcdefg", "text": "taken over"}]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent
}

async fn takes_over(killed: bool) {
    let home = Home::new();
    let (mut first, session) = home.session(slow(), &[]).await;
    let running = first.prompt(&session, "go").await;
    first.until_update("agent_message_chunk").await;

    let mut second = start(&home).await;
    let listed = second.call("session/list", json!({})).await;
    assert_eq!(listed["sessions"][0]["sessionId"], json!(session));
    let before = second.frames.len();
    let replayed = second.load(&home, &session).await;
    assert_eq!(text(&replayed, "user_message_chunk"), "go");
    // Live events to the end of the turn.
    while text(&session_updates(&second.frames[before..], &session), "agent_message_chunk").len() < 26 {
        second.until_update("agent_message_chunk").await;
    }
    assert_eq!(text(&session_updates(&second.frames[before..], &session), "agent_message_chunk"), "abcdefghijklmnopqrstuvwxyz");
    // The owner makes the changes of the second process.
    second.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).await;
    first.until_update("current_mode_update").await;

    assert_eq!(first.answer(&running).await.unwrap()["stopReason"], "end_turn");
    if killed {
        first.prompt(&session, "a turn that is cut").await;
        first.until_update("agent_message_chunk").await;
        first.kill().await;
    } else {
        first.finish().await;
    }
    let (stop, updates) = second.turn(&session, "now mine").await;
    // The updates can include the last text of the killed process.
    let said = text(&updates, "agent_message_chunk");
    assert!(stop == "end_turn" && said.ends_with("taken over"), "{stop}: {said}");
    second.finish().await;
    harness::log::assert_gap_free(&home.log(&session).await);
}

#[tokio::test]
async fn second_process_follows_session_and_takes_over_after_close() {
    takes_over(false).await;
}

#[tokio::test]
async fn second_process_follows_session_and_takes_over_after_kill() {
    takes_over(true).await;
}

#[tokio::test]
async fn closed_session_is_available_to_other_process() {
    let home = Home::new();
    let (mut first, session) = home.session(json!([{"text": "abcdefg"}, {"text": "still first"}]), &[]).await;
    first.turn(&session, "go").await;
    let mut second = start(&home).await;
    assert_eq!(second.turn(&session, "to the first").await.0, "end_turn");
    first.call("session/close", json!({"sessionId": session})).await;
    assert_eq!(second.turn(&session, "mine").await.0, "end_turn");
    second.call("session/close", json!({"sessionId": session})).await;
    let replayed = first.load(&home, &session).await;
    assert_eq!(text(&replayed, "agent_message_chunk"), "abcdefgstill firsttaken over");
    first.finish().await;
    second.finish().await;
}

/// `nuncio run` forwards its prompt to the owner. With a flag that applies to its own process, it
/// takes the idle session.
#[tokio::test]
async fn run_forwards_its_prompt_or_takes_the_idle_session() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "abcdefg"}, {"text": "forwarded"}, {"text": "again"}]), &[]).await;
    agent.turn(&session, "go").await;
    let model = home.script(json!([{"text": "mine"}]));
    home.config(&format!("model = \"{model}\"\n"));
    for (flags, said) in [(&[][..], "forwarded\n"), (&["--sandbox", "off"], "mine\n")] {
        let ran = home.run(&[&["run", "--resume", &session, "go"], flags].concat(), "").await;
        assert_eq!((ran.code, ran.stdout.as_str()), (0, said), "{ran:?}");
    }
    let (stop, updates) = agent.turn(&session, "go").await;
    // The updates can include the last text of the command.
    let said = text(&updates, "agent_message_chunk");
    assert!(stop == "end_turn" && said.ends_with("again"), "{stop}: {said}");
    agent.finish().await;
}

/// Only a regular, small file names the owner of a session.
#[tokio::test]
async fn lock_file_that_is_a_pipe_does_not_block() {
    needs_sqlite!("has no lock files");
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "one"}]), &[]).await;
    agent.turn(&session, "go").await;
    agent.finish().await;
    let lock = home.data().join("locks").join(&session);
    rustix::fs::mkfifoat(rustix::fs::CWD, &lock, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let mut agent = start(&home).await;
    let listed = agent.call("session/list", json!({})).await;
    assert_eq!(listed["sessions"][0]["sessionId"], json!(session));
    agent.request("session/load", json!({"sessionId": session, "cwd": home.work(), "mcpServers": []})).await.unwrap_err();
    agent.finish().await;
}
