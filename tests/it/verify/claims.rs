//! What an answer says of checks is compared with the calls that ran.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use harness::steps::{bash_call, call, calls};
use harness::{CommandResult, Home};

const TITLE: &str = "The answer names checks that did not pass";

/// A home with a program `pytest` that fails if there is a file `broken`.
fn home() -> Home {
    let home = Home::new();
    home.config("[verify]\nauto = false\n");
    let program = home.put("bin/pytest", "#!/bin/sh\ntest ! -e broken\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    home.env("PATH", &path);
    home
}

fn write(path: &str) -> Value {
    call("write", json!({"file_path": path, "content": "x = 1\n"}))
}

fn pytest() -> Value {
    bash_call("pytest")
}

async fn run(home: &Home, made: &[Value], answer: &str) -> (CommandResult, Vec<Value>) {
    let model = home.script(json!([calls(made), {"text": answer}]));
    let ran = home.run(&["run", "--output-format", "json", "--mode", "auto", "--model", &model, "Set x."], "").await;
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    let claims = result["claims"].as_array().cloned().unwrap_or_default();
    (ran, claims)
}

/// The calls, the answer, and the state of its claim.
fn cases() -> Vec<(Vec<Value>, &'static str, Option<&'static str>)> {
    let broken = || write("broken");
    vec![
        (vec![write("x.py")], "Set x. All tests pass.", Some("not_run")),
        (vec![write("x.py")], "Set x. `pytest` passes.", Some("not_run")),
        (vec![pytest(), write("x.py")], "Set x. All tests pass.", Some("before_last_change")),
        (vec![write("x.py"), broken(), pytest()], "Set x. All tests pass.", Some("failed")),
        (vec![write("x.py"), bash_call("echo pytest")], "Set x. All tests pass.", Some("not_run")),
        (vec![write("x.py"), pytest()], "Set x. All tests pass.", None),
        (vec![write("x.py"), bash_call("cd . && pytest -q")], "Set x. `pytest` passes.", None),
        (vec![write("x.py"), bash_call("./bin/pytest | tail -1")], "Set x. All tests pass.", None),
        (vec![pytest(), write("README.md")], "All tests pass.", None),
        (vec![bash_call("true")], "All tests pass.", None),
        (vec![write("x.py")], "Set x. I did not run the tests.", None),
        (vec![write("x.py")], "Set x. Run `pytest` to check that all tests pass.", None),
        (vec![write("x.py"), broken(), pytest()], "The tests fail: `broken` exists.", None),
    ]
}

#[tokio::test]
async fn claims_of_an_answer_are_held_against_the_calls() {
    for (made, answer, state) in cases() {
        let home = home();
        let (ran, claims) = run(&home, &made, answer).await;
        let case = format!("{made:?} {answer}: {claims:?}");
        assert_eq!(ran.code, 0, "{case}: {}", ran.stderr);
        assert_eq!(claims.first().map(|claim| claim["state"].as_str().unwrap()), state, "{case}");
        assert_eq!(ran.stderr.contains(TITLE), state.is_some(), "{case}: {}", ran.stderr);
        // The call that decided is named.
        assert_eq!(
            claims.first().is_some_and(|claim| claim["toolCallId"].is_string()),
            !matches!(state, None | Some("not_run")),
            "{case}"
        );
    }
}

#[tokio::test]
async fn setting_turns_the_notice_off() {
    let home = home();
    home.config("[verify]\nauto = false\nclaims = false\n");
    let (ran, _) = run(&home, &[write("x.py")], "Set x. All tests pass.").await;
    assert!(!ran.stderr.contains(TITLE), "{ran:?}");
}

/// The checks of a later turn count, and so do those of an earlier one without a change since.
#[tokio::test]
async fn checks_of_other_turns_count() {
    let home = home();
    let steps = json!([calls(&[write("x.py"), pytest()]), {"text": "Done."}, {"text": "All tests pass."}]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    agent.turn(&session, "Set x.").await;
    agent.turn(&session, "Do they pass?").await;
    agent.finish().await;
    let log = home.log(&session).await;
    assert!(!log.iter().any(|event| event["body"]["title"] == TITLE), "{log:?}");
}
