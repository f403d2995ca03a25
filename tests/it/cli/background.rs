//! `nuncio run` and work that goes on after the last prompt: background commands and subagents.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::check;
use harness::steps::{bash, calls, says};
use harness::subagents::define;
use harness::{Home, RunningCommand};

fn in_background(command: &str) -> Value {
    json!({"tool_calls": [{"name": "bash", "input": {"command": command, "background": true}}]})
}

const WAITS: &str = "until [ -e go ]; do sleep 0.01; done; echo made > made";

#[tokio::test]
async fn report_of_background_subagent_starts_a_turn_of_run() {
    let home = Home::new();
    define(&home, "worker", "", json!([bash(WAITS), {"text": "The number is 42."}]));
    let task = json!({"name": "task", "input": {"agent": "worker", "prompt": "work", "background": true}});
    let steps = json!([calls(&[task]), {"text": "I wait for it."}, says("The number is 42.", "It is 42.")]);
    let model = home.script(steps);
    let mut running = RunningCommand::start(&home, &["run", "--model", &model, "--mode", "auto", "--json", "go"]);
    running.end_input();
    running.until("turn.completed").await;
    home.put("go", "");
    running.until("child.completed").await;
    running.until("turn.completed").await;
    let shown = json!(running.events).to_string();
    assert!(shown.contains("It is 42."), "{shown}");
    assert_eq!(running.end().await, 0);
}

#[tokio::test]
async fn run_waits_for_background_command() {
    let home = Home::new();
    let model = home.script(json!([in_background(WAITS), {"text": "started"}]));
    let mut terminal = home.terminal(&["run", "--model", &model, "--mode", "auto", "go"]);
    terminal.until("Waiting for background work: `until").await;
    home.put("go", "");
    let (code, shown) = terminal.end().await;
    assert!(code == 0 && shown.contains("has ended: exit code: 0"), "{shown}");
    assert_eq!(home.get("made").as_deref(), Some("made\n"));
}

#[tokio::test]
async fn cancelled_background_work_is_named() {
    let home = Home::new();
    let steps = json!([in_background("sleep 1000"), {"text": "started"}]);
    let model = home.script(steps.clone());
    let ran = home.run(&["run", "--no-wait", "--model", &model, "--mode", "auto", "go"], "").await;
    check(&ran, 0, &["Cancelled background work: `sleep 1000`"]);
    assert!(!ran.stderr.contains("Waiting for"), "{ran:?}");
    let model = home.script(steps);
    let mut terminal = home.terminal(&["run", "--model", &model, "--mode", "auto", "go"]);
    terminal.until("Waiting for background work: `sleep 1000`").await;
    kill_process(Pid::from_raw(terminal.pid as i32).unwrap(), Signal::INT).unwrap();
    let (code, shown) = terminal.end().await;
    assert!(code == 130 && shown.contains("Cancelled background work: `sleep 1000`"), "{code}: {shown}");
}
