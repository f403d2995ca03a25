//! `nuncio sessions export --scripted` and `nuncio replay`: round trips, differences, masked texts,
//! calls that are answered from the record, errors.

mod differences;
mod masking;
mod recorded;
mod refusals;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use harness::steps::{bash, call, calls, write};
use harness::{CommandResult, Home};

/// A home whose work directory is a repository with instructions and an uncommitted change.
fn repository() -> Home {
    let home = Home::new();
    home.put("AGENTS.md", "Answer briefly.\n");
    home.put("total.sh", "echo 3\n");
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=Sam Doe", "-c", "user.email=sam@example.com"]).args(words);
        assert!(command.current_dir(home.work()).output().unwrap().status.success(), "{words:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "Import"]);
    home.put("total.sh", "echo 3 # mine\n");
    home
}

/// The steps of a session that reads, edits, runs and writes.
fn steps() -> Value {
    let edit = call("edit", json!({"file_path": "total.sh", "old_string": "echo 3", "new_string": "echo 4"}));
    json!([
        calls(&[call("read", json!({"file_path": "total.sh"}))]),
        calls(&[edit]),
        bash("sh total.sh; pwd; date +%FT%T"),
        write("notes/new.md", "It prints 4.\n"),
        {"text": "It prints 4."},
    ])
}

/// Runs prompts in mode auto. Returns the id of the session.
async fn session(home: &Home, steps: Value, flags: &[&str]) -> String {
    let model = home.script(steps);
    let ran =
        home.run(&[&["run", "--mode", "auto", "--model", &model, "--json", "-p", "Make it print 4."], flags].concat(), "").await;
    let first = ran.lines().into_iter().next().unwrap_or_else(|| panic!("{ran:?}"));
    first["sessionId"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

/// Exports a session to `../recording`.
async fn export(home: &Home, session: &str) -> CommandResult {
    let ran = home.run(&["sessions", "export", session, "--scripted", "../recording"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

async fn replay(home: &Home, flags: &[&str]) -> CommandResult {
    home.run(&[&["replay", "../recording"], flags].concat(), "").await
}

/// A home with the recording of a session of these steps.
async fn recorded(steps: Value) -> (Home, CommandResult) {
    let home = repository();
    let session = session(&home, steps, &[]).await;
    let exported = export(&home, &session).await;
    (home, exported)
}

/// The files below a directory with their contents.
fn files(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push((entry.path(), String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned())),
        }
    }
    found
}

/// A recorded session replays without a difference, at another place and without the project.
#[tokio::test]
async fn recorded_session_replays_without_a_difference() {
    needs_linux!("sandbox");
    let (home, exported) = recorded(steps()).await;
    assert!(exported.stdout.contains("1 prompts, 5 requests, 4 calls, 3 files of the start"), "{exported:?}");
    assert_eq!(exported.stderr, "", "the replay equals the session");
    let start = |path: &str| home.get(format!("../recording/start/{path}"));
    assert_eq!(start("commit/total.sh").as_deref(), Some("echo 3\n"));
    assert_eq!(start("changed/total.sh").as_deref(), Some("echo 3 # mine\n"));
    assert_eq!(home.get("../recording/expected/files/total.sh").as_deref(), Some("echo 4 # mine\n"));
    std::fs::remove_dir_all(home.work()).unwrap();
    std::fs::create_dir(home.work()).unwrap();
    let other = Home::new();
    let from = home.work().join("../recording").canonicalize().unwrap();
    let to = other.work().join("deeper/recording");
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::rename(from, &to).unwrap();
    // The replay needs neither the settings nor the data of a user.
    other.exact_config("not toml");
    let ran = other.run(&["replay", "deeper/recording"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "ok   deeper/recording, 5 requests\n"), "{ran:?}");
    // Nothing is left of the replays.
    let left: Vec<_> = std::fs::read_dir(other.work().join("..")).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("nuncio-")), "{left:?}");
}

/// Commands of a recording cannot write outside of the replay, and have no network.
#[tokio::test]
async fn commands_of_a_recording_are_confined() {
    needs_linux!("sandbox");
    let (home, _) = recorded(json!([bash("true"), {"text": "ok"}])).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (outside, port) = (home.work().join("outside"), listener.local_addr().unwrap().port());
    home.put("secret.txt", "the secret");
    let secret = home.work().join("secret.txt");
    let command = format!(
        "touch {}; bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo connected; cat {}",
        outside.display(),
        secret.display()
    );
    let script = home.get("../recording/script.json").unwrap().replace("\"true\"", &json!(command).to_string());
    home.put("../recording/script.json", &script);
    let session = home.get("../recording/session.json").unwrap().replace("\"mode\": \"auto\"", "\"mode\": \"accept-edits\"");
    let actions = session.replace(
        "\"attended\": false",
        "\"attended\": true,\n  \"answers\": [{\"call\": \"call_1\", \"outcome\": \"allow_once\"}]",
    );
    home.put("../recording/session.json", &actions);
    let ran = replay(&home, &[]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("Permission denied"), "the command ran: {ran:?}");
    assert!(!outside.exists() && !ran.stdout.contains("+ connected") && !ran.stdout.contains("+ the secret"), "{ran:?}");
}
