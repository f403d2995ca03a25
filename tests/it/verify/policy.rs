//! The checks at the end of a turn that changed files.

use serde_json::{Value, json};

use harness::log::bodies;
use harness::steps::bash;
use harness::{Home, tool};

/// A check that passes once `a.txt` contains `good`.
const CHECK: &str = "grep -q good a.txt || { echo 'error: a.txt is not good'; exit 3; }";

fn write(text: &str) -> Value {
    json!({"tool_calls": [{"name": "write", "input": {"file_path": "a.txt", "content": text}}]})
}

fn say(text: &str) -> Value {
    json!({ "text": text })
}

fn expect(text: &str, step: Value) -> Value {
    let mut step = step;
    step["expect"] = text.into();
    step
}

/// A home whose work directory is trusted, with `a.txt`.
async fn home(settings: &str) -> Home {
    let home = Home::new();
    home.put("a.txt", "");
    home.config(&format!("[verify]\ncommands = [{CHECK:?}]\n{settings}"));
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    home
}

/// Runs a turn and returns its events.
async fn turn(home: &Home, steps: Value, mode: &str) -> Vec<Value> {
    let model = home.script(steps);
    let ran = home.run(&["run", "--json", "--model", &model, "--mode", mode, "go"], "").await;
    assert!([0, 1, 4].contains(&ran.code), "{ran:?}");
    ran.lines()
}

/// Round and result of each check.
fn rounds(events: &[Value]) -> Vec<(u64, bool)> {
    let started: Vec<u64> = bodies(events, "verify.started").iter().map(|body| body["round"].as_u64().unwrap()).collect();
    let completed = bodies(events, "verify.completed");
    let completed: Vec<(u64, bool)> =
        completed.iter().map(|body| (body["round"].as_u64().unwrap(), body["passed"].as_bool().unwrap())).collect();
    assert_eq!(started, completed.iter().map(|(round, _)| *round).collect::<Vec<_>>(), "{events:#?}");
    completed
}

#[tokio::test]
async fn checks_run_after_changes_and_failures_return_to_the_model() {
    needs_linux!("sandbox");
    let fails = "a.txt is not good";
    type Case<'a> = (&'a str, &'a str, Value, &'a [(u64, bool)]);
    let cases: &[Case<'_>] = &[
        ("good at once", "", json!([write("good\n"), say("done")]), &[(1, true)]),
        (
            "fixed after a failure",
            "",
            json!([write("bad\n"), say("done"), expect(fails, write("good\n")), say("fixed")]),
            &[(1, false), (2, true)],
        ),
        (
            "never fixed",
            "max_rounds = 2\n",
            json!([write("bad\n"), say("done"), expect(fails, say("again")), say("not asked")]),
            &[(1, false), (2, false)],
        ),
        ("no change", "", json!([bash("cat a.txt"), say("done")]), &[]),
        ("no call", "", json!([say("done")]), &[]),
        ("a command that changes a file", "", json!([bash("echo good > a.txt"), say("done")]), &[(1, true)]),
        ("a command that creates a file", "", json!([bash("echo good > a.txt"), say("done")]), &[(1, true)]),
        (
            "a command that creates a file and hides it",
            "max_rounds = 1\n",
            json!([bash("mkdir d && echo '*' > d/.gitignore && echo x > d/x"), say("done")]),
            &[(1, false)],
        ),
        ("turned off", "auto = false\n", json!([write("bad\n"), say("done")]), &[]),
        ("no rounds", "max_rounds = 0\n", json!([write("bad\n"), say("done")]), &[]),
    ];
    for (name, settings, steps, expected) in cases {
        let home = home(settings).await;
        let events = turn(&home, steps.clone(), "auto").await;
        assert_eq!(rounds(&events), *expected, "{name}: {events:#?}");
        let checks: Vec<_> = bodies(&events, "tool.started").into_iter().filter(|body| body["name"] == "verify").collect();
        assert!(checks.len() == expected.len() && checks.iter().all(|body| body["automatic"] == true), "{name}: {checks:#?}");
        let notices = bodies(&events, "notice").into_iter().filter(|body| body["code"] == "verify").count();
        assert_eq!(notices, expected.iter().filter(|(_, passed)| !passed).count(), "{name}: {events:#?}");
        assert_eq!(bodies(&events, "turn.completed").len(), 1, "{name}: {events:#?}");
    }
}

#[tokio::test]
async fn last_failure_is_known_to_the_next_turn() {
    needs_linux!("sandbox");
    let home = home("max_rounds = 1\n").await;
    turn(&home, json!([write("bad\n"), say("done")]), "auto").await;
    let model = home.script(json!([expect("a.txt is not good", say("known"))]));
    let ran = home.run(&["run", "--model", &model, "--continue", "and?"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "known\n"), "{ran:?}");
}

