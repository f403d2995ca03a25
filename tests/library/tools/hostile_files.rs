//! Hostile files at paths that nuncio reads by itself: a link to an endless device, a huge file, a
//! pipe without a writer.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;

use harness::Home;

/// Longer than any of these runs takes in a debug build on a busy machine.
const BOUND: Duration = Duration::from_secs(20);

/// Runs nuncio with bounded memory. Returns the exit code and the output, or `None` when the run
/// does not end in time.
async fn run(home: &Home, arguments: &[&str]) -> Option<(Option<i32>, String)> {
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", "ulimit -v 3000000; exec \"$0\" \"$@\"", harness::program()]).args(arguments);
    command.current_dir(home.work()).envs(home.variables()).env("HOME", home.work().parent().unwrap());
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(BOUND, command.output()).await.ok()?.unwrap();
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
}

const KINDS: [&str; 3] = ["/dev/zero", "huge", "pipe"];

fn make(kind: &str, path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // The settings may exist.
    let _ = std::fs::remove_file(path);
    match kind {
        "pipe" => mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap(),
        "huge" => std::fs::File::create(path).unwrap().set_len(2 << 30).unwrap(),
        device => symlink(device, path).unwrap(),
    }
}

#[tokio::test]
async fn searches_end_when_ignore_files_are_not_regular_files() {
    let names = [
        ".gitignore",
        ".ignore",
        "sub/.gitignore",
        "../.gitignore",
        "../.ignore",
        ".git/info/exclude",
        ".git",
        "../.gitconfig",
        "../.config/git/config",
        "../.config/git/ignore",
    ];
    let mut stuck = Vec::new();
    for (name, kind) in names.iter().flat_map(|name| KINDS.map(|kind| (name, kind))) {
        let home = Home::new();
        home.put("needle.rs", "fn needle() {}\n");
        home.put("sub/other.rs", "fn needle() {}\n");
        make(kind, &home.work().join(name));
        for (tool, input) in [("grep", json!({"pattern": "needle"})), ("list", json!({}))] {
            let ended = run(&home, &["tool", tool, &input.to_string()]).await;
            if !ended.as_ref().is_some_and(|(code, said)| *code == Some(0) && said.contains("needle.rs")) {
                stuck.push(format!("{tool} with {kind} as {name}: {ended:?}"));
            }
        }
    }
    assert_eq!(stuck, Vec::<String>::new());
}

#[tokio::test]
async fn searches_end_when_commondir_is_not_a_regular_file() {
    let mut stuck = Vec::new();
    for kind in KINDS {
        let home = Home::new();
        home.put("needle.rs", "fn needle() {}\n");
        home.put(".git", "gitdir: own\n");
        make(kind, &home.work().join("own/commondir"));
        let ended = run(&home, &["tool", "glob", r#"{"pattern": "*.rs"}"#]).await;
        if !ended.as_ref().is_some_and(|(code, said)| *code == Some(0) && said.contains("needle.rs")) {
            stuck.push(format!("{kind}: {ended:?}"));
        }
    }
    assert_eq!(stuck, Vec::<String>::new());
}

#[tokio::test]
async fn settings_that_are_not_regular_files_are_an_error() {
    let mut stuck = Vec::new();
    for (name, kind) in [".nuncio/config.toml", "../home/config.toml"].iter().flat_map(|name| KINDS.map(|kind| (name, kind))) {
        let home = Home::new();
        make(kind, &home.work().join(name));
        let ended = run(&home, &["config", "check"]).await;
        if !ended.as_ref().is_some_and(|(code, said)| *code == Some(2) && said.contains("config.toml")) {
            stuck.push(format!("{kind} as {name}: {ended:?}"));
        }
    }
    assert_eq!(stuck, Vec::<String>::new());
}

#[tokio::test]
async fn turns_end_when_project_files_are_not_regular_files() {
    let mut stuck = Vec::new();
    let names = ["AGENTS.md", ".nuncio/instructions.md", "../home/trusted", ".git"];
    for (name, kind) in names.iter().flat_map(|name| KINDS.map(|kind| (name, kind))) {
        let home = Home::new();
        make(kind, &home.work().join(name));
        home.put("a.txt", "");
        let model = home.script(json!([{"text": "done and dusted"}]));
        let ended = run(&home, &["run", "--model", &model, "go"]).await;
        if !ended.as_ref().is_some_and(|(code, said)| *code == Some(0) && said.contains("done and dusted")) {
            stuck.push(format!("{kind} as {name}: {ended:?}"));
        }
    }
    assert_eq!(stuck, Vec::<String>::new());
}

#[tokio::test]
async fn prompt_file_that_is_not_a_regular_file_is_an_error() {
    let mut stuck = Vec::new();
    for kind in KINDS {
        let home = Home::new();
        home.config("[prompts]\n\"*\" = \"base.md\"\n");
        make(kind, &home.data().join("base.md"));
        let model = home.script(json!([{"text": "done and dusted"}]));
        let ended = run(&home, &["run", "--model", &model, "go"]).await;
        if !ended.as_ref().is_some_and(|(code, said)| code.is_some_and(|code| code != 0) && said.contains("base.md")) {
            stuck.push(format!("{kind}: {ended:?}"));
        }
    }
    assert_eq!(stuck, Vec::<String>::new());
}
