//! Checks that the project has got since the session began: the model may have written them.

use serde_json::json;

use harness::steps::replace;
use harness::{Home, Reply};

fn declares(command: &str) -> String {
    format!("# Project\n\n## Checks\n\n```sh\n{command}\n```\n")
}

/// A home whose work directory is trusted and declares the check `touch known`.
async fn home() -> Home {
    let home = Home::new();
    home.put("AGENTS.md", &declares("touch known"));
    home.config("[[permissions.rules]]\nkind = \"write\"\npath = \"{AGENTS.md,Makefile}\"\npolicy = \"allow\"\n");
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    home
}

#[tokio::test]
async fn changed_checks_do_not_run_without_permission() {
    let home = home().await;
    let steps = json!([replace("AGENTS.md", &declares("touch pwned")), {"text": "done"}]);
    let model = home.script(steps);
    let ran = home.run(&["run", "--json", "--model", &model, "--mode", "accept-edits", "go"], "").await;
    assert_eq!(home.get("pwned"), None, "{ran:?}");
    assert_eq!(ran.code, 1, "not checked: {ran:?}");
    let lines = ran.lines();
    let completed = lines.iter().map(|event| &event["body"]).find(|body| body["type"] == "verify.completed").unwrap();
    assert!(completed["passed"] == false && completed["error"].is_string(), "{completed}");
}

#[tokio::test]
async fn user_is_asked_about_changed_checks() {
    needs_linux!("sandbox");
    for (reply, known, pwned) in [("allow_once", true, true), ("reject_once", false, false)] {
        let home = home().await;
        let steps = json!([replace("AGENTS.md", &declares("touch pwned")), {"text": "done"}]);
        let (mut agent, session) = home.session(steps, &["--mode", "accept-edits"]).await;
        agent.otherwise = Reply::Pick(reply);
        agent.turn(&session, "go").await;
        assert_eq!(agent.questions(), 1, "{reply}");
        assert_eq!((home.get("known").is_some(), home.get("pwned").is_some()), (known, pwned), "{reply}");
        agent.finish().await;
    }
}

#[tokio::test]
async fn removed_checks_still_run() {
    needs_linux!("sandbox");
    let home = home().await;
    let steps = json!([replace("AGENTS.md", "# Nothing\n"), {"text": "done"}]);
    let model = home.script(steps);
    let ran = home.run(&["run", "--model", &model, "--mode", "accept-edits", "go"], "").await;
    assert_eq!((ran.code, home.get("known").is_some()), (0, true), "{ran:?}");
}