/// Messages of hooks about a check reach the model with the next request.
#[tokio::test]
async fn messages_of_hooks_reach_the_model() {
    needs_linux!("sandbox");
    let validate = |script: &str| {
        format!("[[hooks]]\nevent = \"tool.result.validate\"\nmatch = \"verify\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n")
    };
    for script in [r#"echo '{"messages":["mind the docs"]}'"#, "echo mind the docs >&2; exit 2"] {
        let failing = home(&validate(script)).await;
        let steps = json!([write("bad\n"), say("done"), expect("mind the docs", write("good\n")), say("fixed")]);
        let events = turn(&failing, steps, "auto").await;
        assert_eq!(rounds(&events), [(1, false), (2, true)], "{script}: {events:#?}");
        // A message about checks that passed waits for the next turn.
        let passing = home(&validate(script)).await;
        let events = turn(&passing, json!([write("good\n"), say("done")]), "auto").await;
        assert_eq!(rounds(&events), [(1, true)], "{script}: {events:#?}");
        let model = passing.script(json!([expect("mind the docs", say("known"))]));
        let ran = passing.run(&["run", "--model", &model, "--continue", "and?"], "").await;
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "known\n"), "{script}: {ran:?}");
    }
}

#[tokio::test]
async fn untrusted_directory_and_mode_plan_run_no_checks() {
    needs_linux!("sandbox");
    let home = Home::new();
    home.put("a.txt", "");
    home.put(".nuncio/config.toml", "[verify]\ncommands = [\"touch ran\"]\n");
    let events = turn(&home, json!([write("bad\n"), say("done")]), "auto").await;
    assert_eq!((rounds(&events), home.get("ran")), (vec![], None));
    home.config("[verify]\ncommands = [\"touch ran\"]\n");
    home.put("a.txt", "");
    let events = turn(&home, json!([write("bad\n"), say("done")]), "auto").await;
    assert_eq!((rounds(&events), home.get("ran")), (vec![], None));
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    home.put("a.txt", "");
    let events = turn(&home, json!([write("bad\n"), say("done")]), "plan").await;
    assert_eq!((rounds(&events), home.get("ran")), (vec![], None));
    let events = turn(&home, json!([write("bad\n"), say("done")]), "accept-edits").await;
    assert_eq!((rounds(&events), home.get("ran").as_deref()), (vec![(1, true)], Some("")));
}

/// Configured commands run without a question, but rules that deny them apply.
#[tokio::test]
async fn deny_rule_prevents_checks() {
    needs_linux!("sandbox");
    let home = home("[permissions]\nrules = [{ pattern = \"grep *\", policy = \"deny\" }]\n").await;
    let events = turn(&home, json!([write("bad\n"), say("done"), say("not asked")]), "accept-edits").await;
    assert_eq!(rounds(&events), [(1, false)]);
    let error = &bodies(&events, "verify.completed")[0]["error"];
    assert!(error.as_str().unwrap().contains("denied"), "{error}");
    assert_eq!(bodies(&events, "step.started").len(), 2, "{events:#?}");
    assert_eq!(bodies(&events, "notice").len(), 1, "{events:#?}");
}

#[tokio::test]
async fn checks_run_in_the_sandbox() {
    needs_linux!("sandbox");
    let home = home("").await;
    home.put("../outside", "kept\n");
    let outside = home.work().join("../outside").canonicalize().unwrap();
    home.config(&format!("[verify]\ncommands = [\"echo lost > {}; touch inside\"]\n", outside.display()));
    let events = turn(&home, json!([write("x\n"), say("done")]), "accept-edits").await;
    assert_eq!(rounds(&events), [(1, true)], "{events:#?}");
    assert_eq!((home.get("../outside").as_deref(), home.get("inside").as_deref()), (Some("kept\n"), Some("")));
}

/// Only grants and settings of the user widen the confinement of checks, in every mode. Turning the
/// sandbox of commands off does not.
#[tokio::test]
async fn checks_are_confined_as_the_settings_of_the_user_grant() {
    needs_linux!("sandbox");
    let network = "python3 -c 'import socket; socket.socket()' 2> /dev/null && echo network >> got";
    let outside = "(echo x > ../outside) 2> /dev/null && echo outside >> got";
    let check = json!([format!("{outside}; {network}; echo \"$npm_config_offline\" >> got")]);
    let cases = [
        ("", "true\n"),
        ("[sandbox]\nmode = \"off\"\n", "true\n"),
        ("[sandbox]\nnetwork = true\n", "network\n\n"),
        ("[trust.\"WORK\".hooks]\nnetwork = true\n", "true\n"),
        ("[trust.\"WORK\".checks]\nnetwork = true\nwritable = [\"ABOVE\"]\n", "outside\nnetwork\n\n"),
    ];
    for (settings, got) in cases {
        for mode in ["accept-edits", "auto"] {
            let home = home("").await;
            let work = home.work();
            let settings = settings.replace("WORK", work.to_str().unwrap());
            let settings = settings.replace("ABOVE", work.parent().unwrap().to_str().unwrap());
            home.config(&format!("[verify]\ncommands = {check}\n{settings}"));
            let (mut agent, session) = home.session(json!([write("x\n"), say("done")]), &["--mode", mode]).await;
            assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
            assert_eq!((agent.questions(), home.get("got").as_deref()), (0, Some(got)), "{settings}, {mode}");
            agent.finish().await;
        }
    }
}

