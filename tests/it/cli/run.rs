//! `nuncio run`: prompts in, text or events out.

use serde_json::{Value, json};

use super::check;
use harness::{Home, RunningCommand};

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["body"]["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn only_answer_is_on_standard_output() {
    let home = Home::new();
    home.put("a.txt", "one\n");
    let steps = json!([
        {"thinking": "I think.", "text": "First.", "tool_calls": [{"name": "read", "input": {"file_path": "a.txt"}}]},
        {"text": "Second."},
    ]);
    for flags in [&[][..], &["--plain"]] {
        let model = home.script(steps.clone());
        let ran = home.run(&[&["run", "--model", &model], flags, &["go"]].concat(), "").await;
        check(&ran, 0, &[]);
        assert_eq!(ran.stdout, "First.\nSecond.\n", "{ran:?}");
        assert!(ran.stderr.contains("Read a.txt") && ran.stderr.contains("I think."), "{ran:?}");
        assert!(!ran.stderr.contains('\u{1b}') && !ran.stdout.contains('\u{1b}'), "{ran:?}");
    }
}

#[tokio::test]
async fn prompts_are_arguments_or_standard_input() {
    let home = Home::new();
    let echo =
        |words: &[&str]| json!(words.iter().map(|word| json!({"expect": word, "text": format!("got {word}")})).collect::<Vec<_>>());
    let model = home.script(echo(&["alpha", "beta"]));
    check(&home.run(&["run", "--model", &model, "-p", "alpha", "-p", "beta"], "").await, 0, &["got alpha\ngot beta\n"]);
    let model = home.script(echo(&["piped words"]));
    check(&home.run(&["run", "--model", &model], "piped words\n").await, 0, &["got piped words"]);
    check(&home.run(&["run", "--model", &model, "-"], "piped words\n").await, 0, &["got piped words"]);
    check(&home.run(&["run", "--model", &model], " \n").await, 2, &["empty"]);
}

#[tokio::test]
async fn sessions_are_continued_and_resumed() {
    let home = Home::new();
    let first = home.run(&["run", "--model", &home.script(json!([{"text": "blue is my colour"}])), "go"], "").await;
    check(&first, 0, &[]);
    let model = home.script(json!([{"expect": "blue is my colour", "text": "I remember"}]));
    let ran = home.run(&["run", "--model", &model, "--continue", "and?"], "").await;
    check(&ran, 0, &[]);
    assert_eq!(ran.stdout, "I remember\n");
    let listed = home.run(&["sessions", "list", "--json"], "").await.lines();
    let id = listed[0]["sessionId"].as_str().unwrap();
    assert_eq!(listed.len(), 1);
    let ran = home.run(&["run", "--model", &model, "--resume", id, "--json", "and?"], "").await;
    check(&ran, 0, &[]);
    // The output starts with the events of the resumed turn.
    assert!(!ran.stdout.contains("blue"), "{ran:?}");
    // Another directory has no session.
    check(&home.run(&["run", "--model", &model, "--continue", "--cwd", "/", "go"], "").await, 2, &["no session"]);
}

#[tokio::test]
async fn json_flag_prints_events_as_json_lines() {
    let home = Home::new();
    let model = home.script(json!([{"text": "hello", "tool_calls": [{"name": "list"}]}, {"text": "bye"}]));
    let ran = home.run(&["run", "--model", &model, "--json", "go"], "").await;
    check(&ran, 0, &[]);
    let events = ran.lines();
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!((types(&events)[0], *types(&events).last().unwrap()), ("session.created", "turn.completed"));
    let log = home.log(events[0]["sessionId"].as_str().unwrap()).await;
    assert_eq!(log, events, "what is printed is what is kept");
    let schema: Value = serde_json::from_str(&home.run(&["schema", "event"], "").await.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for event in &events {
        assert!(validator.is_valid(event), "{event}");
    }
}

#[tokio::test]
async fn exit_code_depends_on_outcome() {
    let home = Home::new();
    let bash = json!({"tool_calls": [{"name": "bash", "input": {"command": "true"}}]});
    let failing = home.script(json!([{"expect": "what is not there"}]));
    check(&home.run(&["run", "--model", &failing, "go"], "").await, 1, &["what is not there"]);
    let denied = home.script(json!([bash, {"text": "so be it"}]));
    let ran = home.run(&["run", "--model", &denied, "go"], "").await;
    check(&ran, 4, &["so be it", "denied"]);
    check(&home.run(&["run", "--model", &denied, "--mode", "auto", "go"], "").await, 0, &["so be it"]);
    check(&home.run(&["run", "--model", "anthropic/claude-sonnet-5", "go"], "").await, 3, &["ANTHROPIC_API_KEY", "ollama/"]);
    check(&home.run(&["run", "--model", "local/x", "--base-url", "http://127.0.0.1:1/v1", "go"], "").await, 3, &["127.0.0.1:1"]);
    check(&home.run(&["run", "--model", "nonsense", "go"], "").await, 2, &["PROVIDER/NAME"]);
    check(&home.run(&["run", "--model", "scripted:missing.json", "go"], "").await, 1, &["missing.json"]);
}

#[tokio::test]
async fn json_input_contains_messages_and_interrupts() {
    let home = Home::new();
    let long = json!({"text": "words ".repeat(1000), "delay_ms": 20});
    let model = home.script(json!([{"text": "one"}, long, {"text": "three"}, {"text": "four"}]));
    let mut running = RunningCommand::start(&home, &["run", "--model", &model, "--json", "-"]);
    // An interrupt without a running turn has no effect.
    running.say(json!({"type": "interrupt"})).await;
    running.say(json!({"type": "message", "content": "first"})).await;
    running.until("turn.completed").await;
    running.say(json!({"type": "message", "content": "second"})).await;
    running.until("message.delta").await;
    // A message during a turn is queued.
    running.say(json!({"type": "message", "content": "third"})).await;
    running.say(json!({"type": "interrupt"})).await;
    running.until("turn.cancelled").await;
    let third = running.until("message.completed").await;
    assert_eq!(third["body"]["parts"][0]["text"], "third");
    running.until("turn.completed").await;
    running.say(json!({"type": "message", "content": "fourth"})).await;
    assert_eq!(running.end().await, 0);
    let id = third["sessionId"].as_str().unwrap().to_string();
    let log = home.log(&id).await;
    let ends: Vec<&str> = types(&log).into_iter().filter(|kind| kind.starts_with("turn.") && *kind != "turn.started").collect();
    assert_eq!(ends, ["turn.completed", "turn.cancelled", "turn.completed", "turn.completed"]);

    for bad in [json!({"type": "massage", "content": "x"}), json!({"content": "x"}), json!(7)] {
        let mut running = RunningCommand::start(&home, &["run", "--model", &model, "--json", "-"]);
        running.say(bad.clone()).await;
        assert_eq!(running.end().await, 2, "{bad}");
    }
}

#[tokio::test]
async fn signals_cancel_turn() {
    use rustix::process::{Pid, Signal, kill_process};
    let home = Home::new();
    for signal in [Signal::INT, Signal::TERM] {
        let model = home.script(json!([{"text": "words ".repeat(1000), "delay_ms": 20}]));
        let mut running = RunningCommand::start(&home, &["run", "--model", &model, "--json", "go"]);
        // Piped input is part of the prompt: the turn starts after its end.
        running.end_input();
        running.until("message.delta").await;
        kill_process(Pid::from_raw(running.pid as i32).unwrap(), signal).unwrap();
        running.until("turn.cancelled").await;
        assert_eq!(running.end().await, 130);
    }
}
