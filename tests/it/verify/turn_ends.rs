//! The end of a turn whose checks fail: the exit code of `run`, and checks before the first edit.

use serde_json::{Value, json};

use harness::steps::bash;
use harness::steps::write;
use harness::{CommandResult, Home};

const CHECK: &str = "grep -q good a.txt || { echo 'error: a.txt is not good'; exit 3; }";
const OTHER: &str = "grep -q fine b.txt || { echo 'error: b.txt is not fine'; exit 4; }";

async fn home(settings: &str, commands: &[&str]) -> Home {
    let home = Home::new();
    home.put("a.txt", "");
    home.put("b.txt", "");
    home.config(&format!("[verify]\ncommands = {commands:?}\n{settings}"));
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    home
}

async fn run(home: &Home, steps: Value, flags: &[&str]) -> CommandResult {
    let model = home.script(steps);
    home.run(&[&["run", "--model", &model, "--mode", "auto"], flags].concat(), "").await
}

/// The round and the result of each run of the checks.
fn rounds(events: &[Value]) -> Vec<(u64, bool)> {
    let bodies = events.iter().map(|event| &event["body"]).filter(|body| body["type"] == "verify.completed");
    bodies.map(|body| (body["round"].as_u64().unwrap(), body["passed"].as_bool().unwrap())).collect()
}

#[tokio::test]
async fn failing_checks_are_exit_code_one() {
    needs_linux!("sandbox");
    let fails = json!([write("a.txt", "bad\n"), {"text": "all good"}]);
    for flags in [&["go"][..], &["--json", "go"], &["--plain", "go"]] {
        let home = home("max_rounds = 1\n", &[CHECK]).await;
        let ran = run(&home, fails.clone(), flags).await;
        assert_eq!(ran.code, 1, "{flags:?}: {ran:?}");
    }
    let failing = home("max_rounds = 1\n", &[CHECK]).await;
    let ran = run(&failing, json!([write("a.txt", "bad\n"), {"text": "one"}, {"text": "two"}]), &["-p", "a", "-p", "b"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "one\n"), "the next prompt does not run: {ran:?}");
    let fixed = home("", &[CHECK]).await;
    let ran = run(&fixed, json!([write("a.txt", "bad\n"), {"text": "x"}, write("a.txt", "good\n"), {"text": "y"}]), &["go"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// The checks run before the first edit, so that a failure from before is named as such. It is
/// still a failure.
#[tokio::test]
async fn baseline_names_what_failed_before() {
    needs_linux!("sandbox");
    let home = home("baseline = true\nmax_rounds = 1\n", &[CHECK, OTHER]).await;
    let steps = json!([
        {"tool_calls": [{"name": "read", "input": {"file_path": "a.txt"}}]},
        write("b.txt", "bad\n"),
        write("b.txt", "worse\n"),
        {"text": "done"},
    ]);
    let ran = run(&home, steps, &["--json", "go"]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    let events = ran.lines();
    assert_eq!(rounds(&events), [(0, false), (1, false)]);
    let place = |fits: &dyn Fn(&Value) -> bool| events.iter().position(|event| fits(&event["body"])).unwrap();
    let edited = place(&|body| {
        body["type"] == "tool.completed" && body["details"]["filePath"].as_str().is_some_and(|path| path.ends_with("b.txt"))
    });
    assert!(place(&|body| body["type"] == "verify.completed" && body["round"] == 0) < edited);
    let notices: Vec<&Value> =
        events.iter().map(|event| &event["body"]).filter(|body| body["type"] == "notice" && body["code"] == "verify").collect();
    let last = notices.last().unwrap();
    assert!(last["description"].as_str().unwrap().contains("failed before the first edit"), "{last}");
    let note = last["note"].as_str().unwrap();
    let (before, _) = note.split_once("failed before your first edit").unwrap_or_else(|| panic!("{note}"));
    assert!(!before.is_empty(), "{note}");
    let model = home.script(json!([{"text": "known", "expect": "failed before your first edit"}]));
    assert_eq!(home.run(&["run", "--model", &model, "--continue", "and?"], "").await.code, 0);
}

#[tokio::test]
async fn failure_from_before_alone_is_exit_code_one() {
    needs_linux!("sandbox");
    let home = home("baseline = true\nmax_rounds = 1\n", &[CHECK]).await;
    let ran = run(&home, json!([write("b.txt", "fine again\n"), {"text": "done"}]), &["go"]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("failed before the first edit"), "{ran:?}");
}

#[tokio::test]
async fn baseline_runs_once_and_only_before_changes() {
    needs_linux!("sandbox");
    for (name, settings, steps, expected) in [
        (
            "no edit",
            "baseline = true\n",
            json!([{"tool_calls": [{"name": "read", "input": {"file_path": "a.txt"}}]}, {"text": "x"}]),
            &[][..],
        ),
        ("off", "", json!([write("a.txt", "good\n"), {"text": "x"}]), &[(1, true)]),
        (
            "an edit",
            "baseline = true\n",
            json!([write("a.txt", "good\n"), write("a.txt", "good!\n"), {"text": "x"}]),
            &[(0, false), (1, true)],
        ),
        ("a command", "baseline = true\n", json!([bash("echo good > a.txt"), {"text": "x"}]), &[(0, false), (1, true)]),
        ("checks are off", "baseline = true\nauto = false\n", json!([write("a.txt", "good\n"), {"text": "x"}]), &[]),
    ] {
        let home = home(settings, &[CHECK]).await;
        let ran = run(&home, steps, &["--json", "go"]).await;
        assert_eq!((ran.code, rounds(&ran.lines()).as_slice()), (0, expected), "{name}: {ran:?}");
    }
}
