//! Commands of a session: they end with their turn and with nuncio, and calls of one answer run at
//! the same time if they change nothing.

mod printed;
mod shell;

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use harness::{Home, Reply, bounded, gone, text, tool};
use harness::{marked, marker};

/// A command that leaves child processes running in several ways. Each has `marker` in its
/// arguments; one has no environment.
fn tree(marker: &str) -> String {
    let line = "sleep 60 & setsid sleep 60 & (setsid sh -c 'sleep 60; true' &) ; env -i sleep 60 & echo started; wait";
    line.replace("sleep 60", &format!("sleep 60 {marker}"))
}

fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command, "timeout_ms": 20_000}})
}

/// A running session whose command has printed `started`.
async fn started(home: &Home, command: &str) -> (harness::Agent, String, Value) {
    let (mut agent, session) = home.session(json!([{"tool_calls": [bash(command)]}, {"text": "after"}]), &["--mode", "auto"]).await;
    let id = agent.prompt(&session, "go").await;
    let shown = |frame: &Value| frame["params"]["update"]["content"].to_string().contains("started\\n");
    agent.until("the command's output", shown).await;
    (agent, session, id)
}

#[tokio::test]
async fn cancel_interrupts_a_streaming_answer() {
    let home = Home::new();
    let long = "word ".repeat(2000);
    let (mut agent, session) = home.session(json!([{"text": long, "delay_ms": 20}, {"text": "after"}]), &[]).await;
    let id = agent.prompt(&session, "go").await;
    agent.until_update("agent_message_chunk").await;
    let before = Instant::now();
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    // The text received before the cancel is kept.
    let said = text(&agent.updates(&session), "agent_message_chunk");
    assert!(!said.is_empty() && long.starts_with(&said), "{said}");
    let (_, updates) = agent.turn(&session, "next").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "after");
    agent.finish().await;
}

#[tokio::test]
async fn cancelled_turn_leaves_no_processes() {
    let home = Home::new();
    let marker = marker();
    let (mut agent, session, id) = started(&home, &tree(&marker)).await;
    assert!(marked(&marker).len() >= 4, "{:?}", marked(&marker));
    let before = Instant::now();
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
    gone(&marker).await;
    assert_eq!(tool(&agent.updates(&session), 0)["status"], "failed");
    assert_eq!(agent.turn(&session, "next").await.0, "end_turn");
    agent.finish().await;
}

#[tokio::test]
async fn closed_session_leaves_no_processes() {
    let home = Home::new();
    let marker = marker();
    let (mut agent, session, id) = started(&home, &tree(&marker)).await;
    agent.call("session/close", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    gone(&marker).await;
    agent.finish().await;
}

/// A session without a turn, with a background job that has started all its processes.
async fn with_job(home: &Home, marker: &str) -> (harness::Agent, String) {
    let line = tree(marker).replace("echo started", "echo started > pipe");
    let start = json!({"name": "bash", "input": {"command": line, "background": true}});
    let steps = json!([{"tool_calls": [start]}, {"tool_calls": [bash("cat pipe")]}, {"text": "over"}]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, home.work().join("pipe"), mode).unwrap();
    let (stop, _) = agent.turn(&session, "go").await;
    assert_eq!(stop, "end_turn");
    assert!(marked(marker).len() >= 4, "{:?}", marked(marker));
    (agent, session)
}

#[tokio::test]
async fn jobs_outlive_turns_and_end_with_their_session() {
    let home = Home::new();
    let marker = marker();
    let (mut agent, session) = with_job(&home, &marker).await;
    agent.call("session/close", json!({"sessionId": session})).await;
    // The processes end before the answer is sent.
    assert_eq!(marked(&marker), Vec::<u32>::new());
    agent.finish().await;
    assert!(!leftovers(&home), "temporary files are left");
}

#[tokio::test]
async fn jobs_end_with_nuncio() {
    for killed in [false, true] {
        let home = Home::new();
        let marker = marker();
        let (agent, _) = with_job(&home, &marker).await;
        if killed {
            agent.kill().await;
            gone(&marker).await;
        } else {
            agent.finish().await;
            assert_eq!(marked(&marker), Vec::<u32>::new());
            assert!(!leftovers(&home), "temporary files are left");
        }
    }
}

/// Returns true if a directory for temporary files still exists.
fn leftovers(home: &Home) -> bool {
    // Without a sandbox, commands have no directory of their own.
    let sessions = std::fs::read_dir(home.data().join("artifacts")).into_iter().flatten();
    let files = sessions.flat_map(|session| std::fs::read_dir(session.unwrap().path()).unwrap());
    files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("temp-"))
}

