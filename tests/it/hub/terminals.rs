//! Agents in terminals that users start themselves: their status from hooks, and the wrapper.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::home_of;
use harness::{Answer, Bridge, Events, Home};

const TERMINAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hub/terminal.py");

/// Calls a hook of the session `claude-1` in the work directory.
async fn hook(server: &Bridge, home: &Home, mut body: Value) -> Answer {
    body["session_id"] = json!("claude-1");
    server.post("/hook", &body).header("x-workspace-path", home.work().to_str().unwrap()).send().await
}

/// The rows of terminals in the status.
async fn terminals(server: &Bridge) -> Value {
    server.get("/v1/status").expect(200).await["terminals"].clone()
}

/// Reads until the status of the terminal client is `wanted`. Returns its row.
async fn until(events: &mut Events, wanted: &str) -> Value {
    loop {
        let event = events.status().await;
        if let Some(row) = event["terminals"].get(0).filter(|row| row["status"] == wanted) {
            return row.clone();
        }
    }
}

fn append(path: &Path, line: &Value) {
    let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

fn user(content: Value) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": content}})
}

#[tokio::test]
async fn hooks_determine_the_status() {
    let home = Home::new();
    let server = home.serve(&[]).await;
    let mut events = server.get("/v1/events?types=agent.status").events().await;
    assert_eq!(events.status().await["terminals"], json!([]));
    let row = |status: &str| json!({"agent": "claude-code", "agentSession": "claude-1", "cwd": home.work(), "status": status});
    for (event, status) in [
        ("MessageDisplay", "idle"),
        ("UserPromptSubmit", "busy"),
        ("PreToolUse", "busy"),
        ("PermissionRequest", "waiting"),
        ("Notification", "waiting"),
        ("PostToolUse", "busy"),
        ("SubagentStop", "busy"),
        ("Stop", "idle"),
        ("UserPromptSubmit", "busy"),
        ("StopFailure", "idle"),
        ("Elicitation", "waiting"),
        ("ElicitationResult", "busy"),
        ("SessionStart", "idle"),
    ] {
        let answer = hook(&server, &home, json!({"hook_event_name": event, "tool_input": {"command": "x"}})).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, ""), "{event}");
        assert_eq!(terminals(&server).await, json!([row(status)]), "{event}");
    }
    assert_eq!(until(&mut events, "idle").await, row("idle"));
    let status = server.get("/v1/status").expect(200).await;
    let directory = json!([{"cwd": home.work(), "status": "idle", "open": 0, "busy": false, "waiting": false}]);
    assert_eq!((&status["status"], &status["directories"]), (&json!("idle"), &directory));
    hook(&server, &home, json!({"hook_event_name": "SessionEnd", "reason": "exit"})).await;
    assert_eq!(until(&mut events, "none").await, row("none"));
    assert_eq!(terminals(&server).await, json!([]));
    server.stop().await;
}

