//! `nuncio run --bg` and `nuncio ps`: a session in a process that outlives the command.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use harness::steps::{asks, bash_call};
use harness::{Home, bounded, marked};

/// Waits until `nuncio ps` shows the session in a state.
async fn until_state(home: &Home, session: &str, state: &str) -> String {
    bounded(&format!("{session}: {state}"), async {
        loop {
            let listed = home.run(&["ps"], "").await;
            assert_eq!(listed.code, 0, "{listed:?}");
            let line = listed.stdout.lines().find(|line| line.starts_with(session)).map(str::to_owned);
            if let Some(line) = line.filter(|line| line.contains(state)) {
                return line;
            }
        }
    })
    .await
}

/// Starts a session in the background. Returns its id.
async fn start(home: &Home, steps: Value, flags: &[&str]) -> String {
    let model = home.script(steps);
    let ran = home.run(&[&["run", "--bg", "--model", &model], flags].concat(), "").await;
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let id = ran.stdout.trim().to_owned();
    assert!(id.starts_with("sess_") && ran.stdout.lines().count() == 1, "{ran:?}");
    id
}

#[tokio::test]
async fn work_goes_on_and_its_state_is_shown() {
    let home = Home::new();
    let wait = bash_call("until test -e go; do sleep 0.01; done");
    let id = start(&home, json!([{"tool_calls": [wait]}, {"text": "finished"}]), &["--auto", "--title", "Long work", "go"]).await;
    let line = until_state(&home, &id, "working").await;
    assert!(line.contains("Long work"), "{line}");
    home.put("go", "");
    until_state(&home, &id, "done").await;
    let shown = home.run(&["sessions", "show", &id], "").await;
    assert!(shown.stdout.contains("finished"), "{shown:?}");
    let listed = home.run(&["ps", "--json"], "").await;
    let line: Value = serde_json::from_str(listed.stdout.trim()).unwrap();
    assert_eq!((&line["sessionId"], &line["state"]), (&json!(id), &json!("done")));
}

#[tokio::test]
async fn work_outlives_its_terminal() {
    let home = Home::new();
    let wait = bash_call("until test -e go; do sleep 0.01; done");
    let model = home.script(json!([{"tool_calls": [wait]}, {"text": "finished"}]));
    let mut terminal = home.terminal(&["run", "--bg", "--auto", "--model", &model, "go"]);
    let shown = terminal.until("sess_").await;
    let (code, rest) = terminal.end().await;
    assert_eq!(code, 0, "{shown}{rest}");
    let all = rest;
    let id = all.split_whitespace().find(|word| word.starts_with("sess_")).unwrap().to_owned();
    until_state(&home, &id, "working").await;
    home.put("go", "");
    until_state(&home, &id, "done").await;
}

#[tokio::test]
async fn request_waits_for_a_client_and_is_answered() {
    let home = Home::new();
    let id = start(&home, json!([asks(), {"text": "it was allowed"}]), &["go"]).await;
    until_state(&home, &id, "waits for you").await;
    let answered = home.run(&["sessions", "answer", &id, "allow_once"], "").await;
    assert_eq!(answered.code, 0, "{answered:?}");
    until_state(&home, &id, "done").await;
    let shown = home.run(&["sessions", "show", &id], "").await;
    assert!(shown.stdout.contains("it was allowed"), "{shown:?}");
    // The deadline is that of sessions in the background, and not the 300 s of other programs.
    let log = home.log(&id).await;
    let asked = log.iter().find(|event| event["body"]["type"] == "permission.requested").unwrap();
    let waits = asked["body"]["deadlineMs"].as_u64().unwrap() - asked["atMs"].as_u64().unwrap();
    assert!(waits.abs_diff(86_400_000) < 60_000, "{waits}");
}

#[tokio::test]
async fn killed_and_cancelled_work_is_said() {
    let home = Home::new();
    let wait = json!([{"tool_calls": [bash_call("echo $PPID > supervisor; sleep 600")]}]);
    let killed = start(&home, wait.clone(), &["--auto", "go"]).await;
    until_state(&home, &killed, "working").await;
    home.appears("supervisor").await;
    let command = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut processes = marked(&format!("NUNCIO_HOME={}", home.data().display())).into_iter();
    let pid = processes.find(|pid| command(pid).contains("--detached")).expect("the process of the session");
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    until_state(&home, &killed, "failed").await;
    let cancelled = start(&home, wait, &["--auto", "go"]).await;
    until_state(&home, &cancelled, "working").await;
    let failed = start(&home, json!([{"error": {"status": 400}}]), &["go"]).await;
    let line = until_state(&home, &failed, "failed").await;
    assert!(line.contains("HTTP 400"), "{line}");
    home.run(&["sessions", "cancel", &cancelled], "").await;
    until_state(&home, &cancelled, "cancelled").await;
}

#[tokio::test]
async fn errors_before_the_start_are_those_of_run() {
    let home = Home::new();
    for (flags, code, words) in [
        (&["run", "--bg", "--model", "nosuch/model", "go"][..], 2, "nosuch"),
        (&["run", "--bg", "--file", "missing.txt", "go"], 1, "missing.txt"),
        (&["run", "--bg", "--ephemeral", "go"], 2, "--ephemeral"),
        (&["run", "--bg"], 2, "prompt"),
        (&["run", "--bg", "--output-format", "stream-json", "-"], 2, "needs a prompt, not JSON lines"),
    ] {
        let ran = home.run(flags, "").await;
        assert!(ran.code != 0 && ran.stdout.is_empty() && ran.stderr.contains(words), "{flags:?} {code}: {ran:?}");
    }
}

#[tokio::test]
async fn run_works_in_a_new_workspace() {
    needs_linux!("sandbox");
    let home = crate::workspaces::repository();
    let model = home.script(json!([{"tool_calls": [bash_call("echo two > b.txt")]}, {"text": "done"}]));
    let ran = home.run(&["run", "--auto", "--model", &model, "--worktree=fix", "go"], "").await;
    assert!(ran.code == 0 && ran.stderr.contains("nuncio workspaces apply fix"), "{ran:?}");
    assert!(home.get("b.txt").is_none());
    let applied = home.run(&["workspaces", "apply", "fix"], "").await;
    assert_eq!(applied.code, 0, "{applied:?}");
    assert_eq!(home.get("b.txt").as_deref(), Some("two\n"));
}