#[tokio::test]
async fn killed_nuncio_leaves_no_processes() {
    let home = Home::new();
    let marker = marker();
    let (agent, ..) = started(&home, &tree(&marker)).await;
    assert!(marked(&marker).len() >= 4, "{:?}", marked(&marker));
    agent.kill().await;
    gone(&marker).await;
}

#[tokio::test]
async fn terminated_nuncio_cancels_its_turns() {
    let home = Home::new();
    let marker = marker();
    let (agent, session, id) = started(&home, &tree(&marker)).await;
    rustix::process::kill_process(rustix::process::Pid::from_raw(agent.pid as i32).unwrap(), rustix::process::Signal::TERM)
        .unwrap();
    let frames = agent.finish().await;
    gone(&marker).await;
    let answer = frames.iter().find(|frame| frame["id"] == id).expect("an answer");
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert_eq!(home.log(&session).await.last().unwrap()["body"]["type"], "turn.cancelled");
}

/// Runs eight calls that each read a pipe, which ends only when all eight are read at the same
/// time.
async fn read_eight_pipes(config: &str, timeout_ms: u64) -> Vec<String> {
    let home = Home::new();
    home.config(config);
    let pipes: Vec<PathBuf> = (0..8).map(|number| home.work().join(format!("pipe{number}"))).collect();
    for pipe in &pipes {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, pipe, mode).unwrap();
    }
    // The thread waits until the pipe that it opens is read. A missing pipe ends it.
    std::thread::spawn(move || pipes.iter().map(|pipe| OpenOptions::new().write(true).open(pipe)).collect::<Vec<_>>());
    let input = |number| json!({"command": format!("cat pipe{number}"), "timeout_ms": timeout_ms});
    let calls: Vec<Value> = (0..8).map(|number| json!({"name": "bash", "input": input(number)})).collect();
    let (mut agent, session) = home.session(json!([{"tool_calls": calls}, {"text": "met"}]), &["--mode", "auto"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    agent.finish().await;
    (0..8).map(|index| tool(&updates, index)["status"].as_str().unwrap().to_string()).collect()
}

/// A cancelled close goes on, so that the session can be opened again.
#[tokio::test]
async fn cancelled_close_is_completed() {
    let home = Home::new();
    let (mut agent, session, running) = started(&home, "trap '' TERM; echo started; while true; do sleep 1; done").await;
    let closing = agent.send("session/close", json!({"sessionId": session})).await;
    agent.notify("$/cancel_request", json!({"requestId": closing})).await;
    agent.answer(&closing).await.unwrap_err();
    assert_eq!(agent.answer(&running).await.unwrap()["stopReason"], "cancelled");
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "next"}]});
    let reopened = async {
        while let Err(error) = agent.request("session/prompt", prompt.clone()).await {
            assert_eq!(error["data"]["code"], "session_busy", "{error}");
        }
    };
    bounded("the end of the close", reopened).await;
    agent.finish().await;
    let log = home.log(&session).await;
    assert!(log.iter().any(|event| event["body"]["type"] == "session.closed"), "{log:#?}");
}

#[tokio::test]
async fn reading_calls_of_one_answer_run_concurrently() {
    assert_eq!(read_eight_pipes("", 20_000).await, ["completed"; 8]);
    // At most `max_concurrency` calls run at the same time.
    let seven = read_eight_pipes("[tools]\nmax_concurrency = 7\n", 700).await;
    assert!(seven.iter().any(|status| status == "failed"), "{seven:?}");
}