#[tokio::test]
async fn interrupt_is_read_from_the_transcript() {
    let home = Home::new();
    let server = home.serve(&[]).await;
    let mut events = server.get("/v1/events?types=agent.status").events().await;
    let interrupted = user(json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]));
    let path = home.work().join("transcript.jsonl");
    // An earlier interrupt does not count.
    append(&path, &interrupted);
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "transcript_path": path});
    let denied = json!({"hook_event_name": "PermissionRequest", "transcript_path": path});
    hook(&server, &home, prompt.clone()).await;
    until(&mut events, "busy").await;
    let result = json!([{"type": "tool_result", "content": "[Request interrupted by user]"}]);
    for line in [user(result), user(json!("no, [Request interrupted by user]")), json!("x"), json!({"type": "assistant"})] {
        append(&path, &line);
    }
    assert_eq!(terminals(&server).await[0]["status"], "busy");
    hook(&server, &home, denied).await;
    until(&mut events, "waiting").await;
    append(&path, &interrupted);
    until(&mut events, "idle").await;
    hook(&server, &home, prompt.clone()).await;
    until(&mut events, "busy").await;
    // A line longer than what is read at once, before the interrupt.
    append(&path, &user(json!("x".repeat(100 << 10))));
    append(&path, &user(json!("[Request interrupted by user]")));
    until(&mut events, "idle").await;

    // Only a regular file is read.
    let link = home.work().join("link.jsonl");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let made = std::process::Command::new("mkfifo").arg(home.work().join("pipe")).status().unwrap();
    assert!(made.success());
    for path in [link, home.work().join("pipe"), home.work(), PathBuf::from("transcript.jsonl")] {
        hook(&server, &home, json!({"hook_event_name": "Stop"})).await;
        hook(&server, &home, json!({"hook_event_name": "UserPromptSubmit", "transcript_path": path})).await;
        append(&home.work().join("transcript.jsonl"), &interrupted);
        assert_eq!(terminals(&server).await[0]["status"], "busy", "{path:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn wrong_hooks_are_refused() {
    let home = Home::new();
    let server = home.serve(&[]).await;
    home.put("file", "");
    home.put("../outside/file", "");
    let observer = home.run(&["token", "new", "watcher", "--role", "observer"], "").await.stdout;
    let stop = json!({"hook_event_name": "Stop", "session_id": "a"});
    let work = home.work();
    let at = |path: &str| server.post("/hook", &stop).header("x-workspace-path", path);
    let cases = [
        ("no token", at(work.to_str().unwrap()).without("authorization"), 401),
        (
            "an observer",
            server.with_token(observer.trim()).post("/hook", &stop).header("x-workspace-path", work.to_str().unwrap()),
            403,
        ),
        ("a page", at(work.to_str().unwrap()).header("origin", "http://evil.example"), 403),
        ("no directory", server.post("/hook", &stop), 400),
        ("a relative directory", at("work"), 400),
        ("a missing directory", at("/missing"), 400),
        ("a file", at(work.join("file").to_str().unwrap()), 400),
        ("a directory outside the roots", at(work.join("../outside").to_str().unwrap()), 403),
        ("no JSON", at(work.to_str().unwrap()).body("{"), 400),
        ("no event", at(work.to_str().unwrap()).json(&json!({"session_id": "a"})), 400),
        ("a long id", at(work.to_str().unwrap()).json(&json!({"hook_event_name": "Stop", "session_id": "a".repeat(500)})), 400),
        ("a form", at(work.to_str().unwrap()).header("content-type", "text/plain"), 415),
        ("a large body", at(work.to_str().unwrap()).json(&json!({"hook_event_name": "Stop", "x": "x".repeat(5 << 20)})), 413),
        ("a read", server.get("/hook"), 405),
    ];
    for (what, ask, status) in cases {
        assert_eq!(ask.send().await.status, status, "{what}");
    }
    assert_eq!(terminals(&server).await, json!([]));
    for number in 0..300 {
        let body = json!({"hook_event_name": "Stop", "session_id": format!("s{number}")});
        let sent = server.post("/hook", &body).header("x-workspace-path", work.to_str().unwrap()).send().await;
        assert_eq!(sent.status, 200);
    }
    let known = terminals(&server).await;
    assert_eq!(known.as_array().unwrap().len(), 256);
    assert!(known.to_string().contains("\"s299\"") && !known.to_string().contains("\"s0\""));
    server.stop().await;
}

/// Any program can report its status.
#[tokio::test]
async fn program_reports_its_status() {
    let home = Home::new();
    let server = home.serve(&[]).await;
    let work = home.work();
    let at = work.to_str().unwrap();
    let report = async |body: Value| server.post("/hook", &body).header("x-workspace-path", at).send().await.status;
    let row = |session: &str, status: &str, title: Option<&str>| {
        let mut row = json!({"agent": "program", "agentSession": session, "cwd": at, "status": status});
        title.iter().for_each(|title| row["title"] = json!(title));
        row
    };
    let cases = [
        (json!({"status": "busy", "title": "Nightly\nbuild"}), json!([row(at, "busy", Some("Nightly build"))])),
        (json!({"status": "waiting"}), json!([row(at, "waiting", None)])),
        (json!({"status": "idle", "session_id": "b"}), json!([row(at, "waiting", None), row("b", "idle", None)])),
        (json!({"status": "ended"}), json!([row("b", "idle", None)])),
        (json!({"status": "ended", "session_id": "b"}), json!([])),
    ];
    for (mut body, expected) in cases {
        body["type"] = json!("status");
        assert_eq!(report(body.clone()).await, 200, "{body}");
        let mut known = terminals(&server).await;
        known.as_array_mut().unwrap().sort_by_key(|row| row["agentSession"].to_string());
        let mut expected = expected;
        expected.as_array_mut().unwrap().sort_by_key(|row| row["agentSession"].to_string());
        assert_eq!(known, expected, "{body}");
    }
    for wrong in [
        json!({"type": "status"}),
        json!({"type": "status", "status": "asleep"}),
        json!({"type": "state", "status": "busy"}),
        json!({"type": "status", "status": "busy", "titel": "x"}),
        json!({"type": "status", "status": "busy", "title": "x".repeat(500)}),
        json!({"type": "status", "status": "busy", "session_id": "x".repeat(500)}),
    ] {
        assert_eq!(report(wrong.clone()).await, 400, "{wrong}");
    }
    assert_eq!(terminals(&server).await, json!([]));
    server.stop().await;
}

/// A home with the agent `other` of the kind, whose terminal client records its starts.
async fn home(kind: &str) -> Home {
    let home = home_of(kind, TERMINAL, &[], "env = { KEY = \"value\" }\n").await;
    home.env("CLAUDE_CONFIG_DIR", home.work().join("config").to_str().unwrap());
    home
}

/// The starts that the terminal client recorded.
fn ran(home: &Home) -> Vec<Value> {
    let text = home.get("ran.jsonl").unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The settings of the last start, which are in a private file.
fn settings(home: &Home) -> Value {
    let arguments = arguments(home);
    let file = &arguments[arguments.iter().position(|argument| argument == "--settings").unwrap() + 1];
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn arguments(home: &Home) -> Vec<String> {
    serde_json::from_value(ran(home).last().unwrap()["arguments"].clone()).unwrap()
}

#[tokio::test]
async fn wrapper_continues_the_session_of_the_directory() {
    let home = home("claude-code").await;
    home.env("OPENAI_API_KEY", "secret");
    home.put("steps", "exit 7");
    let exec = async |arguments: &[&str], code: i32| {
        let ran = home.run(&[&["agents", "exec", "other"], arguments].concat(), "").await;
        assert_eq!((ran.code, ran.stdout.as_str()), (code, "ready\n"), "{ran:?}");
        self::arguments(&home)
    };
    let [flag, first] = exec(&[], 7).await.try_into().unwrap();
    assert_eq!(flag, "--session-id");
    let started = ran(&home).pop().unwrap();
    let environment = json!({"NUNCIO_WORKSPACE": home.work(), "NUNCIO_DEPTH": "1", "KEY": "value"});
    assert_eq!(started["environment"], environment);
    // The first session has no conversation, which the agent could not resume.
    let [flag, second] = exec(&[], 7).await.try_into().unwrap();
    assert!(flag == "--session-id" && first != second, "{flag} {second}");
    home.put("steps", "UserPromptSubmit");
    let [_, third] = exec(&[], 0).await.try_into().unwrap();
    assert_eq!(exec(&["--model", "opus", "--cwd"], 0).await, ["--resume", &third, "--model", "opus", "--cwd"]);
    for given in [
        &["--continue"][..],
        &["-c"],
        &["-r"],
        &["--resume", "x"],
        &["--resume=x"],
        &["--session-id", "y"],
        &["-p", "hello"],
        &["mcp", "list"],
    ] {
        assert_eq!(exec(given, 0).await, given);
    }
    assert_eq!(exec(&[], 0).await, ["--resume", &third]);
}

#[tokio::test]
async fn wrapper_reports_the_status_to_the_running_server() {
    let home = home("claude-code").await;
    home.config(&(home.config_text() + "config = '{\"model\": \"x\", \"hooks\": {\"Stop\": [{\"hooks\": []}]}}'\n"));
    let server = home.serve(&[]).await;
    let mut events = server.get("/v1/events?types=agent.status").events().await;
    home.put("steps", "wait a\nUserPromptSubmit\nPermissionRequest\nwait b\ninterrupt\nwait c\nSessionEnd\nexit 3");
    let mut terminal = home.terminal(&["agents", "exec", "other", "hello"]);
    let row = until(&mut events, "idle").await;
    terminal.until("ready").await;
    let started = ran(&home).pop().unwrap();
    let arguments: Vec<String> = arguments(&home);
    assert_eq!(&arguments[..2], ["--session-id", row["agentSession"].as_str().unwrap()]);
    assert_eq!((&row["cwd"], &started["terminal"], &arguments[4]), (&json!(home.work()), &json!(true), &"hello".to_owned()));
    let settings = self::settings(&home);
    assert_eq!((&settings["model"], settings["hooks"]["Stop"].as_array().unwrap().len()), (&json!("x"), 2));
    home.put("a", "");
    until(&mut events, "waiting").await;
    home.put("b", "");
    until(&mut events, "idle").await;
    home.put("c", "");
    until(&mut events, "none").await;
    assert_eq!(terminal.end().await.0, 3);

    // The token of the hooks is for hooks only.
    let token = started["environment"]["NUNCIO_HOOK_TOKEN"].as_str().unwrap().to_owned();
    let hooks = server.with_token(&token);
    assert_eq!(hooks.get("/v1/status").send().await.status, 401);
    assert_eq!(hook(&hooks, &home, json!({"hook_event_name": "Stop"})).await.status, 200);
    let flag = home.run(&["agents", "exec", "other", "--settings", "{}"], "").await;
    assert_eq!((flag.code, self::arguments(&home).iter().filter(|flag| *flag == "--settings").count()), (3, 1));
    server.stop().await;
    // Without a server, and with one that refuses the token, there are no hooks. The file of a
    // server that was killed is removed, also while another process probes it.
    let dead = home.data().join("run/dead.http");
    std::fs::write(&dead, "http://127.0.0.1:9").unwrap();
    let probed = std::fs::File::open(&dead).unwrap();
    probed.lock_shared().unwrap();
    home.put("steps", "exit 0");
    home.run(&["agents", "exec", "other"], "").await;
    assert!(!dead.exists());
    assert_eq!(self::settings(&home)["hooks"], json!({"Stop": [{"hooks": []}]}));
}

#[tokio::test]
async fn wrapper_passes_signals_and_needs_trust() {
    let home = home("claude-code").await;
    home.put("steps", "wait never");
    let mut terminal = home.terminal(&["agents", "exec", "other"]);
    terminal.until("ready").await;
    rustix::process::kill_process(rustix::process::Pid::from_raw(terminal.pid as i32).unwrap(), rustix::process::Signal::TERM)
        .unwrap();
    // The process ended by the signal has no exit code.
    assert_eq!(terminal.end().await.0, -1);
    std::fs::remove_file(home.data().join("trusted")).unwrap();
    let before = ran(&home).len();
    for (name, said) in [("other", "is not trusted"), ("nobody", "nobody is unknown")] {
        let refused = home.run(&["agents", "exec", name], "").await;
        assert!(refused.code != 0 && refused.stderr.contains(said), "{refused:?}");
    }
    assert_eq!(ran(&home).len(), before);
}

#[tokio::test]
async fn wrapper_of_other_kinds_continues_the_last_session() {
    for (kind, own) in [("codex", &["resume", "--last"][..]), ("opencode", &["--continue"]), ("acp", &[])] {
        let home = home(kind).await;
        home.put("steps", "exit 5");
        assert_eq!(home.run(&["agents", "exec", "other"], "").await.code, 5);
        assert_eq!(arguments(&home), own, "{kind}");
        home.run(&["agents", "exec", "other", "--version", "x"], "").await;
        assert_eq!(arguments(&home), ["--version", "x"], "{kind}");
    }
}
