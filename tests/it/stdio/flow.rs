//! The end of the input, and clients that do not read.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Home, bounded, of, text};

#[tokio::test]
async fn the_end_of_the_input_ends_a_turn() {
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

#[tokio::test]
async fn a_client_that_stops_reading_costs_no_memory_and_loses_nothing() {
    let home = Home::new();
    let pipe = home.work().join("through");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let streamed: String = ('a'..='z').cycle().take(20_000).collect();
    let steps = json!([
        {"text": streamed, "chunk_chars": 1, "tool_calls": [{"name": "bash", "input": {"command": "echo all is said > through"}}]},
        {"text": "done"},
    ]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let before = memory(agent.pid, "VmHWM:");
    let id = agent.prompt(&session, "go").await;
    // The command runs when all deltas are in the log; nobody has read one.
    let said = bounded("the command behind the text", tokio::fs::read_to_string(&pipe)).await.unwrap();
    assert_eq!(said, "all is said\n");
    let grown = memory(agent.pid, "VmHWM:") - before;
    assert!(grown < 16 << 10, "{grown} kB for a client that does not read");
    // Others are served meanwhile: the input is still read.
    let quick = agent.send("session/list", json!({})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "end_turn");
    agent.answer(&quick).await.unwrap();
    assert_eq!(text(&of(&agent.frames, &session), "agent_message_chunk"), streamed + "done");
    agent.finish().await;
}

#[tokio::test]
async fn a_client_that_asks_and_does_not_read_is_answered_in_the_end() {
    let home = Home::new();
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    let mut ids = Vec::new();
    for _ in 0..5000 {
        ids.push(agent.send("initialize", json!({"protocolVersion": 1})).await);
    }
    for id in &ids {
        agent.answer(id).await.unwrap();
    }
    agent.finish().await;
}