/// Each call sees what the calls before it did, and nothing of those after it.
#[tokio::test]
async fn calls_with_effects_wait_for_the_earlier_calls() {
    let home = Home::new();
    home.put("f", "none\n");
    let calls = [
        bash("cat f"),
        bash("sleep 0.2; echo one > f"),
        bash("cat f"),
        json!({"name": "read", "input": {"file_path": "f"}}),
        json!({"name": "write", "input": {"file_path": "f", "content": "two\n"}}),
        bash("git init --quiet . && git add f"),
        bash("git status --short"),
        bash("cat < f; sleep 0.1 & wait; find f -delete"),
        bash("ls f"),
        json!({"name": "edit", "input": {"file_path": "f", "old_string": "", "new_string": "three\n"}}),
        bash("cat f | head -n 1"),
    ];
    let (mut agent, session) = home.session(json!([{"tool_calls": calls}, {"text": "done"}]), &["--mode", "auto"]).await;
    agent.turn(&session, "go").await;
    agent.finish().await;
    let messages = harness::provider::session::messages(&home, &session).await;
    let results: Vec<&str> =
        messages.iter().filter(|message| message["role"] == "tool").map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(results.len(), calls.len());
    let expected = ["none", "", "one", "     1\tone", "overwrote", "", "A  f", "two", "ls: cannot access", "edited", "three"];
    for ((result, expected), call) in results.iter().zip(expected).zip(&calls) {
        assert!(result.starts_with(expected), "{call}: {result}");
    }
}

#[tokio::test]
async fn eight_sleeps_run_concurrently() {
    let home = Home::new();
    let calls: Vec<Value> = (0..8).map(|_| bash("sleep 0.3")).collect();
    let (mut agent, session) = home.session(json!([{"tool_calls": calls}]), &["--mode", "auto"]).await;
    let before = Instant::now();
    agent.turn(&session, "go").await;
    let took = before.elapsed();
    assert!((300..1500).contains(&took.as_millis()), "8 times 0.3 s took {took:?}");
    agent.finish().await;
}

#[tokio::test]
async fn failed_call_does_not_affect_others_and_results_stay_in_order() {
    let home = Home::new();
    let calls = [
        bash("sleep 0.2; echo first"),
        json!({"name": "read", "input": {"file_path": "missing"}}),
        bash("echo third; exit 3"),
        json!({"name": "no_such_tool"}),
        json!({"name": "edit", "input": {"file_path": "a"}}),
        bash("sleep 0.1; echo last"),
    ];
    let ordered = "first\nexit code: 0\n";
    let (mut agent, session) =
        home.session(json!([{"tool_calls": calls}, {"expect": ordered, "text": "seen"}]), &["--mode", "auto"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    let statuses: Vec<Value> = (0..6).map(|index| tool(&updates, index)["status"].clone()).collect();
    assert_eq!(statuses, ["completed", "failed", "completed", "failed", "failed", "completed"]);
    assert_eq!(text(&updates, "agent_message_chunk"), "seen");
    agent.finish().await;
    // The results are in the order of the calls, not in the order of completion.
    let messages = harness::provider::session::messages(&home, &session).await;
    let results: Vec<&str> =
        messages.iter().filter(|message| message["role"] == "tool").map(|message| message["content"].as_str().unwrap()).collect();
    let beginnings = ["first", "error: ", "third", "error: there is no tool no_such_tool", "error: edit: missing field", "last"];
    assert_eq!(results.len(), 6);
    for (result, beginning) in results.iter().zip(beginnings) {
        assert!(result.starts_with(beginning), "{result:?} where {beginning:?} should be: {results:#?}");
    }
}

#[tokio::test]
async fn shell_keeps_its_directory_and_timeouts_apply() {
    let home = Home::new();
    let calls = ["mkdir deep && cd deep", "pwd", "sleep 60"].map(|command| {
        let mut call = bash(command);
        if command.starts_with("sleep") {
            call["input"]["timeout_ms"] = json!(200);
        }
        json!({"tool_calls": [call]})
    });
    let (mut agent, session) = home.session(json!(calls), &[]).await;
    agent.otherwise = Reply::Pick("allow_once");
    let (_, updates) = agent.turn(&session, "go").await;
    assert!(tool(&updates, 1)["content"].to_string().contains("/work/deep"), "{}", tool(&updates, 1));
    assert!(tool(&updates, 2)["content"].to_string().contains("200 ms"), "{}", tool(&updates, 2));
    agent.finish().await;
}
