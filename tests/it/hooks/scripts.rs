//! The files of hook commands: where relative ones are, and what happens without them. Failures of
//! hooks that have no effect are reported once.

use serde_json::{Value, json};

use super::{Events, home, hook, one_call, read_a};

const BEFORE: &str = "tool.execute.before";

fn command(words: &[&str], policy: &str) -> String {
    format!("[[hooks]]\nevent = \"{BEFORE}\"\ncommand = {}\non_failure = \"{policy}\"\n", json!(words))
}

/// Python and dash end with exit code 2 without their script, which would block.
#[tokio::test]
async fn missing_script_is_a_failure_and_not_a_block() {
    for words in [
        &["python3", "missing.py"][..],
        &["python3", "-u", "-B", "missing.py", "argument"],
        &["sh", "missing.sh"],
        &["bash", "-eu", "missing.sh"],
        &["/usr/bin/env", "python3", "missing.py"],
        &["./missing.sh"],
    ] {
        for (policy, status) in [("open", "completed"), ("closed", "failed")] {
            let home = home(&command(words, policy));
            let ran = Events::from_run(&home, read_a(None), &[]).await;
            assert_eq!((ran.outcomes(), ran.result().0), (vec!["failed"], status), "{words:?} {policy}");
            let error = ran.all("hook.completed")[0]["error"].as_str().unwrap();
            assert!(error.contains("missing") && error.contains(home.data().to_str().unwrap()), "{words:?}: {error}");
        }
    }
    // A word that is no script is not looked for.
    for words in
        [&["python3", "-c", "pass"][..], &["sh", "-c", "exit 0"], &["python3", "-m", "this"], &["bash", "-o", "errexit", "-c", ":"]]
    {
        let home = home(&command(&[words, &["> /dev/null"]].concat(), "closed"));
        let ran = Events::from_run(&home, read_a(None), &[]).await;
        let error = ran.all("hook.completed")[0]["error"].as_str().unwrap_or_default().to_owned();
        assert!(!error.contains("does not exist"), "{words:?}: {error}");
    }
}

#[tokio::test]
async fn exit_code_two_of_a_script_that_exists_blocks() {
    let home = home(&command(&["python3", "guard.py"], "open"));
    std::fs::write(home.data().join("guard.py"), "import sys\nsys.exit(2)\n").unwrap();
    assert_eq!(Events::from_run(&home, read_a(None), &[]).await.outcomes(), ["blocked"]);
}

#[tokio::test]
async fn project_cannot_supply_the_script_of_a_users_hook() {
    for words in [&["sh", "guard.sh"][..], &["./guard.sh"], &["python3", "hooks/guard.sh"]] {
        let home = home(&command(words, "open"));
        for path in ["guard.sh", "hooks/guard.sh"] {
            let script = home.put(path, "#!/bin/sh\ntouch ran\n");
            std::fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let ran = Events::from_run(&home, read_a(None), &[]).await;
        assert_eq!((ran.outcomes(), home.get("ran")), (vec!["failed"], None), "{words:?}");
    }
}

#[tokio::test]
async fn script_of_a_project_is_found_next_to_its_nuncio_directory() {
    needs_linux!("sandbox");
    let home = home("");
    home.put(".nuncio/config.toml", &command(&["sh", "hooks/guard.sh"], "closed"));
    home.put("hooks/guard.sh", "touch ran\n");
    std::fs::create_dir(home.data().join("hooks")).unwrap();
    std::fs::write(home.data().join("hooks/guard.sh"), "exit 2\n").unwrap();
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    let ran = Events::from_run(&home, read_a(None), &[]).await;
    assert_eq!((ran.outcomes(), home.get("ran").is_some()), (vec!["unchanged"], true));
}

/// A model that reads a file in each of two answers.
fn two_calls() -> Value {
    let call = |text: Option<&str>| json!({"tool_calls": [{"name": "read", "input": {"file_path": "a.txt"}}], "expect": text});
    json!([call(None), call(None), {"text": "the end"}])
}

#[tokio::test]
async fn hook_that_fails_without_effect_is_reported_once() {
    let failing =
        [hook(BEFORE, "echo no quota >&2; exit 1", "on_failure = \"open\""), hook("prompt.messages.transform", "exit 3", "")];
    let home = home(&failing.concat());
    let ran = Events::from_run(&home, two_calls(), &[]).await;
    assert_eq!((ran.code, ran.outcomes().len()), (0, 5), "{:#?}", ran.events);
    let notices = ran.all("notice");
    assert_eq!(notices.len(), 2, "{notices:#?}");
    for (event, error) in [(BEFORE, "exit code 1: no quota"), ("prompt.messages.transform", "exit code 3")] {
        let of = |notice: &&&Value| notice["description"].as_str().unwrap().contains(error);
        let notice = notices.iter().find(of).unwrap_or_else(|| panic!("{event}: {notices:#?}"));
        assert_eq!(
            (&notice["severity"], &notice["code"], &notice["note"]),
            (&json!("warning"), &json!("hook_failed"), &Value::Null)
        );
        assert!(notice["title"].as_str().unwrap().contains(event), "{notice}");
    }
    // The next process continues the session.
    let again = Events::from_run(&home, one_call("read", &json!({"file_path": "a.txt"}), None), &["--continue"]).await;
    assert!(again.all("notice").is_empty(), "{:#?}", again.all("notice"));
    // The user of the command line sees the notice.
    let shown = home.run(&["run", "--mode", "auto", "--model", &home.script(read_a(None)), "go"], "").await;
    assert!(shown.stderr.contains("no quota"), "{shown:?}");
}

#[tokio::test]
async fn hook_of_a_cancelled_turn_is_not_reported() {
    let home = home(&hook(BEFORE, "touch started; sleep 600", "timeout_ms = 600000\non_failure = \"open\""));
    let (mut agent, session) = home.session(read_a(None), &[]).await;
    let prompt = agent.prompt(&session, "go").await;
    home.appears("started").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled");
    agent.finish().await;
    let ran = Events { code: 0, events: home.log(&session).await };
    assert!(ran.all("notice").is_empty(), "{:#?}", ran.all("notice"));
}
