//! The description of a git repository in the first model request of a session.

use serde_json::{Value, json};

use harness::{CommandResult, Home, kinds};

/// A repository with a change, an ignored file and a few manifests.
fn repository(settings: &str) -> Home {
    let home = Home::new();
    home.config(settings);
    for (path, text) in [
        (".gitignore", "ignored.rs\n"),
        ("Cargo.toml", "[package]\nname = \"lamp\"\n[[bin]]\nname = \"lampd\"\npath = \"src/daemon.rs\"\n"),
        ("Makefile", "VERSION := 1\ntest: build\n\tcargo test\nbuild:\n\tcargo build\n"),
        ("package.json", r#"{"main": "index.js", "scripts": {"lint": "eslint ."}}"#),
        ("src/parser.rs", "pub fn parse_lamp(text: &str) -> u8 { 1 }\n"),
        ("src/daemon.rs", "fn main() { parse_lamp(\"on\"); }\n"),
        ("src/other.rs", "pub fn other() {}\n"),
        ("docs/guide.md", "guide\n"),
        ("secrets/key.rs", "pub fn parse_lamp_key() {}\n"),
    ] {
        home.put(path, text);
    }
    let git = |arguments: &[&str]| {
        let people = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
        let ran = std::process::Command::new("git").args(people).args(arguments).current_dir(home.work()).output().unwrap();
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    };
    git(&["init", "--quiet", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    home.put("src/other.rs", "pub fn other() { 1; }\n");
    home.put("ignored.rs", "pub fn parse_lamp_ignored() {}\n");
    home
}

async fn run(home: &Home, steps: Value, more: &[&str], prompt: &str) -> CommandResult {
    let model = home.script(steps);
    let flags = [&["run", "--json", "--model", &model], more, &[prompt]].concat();
    let ran = home.run(&flags, "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// The description in the events of a run.
fn bundle(ran: &CommandResult) -> Option<String> {
    let lines = ran.lines();
    let mut found = lines.iter().filter(|event| event["body"]["code"] == "repository");
    let note = found.next().and_then(|event| event["body"]["note"].as_str().map(str::to_owned));
    assert_eq!(found.count(), 0, "one description");
    note
}

#[tokio::test]
async fn first_request_describes_the_repository() {
    needs_linux!("sandbox");
    let home = repository("");
    let ran = run(&home, json!([{"text": "ok", "expect": "<repository>"}]), &[], "fix `parse_lamp`").await;
    let text = bundle(&ran).unwrap();
    for expected in [
        "on main",
        "src/other.rs",
        "Rust: 4",
        "docs/",
        "Cargo.toml: package lamp",
        "Cargo.toml: bin lampd (src/daemon.rs)",
        "Makefile: targets test, build",
        "package.json: main index.js",
        "package.json: scripts lint",
        "  src/parser.rs\n    pub fn parse_lamp(text: &str) -> u8\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("ignored"), "{text}");
}

#[tokio::test]
async fn files_that_the_prompt_names_come_first() {
    let first = async |prompt: &str| {
        let text = bundle(&run(&repository(""), json!([{"text": "ok"}]), &[], prompt).await).unwrap();
        let files = text.split_once("definitions:\n").unwrap().1;
        files.trim().lines().next().unwrap().split(':').next().unwrap().to_owned()
    };
    for (prompt, file) in [
        ("why does parse_lamp fail", "src/parser.rs"),
        ("look at src/other.rs", "src/other.rs"),
        ("explain guide.md", "docs/guide.md"),
        ("what does the daemon do?", "src/daemon.rs"),
    ] {
        assert_eq!(first(prompt).await, file, "{prompt}");
    }
}

#[tokio::test]
async fn permission_rules_hide_files() {
    let rule = |rule: &str| format!("[permissions]\nrules = [ {{ {rule}, policy = \"deny\" }} ]\n");
    let text = |ran: &CommandResult| bundle(ran).unwrap_or_default();
    for hiding in ["path = \"secrets/**\"", "tool = \"read\", path = \"secrets/**\"", "kind = \"read\", path = \"secrets/**\""] {
        let ran = run(&repository(&rule(hiding)), json!([{"text": "ok"}]), &[], "parse_lamp_key").await;
        assert!(text(&ran).contains("parse_lamp") && !text(&ran).contains("key"), "{hiding}: {}", text(&ran));
    }
    let manifest = run(&repository(&rule("path = \"Makefile\"")), json!([{"text": "ok"}]), &[], "go").await;
    assert!(!text(&manifest).contains("Makefile") && text(&manifest).contains("lampd"), "{}", text(&manifest));
    let all = run(&repository(&rule("kind = \"read\"")), json!([{"text": "ok"}]), &[], "go").await;
    assert_eq!(bundle(&all), None);
}

#[tokio::test]
async fn budget_limits_the_description() {
    for tokens in [60, 200, 20_000] {
        let home = repository(&format!("[context]\nbundle_tokens = {tokens}\n"));
        let text = bundle(&run(&home, json!([{"text": "ok"}]), &[], "parse_lamp").await).unwrap();
        assert!(text.len() <= tokens * 4 && text.ends_with("</repository>"), "{tokens}: {text}");
    }
    let none = run(&repository("[context]\nbundle_tokens = 0\n"), json!([{"text": "ok"}]), &[], "go").await;
    assert_eq!(bundle(&none), None);
    let plain = Home::new();
    plain.put("src/parser.rs", "fn a() {}\n");
    assert_eq!(bundle(&run(&plain, json!([{"text": "ok"}]), &[], "go").await), None, "not a repository");
}

#[tokio::test]
async fn later_requests_contain_the_first_description() {
    let home = repository("");
    let first = bundle(&run(&home, json!([{"text": "ok"}]), &[], "parse_lamp").await).unwrap();
    home.put("src/new.rs", "fn new() {}\n");
    let expected = first.lines().nth(3).unwrap();
    let second = run(&home, json!([{"text": "ok", "expect": expected}]), &["--continue"], "and now?").await;
    assert_eq!(bundle(&second), None);
}

#[tokio::test]
async fn clients_do_not_show_the_description() {
    let home = repository("");
    let model = home.script(json!([{"text": "ok", "expect": "<repository>"}]));
    let ran = home.run(&["run", "--model", &model, "go"], "").await;
    assert!(ran.code == 0 && !(ran.stdout + &ran.stderr).contains("repository"), "the terminal");
    let mut agent = home.start(&["--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {"session": {"notices": {}}}})).await;
    let session = agent.new_session(&home).await;
    let (_, updates) = agent.turn(&session, "go").await;
    let shown = |updates: &[Value]| json!(updates).to_string().contains("<repository>") || kinds(updates).contains(&"notice");
    assert!(!shown(&updates), "{updates:?}");
    let replayed = agent.load(&home, &session).await;
    assert!(!shown(&replayed), "{replayed:?}");
    agent.finish().await;
}

#[tokio::test]
async fn omitted_names_are_counted() {
    let home = repository("[context]\nbundle_tokens = 300\n");
    for number in 0..40 {
        home.put(&format!("a-long-name-of-a-file-{number:02}.txt"), "text\n");
    }
    let text = bundle(&run(&home, json!([{"text": "ok"}]), &[], "go").await).unwrap();
    let (_, top) = text.split_once("Top directory:\n").unwrap();
    let shown = top.lines().take_while(|line| line.starts_with("  ") && !line.starts_with("  [")).flat_map(str::split_whitespace);
    let shown = shown.count();
    let more = top.lines().find_map(|line| line.strip_prefix("  [")?.strip_suffix(" more]")?.parse::<usize>().ok()).unwrap();
    // The files, and the entries of the top directory that are not hidden.
    let all = 40 + ["Cargo.toml", "Makefile", "package.json", "docs/", "secrets/", "src/"].len();
    assert_eq!(shown + more, all, "{text}");
}
