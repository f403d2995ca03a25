//! The end of the input, and clients that do not read.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncBufReadExt;

use harness::{Home, bounded, session_updates, text};

#[tokio::test]
async fn end_of_input_ends_turn() {
    let home = Home::new();
    let bash = json!({"tool_calls": [{"name": "bash", "input": {"command": "echo here; sleep 60"}}]});
    for (step, shown) in
        [(json!({"text": "slow words", "chunk_chars": 1, "delay_ms": 100}), "agent_message_chunk"), (bash, "tool_call_update")]
    {
        let (mut agent, session) = home.session(json!([step]), &["--mode", "auto"]).await;
        let id = agent.prompt(&session, "go").await;
        agent.until_update(shown).await;
        let before = Instant::now();
        let frames = agent.finish().await;
        assert!(before.elapsed() < Duration::from_secs(5), "{shown}: {:?}", before.elapsed());
        let answer = frames.iter().find(|frame| frame["id"] == id).expect("an answer");
        assert_eq!(answer["result"]["stopReason"], "cancelled", "{shown}");
        let log = home.log(&session).await;
        assert_eq!(log.last().unwrap()["body"]["type"], "turn.cancelled", "{shown}");
    }
}

/// Kilobytes of a line of /proc/PID/status.
fn memory(pid: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let found = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
    found.trim_matches(|character: char| !character.is_ascii_digit()).parse().unwrap()
}

/// Twenty sessions stream a thousand deltas each, with a pause between deltas, so that the log's
/// writer does not merge them.
const SESSIONS: usize = 20;
const DELTAS: usize = 1000;

#[tokio::test]
async fn client_that_stops_reading_costs_no_memory_and_loses_no_output() {
    let home = Home::new();
    let pipe = home.work().join("through");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let said = tokio::net::unix::pipe::OpenOptions::new().read_write(true).open_receiver(&pipe).unwrap();
    let mut said = tokio::io::BufReader::new(said).lines();
    let streamed: String = ('a'..='z').cycle().take(DELTAS).collect();
    let streams = json!({"text": streamed, "chunk_chars": 1, "delay_ms": 5, "tool_calls": [
        {"name": "bash", "input": {"command": "echo all is said > through"}},
    ]});
    let steps = json!([streams, {"text": "one"}, streams, {"text": "two"}]);
    let (mut agent, first) = home.session(steps, &["--mode", "auto"]).await;
    let mut sessions = vec![first];
    while sessions.len() < SESSIONS {
        sessions.push(agent.new_session(&home).await);
    }
    let (mut before, mut seen) = (0, 0);
    // The first round has a client that reads, so the second round measures only the growth of
    // memory for a client that does not read.
    for (reads, last) in [(true, "one"), (false, "two")] {
        let mut ids = Vec::new();
        for session in &sessions {
            ids.push(agent.prompt(session, "go").await);
        }
        if !reads {
            // The command runs after all preceding deltas are in the log; the client has read none.
            for _ in &sessions {
                let line = bounded("the command behind the text", said.next_line()).await.unwrap();
                assert_eq!(line.as_deref(), Some("all is said"));
            }
            let grown = memory(agent.pid, "VmHWM:") - before;
            assert!(grown < 4 << 10, "{grown} kB for a client that does not read");
        }
        for (id, session) in ids.iter().zip(&sessions) {
            assert_eq!(agent.answer(id).await.unwrap()["stopReason"], "end_turn");
            assert_eq!(text(&session_updates(&agent.frames[seen..], session), "agent_message_chunk"), streamed.clone() + last);
        }
        if reads {
            let deltas =
                agent.frames.iter().filter(|frame| frame["params"]["update"]["sessionUpdate"] == "agent_message_chunk").count();
            assert!(deltas > SESSIONS * DELTAS / 2, "only {deltas} deltas: nothing is tried here");
            for _ in &sessions {
                bounded("the command behind the text", said.next_line()).await.unwrap();
            }
        }
        (before, seen) = (memory(agent.pid, "VmHWM:"), agent.frames.len());
    }
    agent.finish().await;
}

#[tokio::test]
async fn requests_sent_without_reading_are_all_answered() {
    let home = Home::new();
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    let mut ids = Vec::new();
    for _ in 0..1000 {
        ids.push(agent.send("initialize", json!({"protocolVersion": 1})).await);
    }
    for id in &ids {
        agent.answer(id).await.unwrap();
    }
    agent.finish().await;
}