#[tokio::test]
async fn failed_check_names_the_setting_of_its_confinement() {
    needs_linux!("sandbox");
    let home = home("").await;
    let events = turn(&home, json!([write("bad\n"), say("done"), write("good\n"), say("mended")]), "auto").await;
    let outputs: Vec<String> = bodies(&events, "tool.completed").iter().map(|body| body["output"].to_string()).collect();
    let setting = format!("in [trust.\\\"{}\\\".checks]", home.work().display());
    let named: Vec<bool> = outputs.iter().map(|output| output.contains(&setting)).collect();
    assert_eq!(named, [false, true, false, false], "{outputs:?}");
}

#[tokio::test]
async fn checks_are_shown_to_editors_and_kept_in_history() {
    needs_linux!("sandbox");
    let home = home("").await;
    let (mut agent, session) = home.session(json!([write("good\n"), say("done"), say("more")]), &["--mode", "auto"]).await;
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!(stop, "end_turn");
    let call = tool(&updates, 1);
    assert_eq!((&call["kind"], &call["status"]), (&json!("execute"), &json!("completed")), "{call}");
    assert!(call["title"].as_str().unwrap().starts_with("Verify: grep -q good"), "{call}");
    assert_eq!(call["rawOutput"]["passed"], true, "{call}");
    let replayed = agent.load(&home, &session).await;
    assert_eq!(tool(&replayed, 1)["rawOutput"]["passed"], true);
    agent.turn(&session, "more").await;
    agent.finish().await;
    // The model did not make the call, so its messages do not contain it.
    let messages = json!(harness::provider::session::messages(&home, &session).await).to_string();
    assert!(messages.contains("\"write\"") && !messages.contains("\"verify\""), "{messages}");
}

#[tokio::test]
async fn cancel_ends_running_checks() {
    needs_linux!("sandbox");
    let home = home("").await;
    home.config("[verify]\ncommands = [\"touch begun; sleep 300\"]\n");
    let (mut agent, session) = home.session(json!([write("x\n"), say("done")]), &["--mode", "auto"]).await;
    let id = agent.prompt(&session, "go").await;
    home.appears("begun").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    agent.finish().await;
}

#[tokio::test]
async fn killed_process_leaves_a_closed_check() {
    needs_linux!("sandbox");
    let home = home("").await;
    home.config("[verify]\ncommands = [\"touch begun; sleep 300\"]\n");
    let (mut agent, session) = home.session(json!([write("x\n"), say("done")]), &["--mode", "auto"]).await;
    agent.prompt(&session, "go").await;
    home.appears("begun").await;
    agent.kill().await;
    let model = home.script(json!([say("goes on")]));
    let ran = home.run(&["run", "--model", &model, "--continue", "and?"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "goes on\n"), "{ran:?}");
    let log = home.log(&session).await;
    assert_eq!(bodies(&log, "tool.started").len(), bodies(&log, "tool.completed").len(), "{log:#?}");
}

/// The selection of the session's tools does not apply to the checks, also if a hook changes them.
#[tokio::test]
async fn hook_changes_the_checks_of_a_session_without_the_tool() {
    needs_linux!("sandbox");
    let home = home("").await;
    let script = r#"echo '{"input":{"commands":["touch by-hook"]}}'"#;
    let hook =
        format!("[[hooks]]\nevent = \"tool.execute.before\"\nmatch = \"verify\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n");
    home.config(&format!("{}{hook}", home.config_text()));
    let (mut agent, session) = home.session(json!([write("bad\n"), say("done")]), &["--mode", "auto"]).await;
    agent.call("_nuncio/session/configure", json!({"sessionId": session, "tools": ["write"]})).await;
    agent.turn(&session, "go").await;
    agent.finish().await;
    let log = home.log(&session).await;
    assert_eq!(bodies(&log, "hook.completed")[0]["outcome"], "changed", "{log:#?}");
    assert!(home.get("by-hook").is_some(), "{log:#?}");
}
